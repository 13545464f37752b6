import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { measureAccuracy } from '../../worker-runtime/backtest/accuracy.ts'
import type { PastJob } from '../../worker-runtime/backtest/history.ts'
import { scorePredictions, scoreWaits } from '../../worker-runtime/backtest/score.ts'
import { useWasmBackend } from '../../worker-runtime/learning/wasm-backend.ts'

before(useWasmBackend)

const jobs = (count: number, change: (n: number) => Partial<PastJob>): PastJob[] =>
  Array.from({ length: count }, (_, n) => ({
    id: String(n),
    submitS: n * 100,
    waitS: 0,
    runtimeMs: 1_000,
    type: 'a',
    name: 'a',
    org: 'o',
    cpu: 0,
    memoryMb: 0,
    requestedMs: 0,
    payloadSize: 0,
    dependsOn: [],
    ...change(n),
  }))

const measure = (history: PastJob[], skip = 0) =>
  measureAccuracy({ jobs: history, skip, floorMs: 10, seed: 1, onProgress: () => {} }).predictors

test('a job is predicted only from what had ended before it was submitted', () => {
  // The first runs so long that nothing has ended when the others are submitted: all are predicted as if nothing had run.
  const history = jobs(20, () => ({ submitS: 0, runtimeMs: 60_000 }))
  const { smartqueue } = measure(history)
  assert.ok(Math.abs(smartqueue.mean_abs_log_error - Math.log(60)) < 1e-6)
})

test('what had waited ended later', () => {
  const history = jobs(20, () => ({ runtimeMs: 60_000, waitS: 1e6 }))
  assert.ok(Math.abs(measure(history).smartqueue.mean_abs_log_error - Math.log(60)) < 1e-6)
})

test('runtimes below the floor count as the floor', () => {
  const history = jobs(200, (n) => ({ runtimeMs: n % 2 === 0 ? 1 : 9 }))
  assert.ok(measure(history, 20).smartqueue.mean_abs_log_error < 1e-9)
})

test('a series that repeats itself is predicted from the second execution on', () => {
  const { smartqueue, 'series-ewma': series } = measure(
    jobs(200, () => ({ runtimeMs: 42_000 })),
    5,
  )
  assert.ok(smartqueue.mean_abs_log_error < 0.01 && series.mean_abs_log_error < 0.01)
  assert.equal(smartqueue.within_2x, 1)
})

test('scores are what they are called', () => {
  const logs = Float64Array.of(1, 2, 3, 4)
  const score = scorePredictions(
    { p50: Float64Array.of(9, 2, 4, 3), p90: Float64Array.of(9, 1, 9, 9) },
    logs,
    1,
    0,
  )
  assert.equal(score.mean_abs_log_error, 2 / 3)
  assert.equal(score.median_abs_log_error, 1)
  assert.equal(score.within_2x, 1 / 3)
  assert.equal(score.spearman, 0.5)
  assert.equal(score.coverage, 2 / 3)
  const waits = scoreWaits(Float64Array.of(0, 10, 20, 90), Float64Array.of(10, 10, 1, 10))
  assert.deepEqual(waits, {
    mean_wait_s: 30,
    p95_wait_s: 90,
    max_wait_s: 90,
    mean_slowdown: (1 + 2 + 2.1 + 10) / 4,
  })
})
