import assert from 'node:assert/strict'
import { test } from 'node:test'
import { estimateEtas } from '../../functions/prediction/eta/eta.ts'
import { etaInQueue, sumAhead } from '../../functions/prediction/eta/place.ts'
import {
  addToQueue,
  advanceQueue,
  type LaneSum,
  type OthersSum,
  type QueueSnapshot,
} from '../../functions/prediction/eta/queue-snapshot.ts'

const queue = (overrides: Partial<QueueSnapshot> = {}): QueueSnapshot => ({
  slots: 2,
  runningRemainingMs: [],
  lanes: [],
  weight: 1,
  timeMs: 0,
  others: [],
  ageShare: 0.25,
  recent: [],
  stretch: 1,
  ...overrides,
})
const lane = (number: number, jobs: number, predictedMs: number): LaneSum => ({
  lane: number,
  jobs,
  predictedMs,
})
const job = (number: number, p50Ms = 100, notBeforeMs = 0) => ({
  lane: number,
  p50Ms,
  p90Ms: 2 * p50Ms,
  notBeforeMs,
})
const startsOf = (snapshot: QueueSnapshot, ...jobs: ReturnType<typeof job>[]) =>
  estimateEtas(snapshot, jobs).map((eta) => eta && Math.round(eta.startP50Ms))

test('without a worker nothing is promised', () => {
  assert.deepEqual(estimateEtas(queue({ slots: 0 }), [job(0)]), [null])
})

test('a job that meets a free slot starts at once, and ends after its own time', () => {
  assert.deepEqual(estimateEtas(queue({ runningRemainingMs: [500] }), [job(0)]), [
    { startP50Ms: 0, finishP50Ms: 100, finishP90Ms: 950 },
  ])
})

test('a job waits for the slot that is free first', () => {
  assert.deepEqual(startsOf(queue({ runningRemainingMs: [500, 300] }), job(0)), [300])
  assert.deepEqual(startsOf(queue({ runningRemainingMs: [500, 300, 700] }), job(0)), [300])
})

test('lower lanes and what stands in its own go before it, higher ones do not', () => {
  const lanes = [lane(1, 2, 200), lane(5, 2, 400)]
  const noAge = { ageShare: 0 }
  assert.deepEqual(startsOf(queue({ lanes, ...noAge }), job(0)), [0])
  assert.deepEqual(startsOf(queue({ lanes, ...noAge }), job(1)), [100])
  assert.deepEqual(startsOf(queue({ lanes, ...noAge }), job(5)), [300])
})

test('while it waits the oldest take their share from behind it, and no more than there is', () => {
  const ahead = lane(1, 30, 30_000)
  assert.deepEqual(startsOf(queue({ lanes: [ahead] }), job(3)), [15_000])
  assert.deepEqual(startsOf(queue({ lanes: [ahead, lane(9, 90, 90_000)] }), job(3)), [20_000])
  assert.deepEqual(startsOf(queue({ lanes: [ahead, lane(9, 6, 6000)] }), job(3)), [18_000])
  assert.deepEqual(startsOf(queue({ lanes: [ahead, lane(9, 90, 90_000)] }), job(9)), [60_000], 'all is ahead')
  assert.deepEqual(startsOf(queue({ lanes: [ahead, lane(9, 6, 6000)], ageShare: 1 }), job(3)), [18_000])
})

test('jobs that are submitted together stand behind each other by lane, and in one lane in their order', () => {
  const snapshot = queue({ slots: 1 })
  assert.deepEqual(startsOf(snapshot, job(3), job(1), job(3)), [100, 0, 200])
})

test('a job that must not start yet takes nobody a slot, and only its queueing is uncertain', () => {
  const snapshot = queue({ slots: 1 })
  assert.deepEqual(startsOf(snapshot, job(1, 100, 5000), job(2)), [5000, 0])
  const [eta] = estimateEtas(snapshot, [job(1, 100, 5000)])
  assert.deepEqual(eta, { startP50Ms: 5000, finishP50Ms: 5100, finishP90Ms: 5950 })
})

test('a job in the queue waits for what was counted ahead of it', () => {
  const snapshot = queue({ slots: 1, lanes: [lane(2, 10, 1000)], ageShare: 0 })
  assert.equal(etaInQueue(snapshot, job(2), { jobs: 3, predictedMs: 300, counted: true })?.startP50Ms, 300)
})

test('more than was counted is told by the lower lanes and the place in the own', () => {
  const lanes = [lane(1, 10, 1000), lane(2, 8, 800), lane(3, 5, 500)]
  assert.deepEqual(sumAhead(lanes, 2, 0.25), { jobs: 12, predictedMs: 1200, counted: false })
})

