import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { restartCursors } from '../../db/queries/event-cursors.ts'
import { readStream, type StreamEvent, type StreamPage, type StreamPlace } from '../../db/queries/stream.ts'
import { deleteExpired } from '../../db/retention/retention.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  exchange,
  lead,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let ada: Tenant
let bob: Tenant
before(async () => {
  database = await createTestDatabase()
  ada = await seedTenant(database.run)
  bob = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const LIMITS = { events: 100, groups: 50, behind: 200 }

const readFrom = async (
  place: StreamPlace | null,
  { orgId = ada.orgId, ...limits }: Partial<typeof LIMITS> & { orgId?: string } = {},
): Promise<StreamPage> => {
  const [page] = await database.run(readStream(orgId, [place], { ...LIMITS, ...limits }))
  assert.ok(page)
  return page
}

/** Other tests of the machine have transactions open now and then. */
const untilNothingElseRuns = (place: StreamPlace, events: number): Promise<StreamPage> =>
  waitFor('the events', async () => {
    const page = await readFrom(place)
    return page.events.length >= events && page
  })

const told = (events: readonly StreamEvent[]): string[] => events.map(({ state, name }) => `${state} ${name}`)

test('what commits late comes after what was read, and nothing is skipped or repeated', async () => {
  const { head } = await readFrom(null)
  const late = new pg.Client({ connectionString: database.url })
  await late.connect()
  const [slow, quick] = [newJob({ name: 'slow' }), newJob({ name: 'quick' })]
  await seedJobs(database.run, ada, [slow, quick])
  const first = await untilNothingElseRuns(head, 2)
  assert.deepEqual(told(first.events), ['ready slow', 'ready quick'])

  const write = `select record_events(array[$1::uuid], array[$2::uuid], array[$3::job_state], '{0}')`
  await late.query('begin')
  await late.query(write, [ada.orgId, slow.id, 'running'])
  await database.sql(write, [ada.orgId, quick.id, 'running'])
  const meanwhile = await readFrom(first.next)
  assert.deepEqual(meanwhile.events, [], 'the one that has committed waits for the one that began before it')
  await late.query('commit')
  await late.end()
  const second = await untilNothingElseRuns(meanwhile.next, 2)
  assert.deepEqual(told(second.events), ['running slow', 'running quick'])
  assert.deepEqual((await readFrom(second.next)).events, [])
})

test('a page ends anywhere in what one statement did, and the next goes on there', async () => {
  const { head } = await readFrom(null)
  const names = Array.from({ length: 7 }, (_, n) => `n${n}`)
  await seedJobs(
    database.run,
    ada,
    names.map((name) => newJob({ name })),
  )
  const jobs = (await exchange(database.run, { claim: { limit: 7 } })).claimed
  await exchange(database.run, { ended: jobs.map((job) => completed(job)) })
  await untilNothingElseRuns(head, 21)
  const whole = (await readFrom(head)).events
  assert.equal(whole.length, 21, 'ready, and then the start and the end of each')
  assert.deepEqual(
    [7, 14].map((from) => new Set(whole.slice(from, from + 7).map(({ state }) => state))),
    [new Set(['running']), new Set(['completed'])],
  )
  const fromView = await database.sql(
    'select job_id, state, attempt, reason, at::text from job_events order by id, position',
  )
  assert.deepEqual(
    whole.map(({ job_id, state, attempts, reason, at }) => [job_id, state, attempts, reason, Date.parse(at)]),
    fromView.map(({ job_id, state, attempt, reason, at }) => [
      job_id,
      state,
      attempt,
      reason,
      Date.parse(at as string),
    ]),
  )
  for (const events of [1, 2, 3, 5, 8]) {
    for (const groups of [2, 3, 50]) {
      const pieces: StreamEvent[] = []
      let place = head
      for (let page: StreamPage | undefined; page === undefined || page.more; place = page.next) {
        page = await readFrom(place, { events, groups })
        assert.ok(page.events.length <= events)
        pieces.push(...page.events)
      }
      assert.deepEqual(pieces, whole, `${events} at a time, ${groups} rows`)
    }
  }
  const after = whole[9]
  assert.ok(after)
  assert.deepEqual(
    (await readFrom({ ...head, ...after })).events,
    whole.slice(10),
    'the stream can continue after each event',
  )
})

test('a place that nobody was ever given makes no page longer', async () => {
  const { head } = await readFrom(null)
  for (let n = 0; n < 4; n++) await seedJobs(database.run, ada, [newJob(), newJob()])
  const { events } = await untilNothingElseRuns(head, 8)
  const [first] = events
  assert.ok(first)
  const page = await readFrom({ ...head, ...first, position: 2 ** 31 - 1 }, { events: 3 })
  assert.deepEqual([page.events, page.behind, page.more], [events.slice(2, 5), 6, true])
})

test('several are read for together, each from its own place, and end at the same one', async () => {
  const { head } = await readFrom(null)
  await seedJobs(database.run, ada, [newJob(), newJob(), newJob()])
  const { events } = await untilNothingElseRuns(head, 3)
  const second = { ...head, ...events[1] }
  const pages = await database.run(readStream(ada.orgId, [head, second, null], LIMITS))
  assert.deepEqual(
    pages.map((page) => [page.place, page.events.length, page.behind, page.more]),
    [
      [0, 3, 3, false],
      [1, 1, 1, false],
      [2, 0, 0, false],
    ],
  )
  for (const { next, head: now } of pages) assert.deepEqual(next, now)
})

test('how far behind a reader is, at least, is told without reading it all', async () => {
  const { head } = await readFrom(null)
  for (let n = 0; n < 6; n++) await seedJobs(database.run, ada, [newJob(), newJob()])
  await untilNothingElseRuns(head, 12)
  assert.equal((await readFrom(head)).behind, 12)
  assert.equal((await readFrom(head, { events: 1, groups: 2 })).behind, 4 + 4, 'a row beyond counts as one')
  assert.equal(
    (await readFrom(head, { groups: 2, behind: 3 })).behind,
    4 + 1,
    'and not all of them are counted',
  )
})

test('the events of another organisation are not among them', async () => {
  const { head } = await readFrom(null)
  await seedJobs(database.run, ada, [newJob({ name: 'hers' })])
  await seedJobs(database.run, bob, [newJob({ name: 'his' })])
  const { events } = await untilNothingElseRuns(head, 1)
  assert.deepEqual(told(events), ['ready hers'])
})

test('who comes from before the oldest event that is kept, or from another server, is told so', async () => {
  const { head } = await readFrom(null)
  await seedJobs(database.run, ada, [newJob()])
  await untilNothingElseRuns(head, 1)
  const beyond = { ...head, xid: String(2n ** 63n), id: '1', position: 1 }
  assert.equal((await readFrom(beyond)).lost, 'cursor_too_old')
  assert.equal((await readFrom(head)).lost, null)
  const term = await lead(database.run)
  await database.sql(`update job_event_groups set at = at - interval '40 days'`)
  await database.run(deleteExpired('events', { term, days: 30, limit: 10 }))
  const lost = await readFrom(head)
  assert.deepEqual([lost.lost, lost.events], ['cursor_too_old', []])
  assert.equal((await readFrom(lost.head)).lost, null, 'from now on nothing is lost')
})

test('in the dump of another server the stream begins at the present, and those from before are told so', async () => {
  const { head: before } = await readFrom(null)
  await seedJobs(database.run, ada, [newJob({ name: 'of the dump' })])
  const theirs = String(2n ** 40n)
  await database.sql(`update job_event_groups set xid = $1::xid8, at = at - interval '40 days'`, [theirs])
  for (const table of ['event_cursors', 'stream_floor'])
    await database.sql(`update ${table} set xid = $1::xid8`, [theirs])
  assert.equal((await readFrom(before)).lost, null, 'their floor does not apply to our transactions')

  const term = await lead(database.run)
  // Transactions of other tests, which run on the same server, hold the present back.
  await waitFor('the present', async () => BigInt((await readFrom(null)).head.xid) > BigInt(before.xid))
  assert.equal((await database.run(restartCursors(term, ['callbacks']))).length, 1)
  assert.equal((await readFrom(before)).lost, 'cursor_too_old')
  const { head } = await readFrom(null)
  await database.run(deleteExpired('events', { term, days: 30, limit: 10 }))
  assert.deepEqual(await database.sql('select id from job_event_groups'), [])
  assert.equal((await readFrom(head)).lost, null, 'nothing of ours has expired')
  await seedJobs(database.run, ada, [newJob({ name: 'ours' })])
  assert.deepEqual(told((await untilNothingElseRuns(head, 1)).events), ['ready ours'])
  await database.sql(`update job_event_groups set at = at - interval '40 days'`)
  await database.run(deleteExpired('events', { term, days: 30, limit: 10 }))
  assert.equal((await readFrom(head)).lost, 'cursor_too_old', 'and now it has')
})

test('a worker that tells starts at once makes the same stream', async () => {
  const { head } = await readFrom(null)
  await seedJobs(database.run, ada, [newJob({ name: 'one' })])
  const [job] = await claim(database.run)
  assert.ok(job)
  await exchange(database.run, { ended: [completed(job)] })
  const { events } = await untilNothingElseRuns(head, 3)
  assert.deepEqual(told(events), ['ready one', 'running one', 'completed one'])
  assert.deepEqual(
    events.map(({ attempts }) => attempts),
    [0, 1, 1],
  )
})
