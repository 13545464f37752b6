import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JobSummary, Page } from '../../functions/dashboard/api/answers.ts'
import type { JobFilter } from '../../functions/dashboard/views/jobs/filter.ts'
import { createJobFeed, type JobFeed } from '../../functions/dashboard/views/jobs/job-feed.ts'
import { eventOf, idOf, pageOf, rowOf } from '../support/job-rows.ts'
import { waitFor } from '../support/wait-for.ts'

test('pages are read as the end comes near, one after the other, until there is no more', async (t) => {
  const { feed, api } = openFeed(t, [pageOf(300, 201), pageOf(200, 101), pageOf(100, 1, { last: true })])
  await shows(feed, 100)
  feed.look({ first: 30, end: 60, atTop: false, held: false })
  await shows(feed, 200)
  feed.look({ first: 150, end: 180, atTop: false, held: false })
  await shows(feed, 300)
  assert.deepEqual(api.asked, [null, 'after 201', 'after 101'])
  assert.equal(feed.list.value?.complete, true)
})

test('new jobs appear while the top is in view', async (t) => {
  const { feed, api } = openFeed(t, [pageOf(3, 1, { last: true }), pageOf(4, 1, { last: true })])
  await shows(feed, 3)
  api.clock += 1_000
  feed.take([eventOf(4, 'ready')])
  await shows(feed, 4)
})

test('new jobs stay out of the way of whoever reads further down, or points at a row', async (t) => {
  const { feed, api } = openFeed(t, [pageOf(3, 1, { last: true }), pageOf(5, 1, { last: true })])
  await shows(feed, 3)
  api.clock += 1_000
  feed.look({ first: 0, end: 3, atTop: true, held: true })
  feed.take([eventOf(4, 'ready'), eventOf(5, 'ready')])
  await waitFor('two missing jobs', () => feed.list.value?.missing.size === 2)
  assert.equal(api.asked.length, 1)
  feed.look({ first: 0, end: 3, atTop: true, held: false })
  await shows(feed, 5)
})

test('an event that comes while a page is on its way is not lost by a page from before it', async (t) => {
  const { feed, api } = openFeed(t, [])
  feed.take([eventOf(2, 'running'), eventOf(3, 'running')])
  api.answer(pageOf(3, 1, { last: true }))
  await shows(feed, 3)
  assert.deepEqual(
    feed.list.value?.rows.map(({ status }) => status),
    ['running', 'running', 'ready'],
  )
})

test('after a resync only what is in view is read again, and the rest when it comes into view', async (t) => {
  const pages = [pageOf(300, 201), pageOf(200, 101), pageOf(100, 1, { last: true })]
  const { feed, api } = openFeed(t, pages)
  await shows(feed, 100)
  feed.look({ first: 90, end: 100, atTop: false, held: false })
  await shows(feed, 200)
  feed.look({ first: 190, end: 200, atTop: false, held: false })
  await shows(feed, 300)
  feed.look({ first: 120, end: 140, atTop: false, held: false })
  feed.resync()
  const fresh = pageOf(200, 101)
  api.answer({ ...fresh, items: fresh.items.map((row) => ({ ...row, status: 'failed' as const })) })
  await waitFor('the page that is in view', () => feed.list.value?.rows[120]?.status === 'failed')
  assert.deepEqual(api.asked.slice(3), ['after 201'])
  feed.look({ first: 0, end: 30, atTop: true, held: false })
  await waitFor('a fifth request', () => api.asked.length === 5)
  assert.equal(api.asked[4], null)
})

test('what went wrong is told, and what was shown stays', async (t) => {
  const { feed, api } = openFeed(t, [pageOf(3, 1, { last: true })])
  await shows(feed, 3)
  api.answer(new Error('no connection'))
  feed.resync()
  await waitFor('the error', () => feed.error.value !== undefined)
  assert.equal(feed.list.value?.rows.length, 3)
  api.answer({ items: [rowOf(1)], next_cursor: null })
  feed.hurry()
  await shows(feed, 1)
  assert.equal(feed.error.value, undefined)
})

test('jobs that stop to fit go when the top is read again', async (t) => {
  const rest = { items: [rowOf(3), rowOf(1)], next_cursor: null }
  const { feed, api } = openFeed(t, [pageOf(3, 1, { last: true }), rest], { status: 'ready' })
  await shows(feed, 3)
  api.clock += 1_000
  feed.take([eventOf(2, 'running')])
  await shows(feed, 2)
  assert.ok(!feed.list.value?.rows.some(({ id }) => id === idOf(2)))
})

type Answer = Page<JobSummary> | Error

/** A feed over answers that are given in advance, or later. */
const openFeed = (t: TestContext, given: Answer[], filter: JobFilter = {}) => {
  const answers = [...given]
  const waiting: (() => void)[] = []
  const api = {
    asked: [] as (string | null)[],
    clock: 0,
    answer: (answer: Answer): void => {
      answers.push(answer)
      waiting.shift()?.()
    },
  }
  const feed = createJobFeed({
    filter,
    now: () => api.clock,
    nextFrame: (run) => void setImmediate(run),
    load: async (cursor) => {
      api.asked.push(cursor)
      if (answers.length === 0) await new Promise<void>((resolve) => waiting.push(resolve))
      const answer = answers.shift()
      if (!answer || answer instanceof Error) throw answer
      return answer
    },
  })
  feed.start()
  t.after(feed.stop)
  return { feed, api }
}

const shows = (feed: JobFeed, rows: number): Promise<unknown> =>
  waitFor(`${rows} rows`, () => feed.list.value?.rows.length === rows)
