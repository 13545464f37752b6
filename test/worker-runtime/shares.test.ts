import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALL_FLOWS } from '../../db/rules/flows.ts'
import { type Charge, createShares, type Shares } from '../../worker-runtime/shares.ts'

const DRAIN_GOAL_MS = 20_000

/** The flow of an organisation, or of one of its fairness keys. */
const flowOf = (org: number, key = 0): number => org * 2 ** 32 + key

const A = flowOf(1)
const B = flowOf(2)
const C = flowOf(3)

/** Jobs of one length, of which there are always more. */
type Backlog = { flow: number; ms: number; predictedMs?: number; weight?: number }

/**
 * A worker with one slot, on a simulated clock, until it has worked for so long. Answers how long it worked for each
 * flow. Flows wait when it starts, and are empty when it ends.
 */
const serve = (shares: Shares, forMs: number, backlogs: readonly Backlog[]): Map<number, number> => {
  const worked = new Map(backlogs.map(({ flow }) => [flow, 0]))
  for (const { flow } of backlogs) shares.waits(flow)
  for (let nowMs = 0; nowMs < forMs; ) {
    const flow = shares.next(1).turns[0]?.flow ?? Number.NaN
    const { ms, predictedMs = ms, weight = 1 } = backlogs.find((one) => one.flow === flow) as Backlog
    const charge = shares.charge(flow, { jobs: 1, ms: predictedMs, weight })
    nowMs += ms
    shares.correct(charge, ms - predictedMs)
    worked.set(flow, (worked.get(flow) ?? 0) + ms)
  }
  for (const { flow } of backlogs) shares.isEmpty(flow)
  return worked
}

/** How much of the time each flow got, in per cent. */
const percentages = (worked: Map<number, number>): number[] => {
  const total = [...worked.values()].reduce((sum, ms) => sum + ms, 0)
  return [...worked.values()].map((ms) => Math.round((100 * ms) / total))
}

/** Whose turn it is. */
const nextFlow = (shares: Shares): number | undefined => shares.next(1).turns[0]?.flow

test('time is shared in seconds, not in jobs', () => {
  const worked = serve(createShares(), 3_600_000, [
    { flow: A, ms: 34_000 },
    { flow: B, ms: 1_000 },
  ])
  assert.deepEqual(percentages(worked), [50, 50])
})

test('time is shared by weight, whatever the lengths of the jobs', () => {
  const worked = serve(createShares(), 3_600_000, [
    { flow: A, ms: 34_000, weight: 1 },
    { flow: B, ms: 1_000, weight: 2 },
    { flow: C, ms: 3_000, weight: 0.5 },
  ])
  assert.deepEqual(percentages(worked), [29, 57, 14])
})

test('a share that nobody wants goes to the others', () => {
  const shares = createShares()
  assert.deepEqual([...serve(shares, 100_000, [{ flow: A, ms: 1_000 }]).values()], [100_000])
  // Whoever comes later shares from then on.
  const worked = serve(shares, 100_000, [
    { flow: A, ms: 1_000 },
    { flow: B, ms: 1_000 },
  ])
  assert.deepEqual(percentages(worked), [50, 50])
})

test('having been idle earns no credit', () => {
  const shares = createShares()
  serve(shares, 10_000, [
    { flow: A, ms: 1_000 },
    { flow: B, ms: 1_000 },
  ])
  serve(shares, 3_600_000, [{ flow: A, ms: 1_000 }])
  const worked = serve(shares, 60_000, [
    { flow: A, ms: 1_000 },
    { flow: B, ms: 1_000 },
  ])
  assert.deepEqual(percentages(worked), [50, 50])
})

test('a debt is paid before the next turn', () => {
  const shares = createShares()
  for (const flow of [A, B]) shares.waits(flow)
  const charge = shares.charge(A, { jobs: 1, ms: 1_000, weight: 1 })
  // It was thought to take a second, and takes a minute.
  shares.correct(charge, 59_000)
  let servedMs = 0
  while (nextFlow(shares) === B) {
    shares.charge(B, { jobs: 1, ms: 1_000, weight: 1 })
    servedMs += 1_000
  }
  assert.ok(Math.abs(servedMs - 60_000) <= 1_000, `B got ${servedMs} ms`)
})

test('a debt outlives a pause of the debtor, as long as others wait', () => {
  const shares = createShares()
  for (const flow of [A, B]) shares.waits(flow)
  shares.charge(A, { jobs: 1, ms: 60_000, weight: 1 })
  shares.isEmpty(A)
  for (let n = 0; n < 30; n++) shares.charge(B, { jobs: 1, ms: 1_000, weight: 1 })
  shares.waits(A)
  assert.equal(nextFlow(shares), B)
  for (let n = 0; n < 31; n++) shares.charge(B, { jobs: 1, ms: 1_000, weight: 1 })
  assert.equal(nextFlow(shares), A)
})

