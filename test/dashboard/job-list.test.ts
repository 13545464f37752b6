import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSummary, Page } from '../../functions/dashboard/api/answers.ts'
import {
  EMPTY,
  type JobList,
  MAX_MISSING,
  mergeEvents,
  mergePage,
  mergeTop,
  placeAbove,
} from '../../functions/dashboard/views/jobs/job-list.ts'
import { eventOf, idOf, pageOf, rowOf } from '../support/job-rows.ts'

const numbers = (list: JobList): number[] => list.rows.map(({ id }) => Number.parseInt(id.slice(-12), 16))
const NONE = {}

test('pages follow each other down to the end', () => {
  const first = mergePage(EMPTY, pageOf(9, 7), null)
  assert.deepEqual([numbers(first), first.complete], [[9, 8, 7], false])
  const second = mergePage(first, pageOf(6, 5, { last: true }), first.places.at(-1) ?? null)
  assert.deepEqual([numbers(second), second.complete], [[9, 8, 7, 6, 5], true])
})

test('a page that is read again is the truth about its stretch, and about no other', () => {
  const list = threePages()
  const again: Page<JobSummary> = { items: [rowOf(6), rowOf(4)], next_cursor: 'after 4' }
  const merged = mergePage(list, again, list.places[0] ?? null)
  assert.deepEqual(numbers(merged), [9, 8, 7, 6, 4, 3, 2, 1])
  assert.deepEqual(
    merged.places.map(({ id }) => id),
    [idOf(7), idOf(4)],
  )
  assert.equal(merged.complete, true)
})

test('an event changes its row, and every other row stays the same object', () => {
  const list = threePages()
  const merged = mergeEvents(list, [eventOf(5, 'running')], NONE)
  assert.equal(merged.rows[4]?.status, 'running')
  assert.equal(merged.rows[4]?.started_at, eventOf(5, 'running').at)
  assert.deepEqual(
    merged.rows.map((row, n) => row === list.rows[n]),
    [true, true, true, true, false, true, true, true, true],
  )
})

test('a job that ends has run until then, and one that is tried again has not', () => {
  const running = mergeEvents(threePages(), [eventOf(5, 'running', 10)], NONE)
  const done = mergeEvents(running, [eventOf(5, 'completed', 12)], NONE)
  assert.equal(done.rows[4]?.finished_at, eventOf(5, 'completed', 12).at)
  const again = mergeEvents(running, [eventOf(5, 'retrying', 12)], NONE)
  assert.equal(again.rows[4]?.started_at, null)
})

test('an event that a page has overtaken changes nothing', () => {
  const row = { ...rowOf(5), status: 'completed' as const, finished_at: eventOf(5, 'completed', 20).at }
  const list = mergePage(EMPTY, { items: [row], next_cursor: null }, null)
  assert.equal(mergeEvents(list, [eventOf(5, 'running', 10)], NONE), list)
})

test('a new job that fits is missing until the top is read again', () => {
  const list = mergeEvents(threePages(), [eventOf(10, 'ready'), eventOf(11, 'ready')], { status: 'ready' })
  assert.deepEqual([...list.missing], [idOf(10), idOf(11)])
  const merged = mergeTop(list, pageOf(11, 8), { status: 'ready' })
  assert.deepEqual(numbers(merged), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
  assert.equal(merged.missing.size, 0)
})

test('a new job that does not fit, or no longer does, is not missing', () => {
  const filter = { status: 'ready' as const, type: 'http' }
  const other = eventOf(10, 'ready', 1, { type: 'shell' })
  assert.equal(mergeEvents(threePages(), [other], filter).missing.size, 0)
  const gone = mergeEvents(threePages(), [eventOf(10, 'ready'), eventOf(10, 'running')], filter)
  assert.equal(gone.missing.size, 0)
})

test('a job below what was read so far is not missing', () => {
  const list = mergePage(EMPTY, pageOf(9, 7), null)
  assert.equal(mergeEvents(list, [eventOf(3, 'failed')], NONE).missing.size, 0)
})

test('rows that stop to fit stay until the top is read again', () => {
  const filter = { status: 'ready' as const }
  const list = mergeEvents(threePages(), [eventOf(2, 'running')], filter)
  assert.deepEqual([numbers(list).includes(2), list.hasLeavers], [true, true])
  const merged = mergeTop(list, pageOf(9, 7), filter)
  assert.deepEqual([numbers(merged), merged.hasLeavers], [[9, 8, 7, 6, 5, 4, 3, 1], false])
})

test('after a burst that the top does not reach across, the list begins anew', () => {
  const merged = mergeTop(threePages(), pageOf(99, 90), NONE)
  assert.deepEqual(numbers(merged), [99, 98, 97, 96, 95, 94, 93, 92, 91, 90])
  assert.equal(merged.complete, false)
})

test('the list ends above a job that has come to fit further down, and goes on from there', () => {
  const list = mergePage(EMPTY, pageOf(9, 7), null)
  const more = mergePage(
    list,
    { items: [rowOf(6), rowOf(4)], next_cursor: 'after 4' },
    list.places[0] ?? null,
  )
  const known = mergeEvents(more, [eventOf(5, 'ready')], NONE)
  const merged = mergeTop(known, pageOf(9, 7), NONE)
  assert.deepEqual(numbers(merged), [9, 8, 7])
  assert.equal(merged.places.at(-1)?.id, idOf(7))
})

test('however many jobs are missing, a bounded number of them is kept', () => {
  const events = Array.from({ length: 3_000 }, (_, n) => eventOf(100 + n, 'ready'))
  const list = mergeEvents(threePages(), events, NONE)
  assert.equal(list.missing.size, MAX_MISSING)
  assert.deepEqual(numbers(mergeTop(list, pageOf(12, 8), NONE)), [12, 11, 10, 9, 8])
})

test('a row is read again from the page above it', () => {
  const list = threePages()
  assert.equal(placeAbove(list, 0), null)
  assert.equal(placeAbove(list, 2), null)
  assert.equal(placeAbove(list, 3)?.id, idOf(7))
  assert.equal(placeAbove(list, 8)?.id, idOf(4))
})

test('a thousand events are merged into ten thousand rows well within a frame', () => {
  let list = mergePage(EMPTY, pageOf(10_000, 1, { last: true }), null)
  const tookMs = Array.from({ length: 10 }, (_, round) => {
    const status = round % 2 === 0 ? 'running' : 'completed'
    const numbers = Array.from({ length: 1_000 }, (_, n) => 1 + ((n * 7_919) % 10_000))
    const events = numbers.map((n) => eventOf(n, status, round + 1))
    const startedAt = performance.now()
    list = mergeEvents(list, events, { status: 'ready' })
    return performance.now() - startedAt
  })
  assert.equal(list.rows.filter(({ status }) => status === 'completed').length, 1_000)
  // The fastest: other tests run at the same time.
  assert.ok(Math.min(...tookMs) < 10, `${tookMs.map((ms) => ms.toFixed(1))} ms`)
})

/** 9 to 7, 6 to 4, and 3 to 1, of which there is no more. */
const threePages = (): JobList => {
  const first = mergePage(EMPTY, pageOf(9, 7), null)
  const second = mergePage(first, pageOf(6, 4), first.places.at(-1) ?? null)
  return mergePage(second, pageOf(3, 1, { last: true }), second.places.at(-1) ?? null)
}
