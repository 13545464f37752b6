import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compressArrivals } from '../../worker-runtime/backtest/arrivals.ts'
import type { PastJob } from '../../worker-runtime/backtest/history.ts'
import type { Policy } from '../../worker-runtime/backtest/policies.ts'
import { createPolicy } from '../../worker-runtime/backtest/policies.ts'
import { createReadyQueue, type Queued } from '../../worker-runtime/backtest/ready-queue.ts'
import { simulate } from '../../worker-runtime/backtest/simulation.ts'

const job = (n: number, overrides: Partial<PastJob> = {}): PastJob => ({
  id: String(n),
  submitS: n,
  waitS: 0,
  runtimeMs: 10_000,
  type: 'a',
  name: 'a',
  org: 'o',
  cpu: 0,
  memoryMb: 0,
  requestedMs: 0,
  payloadSize: 0,
  dependsOn: [],
  ...overrides,
})

const run = (jobs: PastJob[], policy: Policy, workers = 1): number[] => [
  ...simulate({
    jobs,
    submitS: Float64Array.from(jobs, ({ submitS }) => submitS),
    workers,
    slots: 1,
    policy,
    onProgress: () => {},
  }),
]

const options = { seed: 1, floorMs: 10 }

test('first in, first out waits for what came before', () => {
  const waits = run([job(0), job(1), job(2)], createPolicy('fifo', options))
  assert.deepEqual(waits, [0, 9, 18])
})

test('the oracle lets a short job overtake a long one that waits', () => {
  const jobs = [job(0), job(1, { runtimeMs: 100_000 }), job(2, { runtimeMs: 1_000 })]
  assert.deepEqual(run(jobs, createPolicy('oracle', options)), [0, 10, 8])
})

test('a job does not start before what it depends on has ended, and waits from then on', () => {
  const jobs = [job(0), job(1, { dependsOn: ['0'] }), job(2)]
  assert.deepEqual(run(jobs, createPolicy('fifo', options), 2), [0, 0, 0])
})

test('a policy hears of an end before it is asked about what is submitted after it', () => {
  const heard: string[] = []
  const policy: Policy = {
    ageShare: 1,
    hasShares: false,
    submit: ({ id }) => {
      heard.push(`submit ${id}`)
      return { series: '', rank: () => 0, predictedMs: 1 }
    },
    end: (_, { id }) => {
      heard.push(`end ${id}`)
      return undefined
    },
  }
  run([job(0), job(10), job(11)], policy)
  assert.deepEqual(heard.slice(0, 4), ['submit 0', 'end 0', 'submit 10', 'submit 11'])
})

/** Runtimes are known. */
const withShares: Policy = {
  ageShare: 0,
  hasShares: true,
  submit: ({ runtimeMs }) => ({ series: '', rank: () => 0, predictedMs: runtimeMs }),
  end: () => undefined,
}

test('organisations with long and short jobs share the workers by weight', () => {
  const long = Array.from({ length: 60 }, () => job(0, { org: 'long', runtimeMs: 34_000 }))
  const short = Array.from({ length: 2_000 }, () => job(0, { org: 'short', runtimeMs: 1_000 }))
  const jobs = [...long, ...short]
  const waits = simulate({
    jobs,
    submitS: new Float64Array(jobs.length),
    workers: 2,
    slots: 3,
    policy: withShares,
    weightOf: (org) => (org === 'long' ? 1 : 2),
    onProgress: () => {},
  })
  const startedOf = (from: number, to: number): number =>
    waits.slice(from, to).filter((wait) => wait < 300).length
  // Two slots of six for five minutes, and four.
  assert.ok(Math.abs(startedOf(0, 60) * 34 - 600) <= 2 * 34)
  assert.ok(Math.abs(startedOf(60, jobs.length) - 1_200) <= 2 * 34)
})

test('whoever comes to a backlog of others waits for the next slot, not for the backlog', () => {
  const backlog = Array.from({ length: 50 }, () => job(0, { org: 'first' }))
  const jobs = [...backlog, job(25, { org: 'second' })]
  assert.equal(run(jobs, withShares).at(-1), 5)
  assert.equal(run(jobs, { ...withShares, hasShares: false }).at(-1), 475)
})

test('arrivals are compressed to the load', () => {
  const jobs = Array.from({ length: 101 }, (_, n) => job(n * 1000))
  const submitS = compressArrivals(jobs, { load: 0.5, workers: 4, burst: false })
  const workS = 101 * 10
  assert.ok(Math.abs(workS / (4 * (submitS.at(-1) ?? 0)) - 0.5) < 1e-9)
})

test('a burst brings a tenth of the jobs four times as fast', () => {
  const jobs = Array.from({ length: 100 }, (_, n) => job(n))
  const gaps = (burst: boolean): number[] => {
    const submitS = compressArrivals(jobs, { load: 1, workers: 10, burst })
    return [...submitS].slice(1).map((at, n) => at - (submitS[n] ?? 0))
  }
  const usual = gaps(false)
  const faster = gaps(true).filter((gap, n) => gap < 0.5 * (usual[n] ?? 0))
  assert.equal(faster.length, 10)
})

test('queued jobs move when the estimate of their series has moved', () => {
  const queue = createReadyQueue<Queued & { name: string }>()
  let slowRank = 1
  const add = (name: string, rank: () => number) =>
    queue.add({ name, series: name, rank, lane: 0, key: 0, taken: false })
  add('slow', () => slowRank)
  for (let n = 0; n < 200; n++) add('other', () => 2)
  slowRank = 3
  queue.rescore('slow')
  assert.equal(queue.takeFirst()?.name, 'other')
  assert.equal(queue.takeOldest()?.name, 'slow')
  assert.equal(queue.size(), 199)
})

test('what the newest estimates say decides among the first candidates, also before anything was moved', () => {
  const queue = createReadyQueue<Queued & { name: string }>()
  let rank = 1
  queue.add({ name: 'turned slow', series: 'a', rank: () => rank, lane: 0, key: 0, taken: false })
  queue.add({ name: 'steady', series: 'b', rank: () => 2, lane: 0, key: 0, taken: false })
  rank = 3
  assert.equal(queue.takeFirst()?.name, 'steady')
})