test('a debt is forgotten when nobody waits', () => {
  const shares = createShares()
  const charge = shares.charge(A, { jobs: 1, ms: 60_000, weight: 1 })
  shares.forget()
  // The job still runs, and its correction must not reach the new account.
  shares.correct(charge, 60_000)
  for (const flow of [A, B]) shares.waits(flow)
  const [first, second] = shares.next(2).turns
  assert.deepEqual([first?.orgTimeMs, second?.orgTimeMs], [0, 0])
})

test('real runtimes correct what predictions got wrong', () => {
  const worked = serve(createShares(), 3_600_000, [
    { flow: A, ms: 10_000, predictedMs: 100 },
    { flow: B, ms: 1_000, predictedMs: 30_000 },
  ])
  assert.deepEqual(percentages(worked), [50, 50])
})

test('a job that runs for longer than predicted is charged while it runs', () => {
  const shares = createShares()
  for (const flow of [A, B]) shares.waits(flow)
  const charge = shares.charge(A, { jobs: 1, ms: 1_000, weight: 1 })
  shares.charge(B, { jobs: 1, ms: 5_000, weight: 1 })
  assert.equal(nextFlow(shares), A)
  shares.overdue([{ charge, byMs: 10_000 }])
  assert.equal(nextFlow(shares), B)
  // Each report replaces the one before, and the correction at the end replaces them all.
  shares.overdue([])
  assert.equal(nextFlow(shares), A)
})

test('jobs that were thought short are charged once, while they run or when they end', () => {
  const shares = createShares()
  for (const flow of [A, B]) shares.waits(flow)
  const charges = Array.from({ length: 10 }, () => shares.charge(A, { jobs: 1, ms: 1_000, weight: 1 }))
  const overdueFrom = (n: number) => charges.slice(n).map((charge) => ({ charge, byMs: 33_000 }))
  const timeOfA = () => shares.next(2).turns.find(({ flow }) => flow === A)?.orgTimeMs ?? Number.NaN
  shares.overdue(overdueFrom(0))
  shares.charge(B, { jobs: 1, ms: 340_000, weight: 1 })
  shares.charge(B, { jobs: 1, ms: 1_000, weight: 1 })
  assert.equal(timeOfA(), 0)
  // One of them ends. The clock is far ahead of what A has been charged without the overdue jobs.
  shares.correct(charges[0] as Charge, 33_000)
  assert.equal(timeOfA(), 0)
  shares.overdue(overdueFrom(1))
  assert.equal(timeOfA(), 0)
  // It begins to wait again.
  shares.isEmpty(A)
  shares.waits(A)
  assert.equal(timeOfA(), 0)
})

test('refunds save up no more than one drain goal', () => {
  const shares = createShares()
  for (const flow of [A, B]) shares.waits(flow)
  const charges: Charge[] = []
  for (let n = 0; n < 100; n++) charges.push(shares.charge(A, { jobs: 1, ms: 10_000, weight: 1 }))
  for (let n = 0; n < 100; n++) shares.charge(B, { jobs: 1, ms: 10_000, weight: 1 })
  for (const charge of charges) shares.correct(charge, -9_999)
  let servedMs = 0
  while (nextFlow(shares) === A) {
    shares.charge(A, { jobs: 1, ms: 1_000, weight: 1 })
    servedMs += 1_000
  }
  // Besides the credit, one job of B by which B is ahead of the clock.
  assert.ok(servedMs <= DRAIN_GOAL_MS + 10_000 + 1_000, `A got ${servedMs} ms`)
})

test('an organisation gets one share, however many fairness keys it uses', () => {
  const worked = serve(createShares(), 600_000, [
    { flow: flowOf(1, 1), ms: 1_000 },
    { flow: flowOf(1, 2), ms: 1_000 },
    { flow: flowOf(1, 3), ms: 1_000 },
    { flow: B, ms: 1_000 },
  ])
  assert.deepEqual(percentages(worked), [17, 17, 17, 50])
})

test('fairness keys of an organisation share its time in seconds', () => {
  const worked = serve(createShares(), 36_000_000, [
    { flow: flowOf(1, 1), ms: 34_000 },
    { flow: flowOf(1, 2), ms: 1_000 },
    { flow: B, ms: 1_000 },
  ])
  assert.deepEqual(percentages(worked), [25, 25, 50])
})

