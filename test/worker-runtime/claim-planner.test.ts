import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedJob, ClaimNews, Turn } from '../../db/queue/exchange.ts'
import { createAgeShare } from '../../worker-runtime/age-share.ts'
import { createCapacity } from '../../worker-runtime/capacity.ts'
import { createClaimPlanner, type Policy } from '../../worker-runtime/claim-planner.ts'
import type { HeldJob, HeldJobs } from '../../worker-runtime/held-jobs.ts'

const SMALL = { cpu_units: 1, memory_mb: 64 }
const FLOW = 2 ** 32
const turn = (overrides: Partial<Turn> = {}): Turn => ({
  flow: FLOW,
  weight: 1,
  jobs: 4,
  predicted_ms: 400,
  floors: { 10: 100 },
  ...overrides,
})
const NEWS: ClaimNews = {
  turns: [turn()],
  found: null,
  emptied: null,
  looked_up_to: null,
  careful: false,
  reserved: false,
  contended: false,
}
const claimed = (count: number): ClaimedJob[] => Array.from({ length: count }, () => ({}) as ClaimedJob)

const setUp = (options: { slots?: number; cpuUnits?: number; memoryMb?: number; policy?: Policy } = {}) => {
  const { slots = 4, cpuUnits = slots, memoryMb = 1_000, policy = 'learned' } = options
  const state: { unstarted: number; ms: number; held: HeldJob[] } = { unstarted: 0, ms: 0, held: [] }
  const capacity = createCapacity({ slots, cpuUnits, memoryMb })
  const planner = createClaimPlanner({
    types: ['test'],
    policy,
    capacity,
    jobs: () => ({ unstarted: () => state.unstarted, held: () => state.held }) as HeldJobs,
    now: () => state.ms,
  })
  const plan = (recording = false) => planner.plan({ stopping: false, recording })
  const observe = (jobs: ClaimedJob[], news: Partial<ClaimNews> = {}) =>
    planner.observe({ news: { ...NEWS, ...news }, claimed: jobs, claim: plan() })
  return { state, capacity, planner, plan, observe }
}

test('a worker claims what it can start, and nothing ahead of an empty queue', () => {
  const { plan } = setUp()
  const { limit, newestRank, ahead } = plan()
  assert.deepEqual([limit, newestRank, ahead], [4, true, 0])
})

test('while claims come back full it holds as much again, and never more', () => {
  const { state, capacity, plan, observe } = setUp()
  observe(claimed(4))
  for (let n = 0; n < 4; n++) capacity.take(SMALL)
  assert.deepEqual([plan(true).limit, plan(true).ahead], [4, 4])
  state.unstarted = 3
  assert.equal(plan(true).limit, 1)
  state.unstarted = 4
  assert.equal(plan(true).limit, 0)
})

test('of jobs that run long fewer are held ahead, or none', () => {
  const { capacity, plan, planner, observe } = setUp()
  observe(claimed(4))
  for (let n = 0; n < 4; n++) capacity.take(SMALL)
  planner.attemptEnded(20)
  assert.equal(plan(true).limit, 2)
  for (let n = 0; n < 20; n++) planner.attemptEnded(1_000)
  assert.equal(plan(true).limit, 0)
  for (let n = 0; n < 60; n++) planner.attemptEnded(1)
  assert.equal(plan(true).limit, 4)
})

test('one claim takes no more than a thousand', () => {
  const { plan, planner, observe } = setUp({ slots: 1_500, memoryMb: 1_000_000 })
  assert.equal(plan().limit, 1_000)
  observe(claimed(1_000))
  assert.ok(planner.mayClaimMore())
})

test('to hold more ahead is worth no statement of its own', () => {
  const { capacity, plan, observe } = setUp()
  observe(claimed(4))
  for (let n = 0; n < 4; n++) capacity.take(SMALL)
  assert.equal(plan(false).limit, 0)
})

test('nothing is claimed ahead after a claim came back short, while others are idle, or beside a reservation', () => {
  const short = setUp()
  short.observe(claimed(4))
  short.observe(claimed(3))
  assert.equal(short.plan().limit, 4)

  const kind = setUp()
  kind.observe(claimed(4))
  kind.planner.othersAreIdle()
  assert.equal(kind.plan().limit, 4)
  kind.state.ms = 2_001
  assert.equal(kind.plan().limit, 8, 'only for a while')

  const reserving = setUp()
  reserving.observe(claimed(4), { reserved: true })
  assert.equal(reserving.plan().limit, 4)
})

test('a stopping worker claims nothing', () => {
  const { planner } = setUp()
  assert.equal(planner.plan({ stopping: true, recording: true }).limit, 0)
})

test('no more is claimed than fits of the default size', () => {
  const capacity = { slots: 8, cpuUnits: 3 }
  const { plan } = setUp(capacity)
  assert.equal(plan().limit, 3)
})