test('a queue that was looked at a while ago has gone on since', () => {
  const then = queue({ runningRemainingMs: [300, 900], lanes: [lane(1, 4, 400), lane(2, 2, 1000)] })
  const now = advanceQueue(then, 600)
  assert.deepEqual(now.runningRemainingMs, [100, 300], 'the last of lane 1 has just begun')
  assert.deepEqual(now.lanes, [lane(2, 2, 1000)])
  assert.deepEqual(advanceQueue(then, 1e6), { ...then, runningRemainingMs: [], lanes: [], timeMs: 1400 })
})

test('a slot that is free takes who waits, however high the lane', () => {
  const now = advanceQueue(queue({ slots: 2, lanes: [lane(3, 3, 3000)] }), 0)
  assert.deepEqual([now.runningRemainingMs, now.lanes], [[1000, 1000], [lane(3, 1, 1000)]])
  assert.deepEqual(startsOf(now, job(1)), [1000])
})

test('very many short jobs run dry at the same rate', () => {
  const then = queue({ slots: 4, lanes: [lane(1, 100_000, 100_000)] })
  const { lanes } = advanceQueue(then, 5_000)
  assert.ok(Math.abs((lanes[0]?.predictedMs ?? 0) - 80_000) < 10, `${lanes[0]?.predictedMs} ms`)
})

test('what keeps coming in lower lanes makes a wait longer, the share of the oldest bounds it', () => {
  const lanes = [lane(1, 30, 30_000)]
  const withRecent = (...recent: { lane: number; load: number }[]) =>
    startsOf(queue({ lanes, recent }), job(3))
  assert.deepEqual(withRecent(), [15_000])
  assert.deepEqual(
    withRecent({ lane: 3, load: 1 }, { lane: 9, load: 5 }),
    [15_000],
    'behind it, or in its own',
  )
  assert.deepEqual(withRecent({ lane: 1, load: 0.5 }, { lane: 2, load: 0.5 }), [30_000])
  assert.deepEqual(withRecent({ lane: 1, load: 9 }), [60_000])
  assert.deepEqual(startsOf(queue({ recent: [{ lane: 1, load: 9 }] }), job(3)), [0], 'a slot is free')
})

const others = (predictedMs: number, overrides: Partial<OthersSum> = {}): OthersSum => ({
  ...{ jobs: predictedMs / 100, predictedMs, weight: 1, load: 0, timeMs: 0 },
  ...overrides,
})

test('other organisations are given their share of what the organisation is given, and no more than they have', () => {
  const lanes = [lane(1, 100, 10_000)]
  const waitWith = (...list: OthersSum[]) => startsOf(queue({ lanes, others: list, ageShare: 0 }), job(3))
  assert.deepEqual(waitWith(), [5_000])
  assert.deepEqual(waitWith(others(4_000)), [7_000], 'all that it has')
  assert.deepEqual(waitWith(others(90_000)), [10_000], 'as much as the organisation itself')
  assert.deepEqual(waitWith(others(90_000, { weight: 3 })), [20_000], 'three times as much')
  assert.deepEqual(waitWith(others(90_000), others(2_000), others(30_000)), [16_000])
  const heavy = queue({ lanes, weight: 2, others: [others(90_000)], ageShare: 0 })
  assert.deepEqual(startsOf(heavy, job(3)), [7_500], 'half as much')
})

test('an organisation with nothing waiting takes the next free slot, however much others have', () => {
  const snapshot = queue({ runningRemainingMs: [300, 500], others: [others(1e9)] })
  assert.deepEqual(startsOf(snapshot, job(90)), [300])
  assert.deepEqual(
    startsOf(queue({ slots: 1, others: [others(1e9)] }), job(1), job(1)),
    [0, 200],
    'then they take turns',
  )
})

test('others go on submitting, within their shares', () => {
  const lanes = [lane(1, 100, 10_000)]
  const busy = (load: number) =>
    startsOf(queue({ lanes, others: [others(0, { load })], ageShare: 0 }), job(3))
  assert.deepEqual(busy(0.5), [6_667])
  assert.deepEqual(busy(1.9), [10_000], 'as much as the organisation itself')
})

test('while time goes by, free slots take the jobs of all by turns', () => {
  const then = queue({ slots: 1, lanes: [lane(1, 4, 400)], others: [others(400, { weight: 3 })] })
  const now = advanceQueue(then, 399)
  assert.deepEqual(
    [now.lanes, now.others[0]?.predictedMs, now.runningRemainingMs],
    [[lane(1, 3, 300)], 100, [1]],
  )
  const twice = advanceQueue(advanceQueue(then, 150), 249)
  assert.deepEqual(twice, now, 'whether it is looked at in between or not')
  const { lanes, others: left } = advanceQueue(
    queue({
      slots: 1,
      lanes: [lane(1, 90_000, 90_000)],
      others: [others(90_000, { jobs: 90_000, weight: 2 })],
    }),
    30_000,
  )
  assert.deepEqual(
    [lanes[0]?.predictedMs, left[0]?.predictedMs].map((ms) => Math.round((ms ?? 0) / 100)),
    [800, 700],
  )
})