test('a fairness key that was idle earns no credit within its organisation', () => {
  const shares = createShares()
  serve(shares, 3_600_000, [{ flow: flowOf(1, 1), ms: 1_000 }])
  const worked = serve(shares, 60_000, [
    { flow: flowOf(1, 1), ms: 1_000 },
    { flow: flowOf(1, 2), ms: 1_000 },
  ])
  assert.deepEqual(percentages(worked), [50, 50])
})

test('a claim is told which flows come next, and whether those are all', () => {
  const shares = createShares()
  for (const org of [1, 2, 3, 4]) shares.waits(flowOf(org))
  shares.charge(A, { jobs: 1, ms: 3_000, weight: 1 })
  shares.charge(B, { jobs: 1, ms: 1_000, weight: 1 })
  const some = shares.next(2)
  assert.deepEqual([some.turns.map(({ flow }) => flow), some.all], [[C, flowOf(4), B], false])
  const all = shares.next(10)
  assert.deepEqual([all.turns.map(({ flow }) => flow), all.all], [[C, flowOf(4), B, A], true])
})

test('an empty flow is not next, and is known as long as it owes something', () => {
  const shares = createShares()
  for (const flow of [A, B]) shares.waits(flow)
  shares.charge(A, { jobs: 1, ms: 5_000, weight: 1 })
  shares.isEmpty(A)
  assert.deepEqual(
    shares.next(5).turns.map(({ flow }) => flow),
    [B],
  )
  const { gaps, idle } = shares.look(2)
  const [known] = idle
  assert.deepEqual([known?.flow, known?.orgTimeMs, known?.waits], [A, 5_000, false])
  assert.deepEqual(gaps[0], { after: ALL_FLOWS.after, before: A + 1 }, 'it may have jobs again')
})

test('a claim looks between the flows that wait, a few places at a time and in rotation', () => {
  const shares = createShares()
  for (const flow of [A, B, C]) shares.waits(flow)
  const { after: start, before: end } = ALL_FLOWS
  const gap = (after: number, before: number) => ({ after, before })
  assert.deepEqual(shares.look(2), { gaps: [gap(start, A), gap(A, B)], idle: [], all: false })
  assert.deepEqual(shares.look(2), { gaps: [gap(B, C), gap(C, end)], idle: [], all: false })
  assert.deepEqual(shares.look(9).gaps.length, 4)
  assert.equal(shares.look(9).all, true)
})

test('a look that found as many flows as there was room for goes on behind the last of them', () => {
  const shares = createShares()
  for (const flow of [A, C]) shares.waits(flow)
  shares.look(9)
  shares.lookAfter(B)
  assert.deepEqual(shares.look(1).gaps[0], { after: B, before: C })
})

test('a look finds new fairness keys between those of an organisation, of many between two', () => {
  const shares = createShares(() => 0.5)
  for (const key of [1, 2, 3]) shares.waits(flowOf(1, key))
  assert.deepEqual(shares.look(1).gaps, [
    { after: ALL_FLOWS.after, before: flowOf(1, 1) },
    { after: flowOf(1, 1), before: flowOf(1, 2) },
    { after: flowOf(1, 2), before: flowOf(1, 3) },
    { after: flowOf(1, 3), before: ALL_FLOWS.before },
  ])
  for (let key = 4; key <= 21; key++) shares.waits(flowOf(1, key))
  const { gaps, all } = shares.look(1)
  assert.deepEqual([gaps.length, gaps[1], all], [3, { after: flowOf(1, 11), before: flowOf(1, 12) }, false])
})

test('an organisation without jobs and debts is forgotten, so that no claim looks beside it', () => {
  const shares = createShares()
  for (const flow of [A, B]) shares.waits(flow)
  const charge = shares.charge(A, { jobs: 1, ms: 1_000, weight: 1 })
  shares.isEmpty(A)
  const idle = () => {
    shares.next(5)
    return shares.look(5).idle.map(({ flow }) => flow)
  }
  assert.deepEqual(idle(), [A])
  shares.correct(charge, 0)
  // It still owes a second.
  assert.deepEqual(idle(), [A])
  for (let n = 0; n < 2; n++) shares.charge(B, { jobs: 1, ms: 1_000, weight: 1 })
  assert.deepEqual(idle(), [])
})

test('an organisation that uses a new fairness key for each job does not fill the memory', () => {
  const shares = createShares()
  for (let key = 1; key <= 5_000; key++) {
    const flow = flowOf(1, key)
    shares.waits(flow)
    shares.next(1)
    shares.correct(shares.charge(flow, { jobs: 1, ms: 1_000, weight: 1 }), 0)
    shares.waits(flowOf(1, key + 1))
    shares.isEmpty(flow)
  }
  const [oldest] = shares.look(1).idle
  assert.ok((oldest?.flow ?? 0) > flowOf(1, 4_000))
})
