import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attempt } from '../../functions/dashboard/api/answers.ts'
import { ticksOf, timelineOf } from '../../functions/dashboard/views/job/timeline.ts'

const START = Date.parse('2026-01-01T00:00:00.000Z')
const at = (seconds: number): string => new Date(START + seconds * 1_000).toISOString()
const since = (ms: number): number => (ms - START) / 1_000

const job = (fields: Partial<Parameters<typeof timelineOf>[0]> = {}) => ({
  status: 'completed' as const,
  depends_on: [] as string[],
  created_at: at(0),
  run_at: null,
  finished_at: null,
  deadline: null,
  prediction: { p50_ms: 2_000, p90_ms: 4_000, source: 'type' as const, model_version: null },
  eta: null,
  ...fields,
})

const attempt = (outcome: Attempt['outcome'], from: number, to: number | null): Attempt => ({
  attempt: 1,
  outcome,
  error: null,
  worker_id: 'w',
  started_at: at(from),
  finished_at: to === null ? null : at(to),
  runtime_ms: to === null ? null : (to - from) * 1_000,
})

const waitsOf = (...args: Parameters<typeof timelineOf>) =>
  timelineOf(...args).waits.map(({ kind, fromMs, toMs, open }) => [kind, since(fromMs), since(toMs), open])

test('what is between attempts is named by how the one before ended', () => {
  const attempts = [
    attempt('failed', 1, 2),
    attempt('lost', 5, 6),
    attempt('snoozed', 7, 8),
    attempt('completed', 9, 10),
  ]
  assert.deepEqual(waitsOf(job({ finished_at: at(10) }), attempts, START + 60_000), [
    ['queued', 0, 1, false],
    ['backoff', 2, 5, false],
    ['queued', 6, 7, false],
    ['snoozed', 8, 9, false],
  ])
})

test('a job does not stand in the queue before its run_at', () => {
  const delayed = job({ status: 'pending', run_at: at(30) })
  assert.deepEqual(waitsOf(delayed, [], START + 10_000), [['delayed', 0, 10, true]])
  const ran = job({ run_at: at(30), finished_at: at(33) })
  assert.deepEqual(waitsOf(ran, [attempt('completed', 32, 33)], START + 60_000), [
    ['delayed', 0, 30, false],
    ['queued', 30, 32, false],
  ])
})

test('a job that others kept has not only been in the queue', () => {
  const child = { depends_on: ['01a1eb12-3936-72d9-a3a4-3cf6c9c083b0'] }
  const blocked = job({ ...child, status: 'blocked' })
  assert.deepEqual(waitsOf(blocked, [], START + 5_000), [['blocked', 0, 5, true]])
  const ran = job({ ...child, finished_at: at(7) })
  assert.deepEqual(waitsOf(ran, [attempt('completed', 6, 7)], START + 60_000), [['waited', 0, 6, false]])
})

test('a job that waits to be tried again waits until now', () => {
  const waits = waitsOf(job({ status: 'retrying' }), [attempt('failed', 1, 2)], START + 9_000)
  assert.deepEqual(waits.at(-1), ['backoff', 2, 9, true])
})

test('a job that was cancelled before it ran has waited until then', () => {
  const cancelled = job({ status: 'cancelled', finished_at: at(4) })
  assert.deepEqual(waitsOf(cancelled, [], START + 60_000), [['queued', 0, 4, false]])
})

test('an attempt that runs ends now, and is expected to end by its prediction', () => {
  const { runs, expected, marks } = timelineOf(
    job({ status: 'running' }),
    [attempt('running', 3, null)],
    START + 4_000,
  )
  assert.deepEqual(
    runs.map(({ toMs, open }) => [since(toMs), open]),
    [[4, true]],
  )
  assert.deepEqual(
    expected.map(({ kind, atMs }) => [kind, since(atMs)]),
    [
      ['p50', 5],
      ['p90', 7],
    ],
  )
  assert.deepEqual(
    marks.map(({ kind }) => kind),
    ['now'],
  )
})

test('what waits is expected from when it will probably start', () => {
  const eta = { start_at: at(8), finish_p50_at: at(10), finish_p90_at: at(12) }
  const { marks, expected, toMs } = timelineOf(job({ status: 'ready', eta }), [], START + 6_000)
  assert.deepEqual(
    marks.map(({ kind, atMs }) => [kind, since(atMs)]),
    [
      ['now', 6],
      ['start', 8],
    ],
  )
  assert.deepEqual(
    expected.map(({ atMs }) => since(atMs)),
    [10, 12],
  )
  assert.ok(since(toMs) >= 12)
})

test('a deadline far away does not make the rest too small to see', () => {
  const { toMs } = timelineOf(
    job({ deadline: at(86_400), finished_at: at(4) }),
    [attempt('completed', 1, 4)],
    START + 5_000,
  )
  assert.ok(since(toMs) < 12)
})

test('the axis has a few round times', () => {
  const ticks = (seconds: number) => ticksOf({ fromMs: 0, toMs: seconds * 1_000 }).map((ms) => ms / 1_000)
  assert.deepEqual(ticks(10), [0, 2, 4, 6, 8, 10])
  assert.deepEqual(ticks(100), [0, 30, 60, 90])
  assert.deepEqual(ticks(0.004), [0, 0.001, 0.002, 0.003, 0.004])
  for (const seconds of [0.3, 7, 61, 4_000, 90_000, 5e6, 9e7]) {
    assert.ok(ticks(seconds).length >= 2 && ticks(seconds).length <= 7, `${seconds}: ${ticks(seconds)}`)
  }
})