test('an organisation that was idle has no credit when it begins to wait', () => {
  const then = queue({ slots: 1, others: [others(9_000), others(6_000)] })
  const now = advanceQueue(then, 4_000)
  assert.deepEqual(
    startsOf(addToQueue(now, [job(1, 1_000)]), job(3)).map((ms) => Math.round((ms ?? 0) / 100)),
    [30],
  )
})

test('work takes as much longer as it took lately, whoever does it', () => {
  const lanes = [lane(1, 4, 4000)]
  assert.deepEqual(startsOf(queue({ lanes, stretch: 1.5 }), job(3), job(4)), [3000, 3000])
  assert.deepEqual(startsOf(queue({ slots: 1, stretch: 1.5 }), job(3), job(4)), [0, 150])
  const later = advanceQueue(queue({ lanes, stretch: 1.5 }), 1000)
  assert.deepEqual([later.runningRemainingMs, later.lanes], [[500, 500], [lane(1, 2, 2000)]])
})

test('jobs that have just been submitted stand in the queue for the next', () => {
  const before = queue({ slots: 1, lanes: [lane(2, 1, 100)] })
  const after = addToQueue(before, [job(2), job(1, 50)])
  assert.deepEqual(after.lanes, [lane(1, 1, 50), lane(2, 2, 200)])
  assert.deepEqual(startsOf({ ...after, ageShare: 0 }, job(2)), [250])
})

test('a thousand jobs behind a million, among forty levels of others, cost a few milliseconds', () => {
  const lanes = Array.from({ length: 150 }, (_, n) => lane(n, 6667, 6_667_000))
  const jobs = Array.from({ length: 1000 }, (_, n) => job(n % 150))
  const levels = Array.from({ length: 40 }, (_, n) => others(1000 * 1.25 ** n, { load: 0.3 }))
  const runningRemainingMs = Array.from({ length: 80 }, (_, n) => n)
  const snapshot = queue({
    slots: 80,
    runningRemainingMs,
    lanes,
    others: levels,
    recent: [{ lane: 1, load: 20 }],
  })
  const began = performance.now()
  for (let n = 0; n < 20; n++) estimateEtas(snapshot, jobs)
  const eachMs = (performance.now() - began) / 20
  assert.ok(eachMs < 40, `${eachMs} ms`)
})

/** Draws of a normal distribution that a seed decides. */
const createNormal = (seed: number) => {
  let state = seed
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state + 0.5) / 2 ** 32
  }
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())
}

/** A queue that runs dry job by job, each off its median by `sigma` in ln(runtime). */
const runQueue = (slots: number, ahead: number, sigma: number, normal: () => number) => {
  const free = Array.from({ length: slots }, () => 0)
  const run = (): number => {
    free.sort((a, b) => a - b)
    const start = free[0] ?? 0
    free[0] = start + 100 * Math.exp(sigma * normal())
    return start
  }
  for (let n = 0; n < ahead; n++) run()
  const start = run()
  return { start, end: Math.max(...free.filter((at) => at > start)) }
}

test('against queues that are simulated job by job, the start is near and nine of ten end in time', () => {
  const normal = createNormal(7)
  for (const [slots, ahead] of [
    [1, 3],
    [4, 12],
    [4, 60],
    [16, 200],
  ] as const) {
    const meanMs = 100 * Math.exp(0.8 ** 2 / 2)
    const snapshot = queue({ slots, lanes: [lane(0, ahead, ahead * meanMs)] })
    const p90Ms = 100 * Math.exp(1.2816 * 0.8)
    const [eta] = estimateEtas(snapshot, [{ lane: 0, p50Ms: 100, p90Ms }])
    assert.ok(eta)
    const starts: number[] = []
    let inTime = 0
    for (let n = 0; n < 2000; n++) {
      const { start } = runQueue(slots, ahead, 0.8, normal)
      starts.push(start)
      if (start + 100 * Math.exp(0.8 * normal()) <= eta.finishP90Ms) inTime++
    }
    const median = starts.sort((a, b) => a - b)[1000] ?? 0
    const what = `${slots} slots, ${ahead} ahead: ${median} against ${eta.startP50Ms}, ${inTime / 2000} in time`
    assert.ok(Math.abs(median - eta.startP50Ms) < 0.35 * eta.startP50Ms, what)
    assert.ok(inTime / 2000 > 0.88, what)
  }
})