test('a worker with fewer cpu units than slots holds ahead what it can run, and no more', () => {
  const { state, capacity, plan, observe } = setUp({ slots: 10, cpuUnits: 4 })
  observe(claimed(4))
  for (let n = 0; n < 4; n++) capacity.take(SMALL)
  assert.equal(plan(true).limit, 4)
  state.unstarted = 4
  assert.equal(plan(true).limit, 0)
})

test('first in, first out looks at age alone', () => {
  const { plan } = setUp({ policy: 'fifo' })
  const { fifo, limit } = plan()
  assert.deepEqual([fifo, limit], [true, 4])
})

test('a full claim raises the floors, unless jobs may have been passed over', () => {
  const floorsAfter = (news: Partial<ClaimNews>) => {
    const { planner, plan, observe } = setUp()
    // The oldest have had their share for long.
    const claim = { ...plan(), fifo: true }
    planner.observe({ claim, claimed: claimed(4), news: { ...NEWS, turns: [turn({ predicted_ms: 1e6 })] } })
    observe(claimed(plan().limit), news)
    return plan().flows[0]?.floors
  }
  assert.equal(floorsAfter({ turns: [turn({ floors: null })] })?.length, 1)
  assert.deepEqual(floorsAfter({})?.[1], { lane: 10, key: 100 })
})

test('the oldest jobs get their share of the predicted work, measured over time', () => {
  const age = createAgeShare(0.25)
  let agedMs = 0
  let totalMs = 0
  for (let n = 0; n < 400; n++) {
    const order = age.isDue() ? 'age' : 'rank'
    const predictedMs = order === 'age' ? 5_000 : 400
    totalMs += predictedMs
    if (order === 'age') agedMs += predictedMs
    age.observe(order, predictedMs)
  }
  const share = agedMs / totalMs
  assert.ok(share > 0.2 && share < 0.35, `${share}`)
})

test('oldest jobs that went by rank have had that much of their share, and little more is remembered', () => {
  const age = createAgeShare(0.25)
  age.observe('rank', 1_000)
  assert.equal(age.isDue(), true)
  age.observe('rank', 1_000, 1_000)
  assert.equal(age.isDue(), false)
  for (let n = 0; n < 100; n++) age.observe('rank', 1_000, 1_000)
  let free = 0
  for (; !age.isDue(); free++) age.observe('rank', 1_000)
  assert.ok(free >= 4 && free <= 10, `${free} claims`)
})

test('every claim goes by age or by rank, as the share says', () => {
  const { plan, planner } = setUp()
  const orders: string[] = []
  for (let n = 0; n < 40; n++) {
    const claim = plan()
    orders.push(claim.flows[0]?.oldestFirst ? 'age' : 'rank')
    planner.observe({ claim, claimed: claimed(4), news: { ...NEWS, turns: [turn()] } })
  }
  const aged = orders.filter((order) => order === 'age').length
  assert.ok(aged >= 9 && aged <= 11, orders.join(' '))
})

test('a share that was not used in the past is not paid out for ever', () => {
  const age = createAgeShare(0.25)
  for (let n = 0; n < 1_000; n++) age.observe('rank', 3_600_000)
  let paid = 0
  for (; age.isDue(); paid++) age.observe('age', 3_600_000)
  assert.ok(paid < 15, `${paid} hours of 1,000`)
})

test('a job of the oldest that took longer than predicted counts for what it took', () => {
  const age = createAgeShare(0.25)
  age.observe('rank', 75_000)
  assert.ok(age.isDue())
  age.observe('age', 1_000)
  assert.ok(age.isDue(), 'a second is not a quarter')
  age.correct('age', 60_000)
  assert.ok(!age.isDue(), 'a minute is')
})

test('capacity is what is free of slots, cpu and memory, and comes back whole', () => {
  const capacity = createCapacity({ slots: 3, cpuUnits: 1, memoryMb: 100 })
  const third = { cpu_units: 0.1, memory_mb: 30 }
  for (let n = 0; n < 3; n++) {
    assert.equal(capacity.fits(third), true)
    capacity.take(third)
  }
  assert.equal(capacity.fits({ cpu_units: 0, memory_mb: 0 }), false, 'no slot')
  for (let n = 0; n < 3; n++) capacity.release(third)
  assert.deepEqual(capacity.free(), { slots: 3, cpuUnits: 1, memoryMb: 100 })
  assert.equal(capacity.fits({ cpu_units: 2, memory_mb: 1 }), false)
  assert.equal(capacity.fits({ cpu_units: 1, memory_mb: 101 }), false)
})

test('a claim that another one kept from counting is repeated', () => {
  const { planner, observe } = setUp()
  observe(claimed(1), { contended: true })
  assert.equal(planner.mayClaimMore(), true)
  observe(claimed(1))
  assert.equal(planner.mayClaimMore(), false)
})

test('a small claim is ranked again, unless jobs take milliseconds', () => {
  const { plan, planner } = setUp()
  assert.equal(plan().newestRank, true)
  for (let n = 0; n < 60; n++) planner.attemptEnded(1)
  assert.equal(plan().newestRank, false)
  assert.equal(setUp({ slots: 100, memoryMb: 100_000 }).plan().newestRank, false)
})
