import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndedAttemptRow } from '../../db/queries/analytics-gain.ts'
import { type PastAttempt, replay } from '../../worker-runtime/analytics/replay.ts'
import { weighOrder } from '../../worker-runtime/analytics/scheduling-gain.ts'

/** Ready at, started at, ran for: in seconds. */
const attempt = (ready: number, start: number, ran: number): PastAttempt => ({
  readyMs: ready * 1_000,
  startMs: start * 1_000,
  endMs: (start + ran) * 1_000,
})

const seconds = (waits: Float64Array): number[] => [...waits].map((ms) => ms / 1_000)

/** On one slot: one runs, then the short ones that came later, then the long one. */
const SHORTEST_FIRST = [attempt(0, 0, 10), attempt(1, 14, 100), attempt(2, 10, 2), attempt(3, 12, 2)]

test('in the order as run everything starts when it did', () => {
  const waits = replay(SHORTEST_FIRST, [{ atMs: -1, slots: 1 }], 'as-run')
  assert.deepEqual(seconds(waits), [0, 13, 8, 9])
})

test('first in, first out the long one holds up the short ones', () => {
  const waits = replay(SHORTEST_FIRST, [{ atMs: -1, slots: 1 }], 'fifo')
  assert.deepEqual(seconds(waits), [0, 9, 108, 109])
})

test('without a known number of slots there were as many as were busy', () => {
  assert.deepEqual(seconds(replay(SHORTEST_FIRST, [], 'as-run')), [0, 13, 8, 9])
})

test('slots that come and go are there when they were', () => {
  const jobs = [attempt(0, 0, 10), attempt(0, 5, 10), attempt(0, 15, 10)]
  const changes = [
    { atMs: -1, slots: 1 },
    { atMs: 5_000, slots: 2 },
    { atMs: 8_000, slots: 1 },
  ]
  assert.deepEqual(seconds(replay(jobs, changes, 'fifo')), [0, 5, 15])
})

test('of jobs that became ready together the first comes first', () => {
  const jobs = [attempt(0, 2, 100), attempt(0, 0, 1), attempt(0, 1, 1)]
  assert.deepEqual(seconds(replay(jobs, [{ atMs: -1, slots: 1 }], 'fifo')), [0, 100, 101])
})

const rowsOf = (attempts: readonly PastAttempt[], org_id = 'a'): EndedAttemptRow[] =>
  attempts.map(({ readyMs, startMs, endMs }) => ({
    org_id,
    ready_ms: readyMs,
    start_ms: startMs,
    end_ms: endMs,
    first: true,
  }))

const ONE_SLOT = { slots: [{ at_ms: -1, slots: 1 }], running_ms: [] }
const breathe = async (): Promise<void> => {}

test('shortest first is worth what it saves', async () => {
  const [gain, ...more] = await weighOrder(rowsOf(SHORTEST_FIRST), ONE_SLOT, breathe)
  assert.deepEqual(more, [])
  assert.deepEqual(gain, {
    org_id: 'a',
    at_ms: 0,
    jobs: 4,
    wait_ms: 30_000,
    fifo_wait_ms: 226_000,
    max_wait_ms: 13_000,
    fifo_max_wait_ms: 109_000,
  })
})

test('first in, first out is worth nothing', async () => {
  const jobs = [attempt(0, 0, 10), attempt(1, 10, 100), attempt(2, 110, 2), attempt(3, 112, 2)]
  const gains = await weighOrder(rowsOf(jobs), ONE_SLOT, breathe)
  const total = (key: 'wait_ms' | 'fifo_wait_ms') => gains.reduce((sum, one) => sum + one[key], 0)
  assert.equal(total('fifo_wait_ms'), total('wait_ms'))
})

test('what has nothing to do with the order is in both: a wait in front of free slots', async () => {
  const jobs = [attempt(0, 60, 1), attempt(0, 61, 1)]
  const capacity = { slots: [{ at_ms: -1, slots: 10 }], running_ms: [] }
  const [gain] = await weighOrder(rowsOf(jobs), capacity, breathe)
  assert.deepEqual([gain?.wait_ms, gain?.fifo_wait_ms], [121_000, 121_000])
})

test('a slot in which a job still runs is not there', async () => {
  // Two slots, and one of them taken by what has not ended yet.
  const capacity = { slots: [{ at_ms: -1, slots: 2 }], running_ms: [-1] }
  const [gain] = await weighOrder(rowsOf(SHORTEST_FIRST), capacity, breathe)
  assert.equal(gain?.fifo_wait_ms, 226_000)
})

test('organisations share the slots, and each has its own waits', async () => {
  const rows = rowsOf(SHORTEST_FIRST).map((row, n) => ({ ...row, org_id: n === 1 ? 'long' : 'short' }))
  const gains = new Map((await weighOrder(rows, ONE_SLOT, breathe)).map((gain) => [gain.org_id, gain]))
  assert.deepEqual([gains.get('short')?.wait_ms, gains.get('short')?.fifo_wait_ms], [17_000, 217_000])
  assert.deepEqual([gains.get('long')?.wait_ms, gains.get('long')?.fifo_wait_ms], [13_000, 9_000])
})

test('later tries take slots, and their waits do not count', async () => {
  const rows = rowsOf(SHORTEST_FIRST).map((row, n) => ({ ...row, first: n !== 1 }))
  const [gain] = await weighOrder(rows, ONE_SLOT, breathe)
  assert.equal(gain?.jobs, 3)
})

test('twenty thousand attempts are replayed quickly enough to be done by the way', async () => {
  const jobs = Array.from({ length: 20_000 }, (_, n) => attempt(n / 100, n / 80, ((n * 7919) % 100) / 100))
  const startedAt = performance.now()
  replay(jobs, [{ atMs: -1, slots: 10 }], 'fifo')
  assert.ok(performance.now() - startedAt < 1_000)
})
