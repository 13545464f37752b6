import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { cancelJobs } from '../../db/queue/cancel.ts'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  exchange,
  misplacedJobs,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant
let other: Tenant
let jobs: ReturnType<typeof watchJobs>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  other = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const seed = (names: string[], of = tenant) =>
  seedJobs(
    database.run,
    of,
    names.map((name) => newJob({ name })),
  )

/** What a worker sends that knows of nothing but completions: all jobs of one lease. */
const complete = (claimed: readonly ClaimedJob[], ended = claimed.map((job) => completed(job))) =>
  exchange(database.run, {
    ended,
    closed: claimed.length === ended.length ? [claimed[0]?.token ?? ''] : [],
  })

test('jobs of several organisations and series that completed together are each recorded as their own', async () => {
  const ids = [...(await seed(['a', 'b', 'a'])), ...(await seed(['b', 'a'], other))]
  const claimed = await claim(database.run)
  const { news } = await complete(claimed)
  assert.deepEqual(news.lost, [])
  assert.deepEqual(await jobs.statuses(ids), Array(5).fill('completed'))
  for (const id of ids) assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'completed'])
  const strangers = await database.sql(`
    select from finished_jobs f join jobs j on j.id = f.job_id where (f.org_id, f.series_id) <> (j.org_id, j.series_id)
    union all select from job_events e join jobs j on j.id = e.job_id where e.org_id <> j.org_id`)
  assert.deepEqual(strangers, [])
  const runs = await database.sql('select name, runs from series order by name, runs')
  assert.deepEqual(runs, [
    { name: 'a', runs: '1' },
    { name: 'a', runs: '2' },
    { name: 'b', runs: '1' },
    { name: 'b', runs: '1' },
  ])
  assert.deepEqual(await database.sql('select from leases'), [])
})

test('the events of a group say what was different of each job', async () => {
  const [retried] = await seed(['again'])
  const [first] = await claim(database.run)
  assert.ok(first)
  await exchange(database.run, { ended: [retrying(first)] })
  await database.sql(`
    with due as (delete from waiting_jobs returning job_id, org_id, attempts)
    insert into ready_jobs (org_id, job_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms)
    select q.org_id, q.job_id, q.series_id, q.type, q.flow, q.lane, due.attempts, 1, 64, 1 from due join queue_entries q using (job_id)`)
  const [fresh] = await seed(['first', 'second'])
  const { claimed } = await exchange(database.run, { claim: { limit: 3 } })
  await complete(claimed)
  const events = await database.sql<{ job_id: string }>(
    `select job_id, state, attempt from job_events
    where attempt = (case when job_id = $1 then 2 else 1 end) order by id, position`,
    [retried],
  )
  const of = (id: string | undefined) =>
    events.filter(({ job_id }) => job_id === id).map(({ job_id: _, ...event }) => event)
  assert.deepEqual(of(fresh), [
    { state: 'running', attempt: 1 },
    { state: 'completed', attempt: 1 },
  ])
  assert.deepEqual(of(retried), [
    { state: 'running', attempt: 2 },
    { state: 'completed', attempt: 2 },
  ])
  assert.deepEqual((await jobs.look(retried)).attempts, 2)
})

test('a group with a job that was cancelled meanwhile records all others', async () => {
  const ids = await seed(['a', 'b', 'c'])
  const [, cancelled] = ids
  const claimed = await claim(database.run)
  await database.run(cancelJobs(tenant.orgId, [cancelled ?? '']))
  const [more] = await seed(['more'])
  const ended = claimed.map((job) => completed(job))
  const { news, claimed: next } = await exchange(database.run, {
    ended,
    closed: [claimed[0]?.token ?? ''],
    claim: { limit: 1 },
  })
  assert.deepEqual(news.lost, [cancelled])
  assert.deepEqual(
    next.map(({ job_id }) => job_id),
    [more],
  )
  assert.deepEqual(await jobs.statuses(ids), ['completed', 'cancelled', 'completed'])
  assert.deepEqual(await misplacedJobs(database.sql), [])
})

test('a group whose lease is gone, or was never there, records nothing', async () => {
  const [id] = await seed(['a'])
  const claimed = await claim(database.run)
  const stranger = claimed.map((job) => ({ ...completed(job), token: '1' }))
  assert.deepEqual((await complete(claimed, stranger)).news.lost, [id])
  assert.equal(await jobs.statusOf(id), 'running')
})

test('a group that comes while one of its jobs is being cancelled waits, and records the others', async () => {
  const ids = await seed(['a', 'b'])
  const claimed = await claim(database.run)
  const canceller = new pg.Client({ connectionString: database.url })
  await canceller.connect()
  try {
    const { text, values } = cancelJobs(tenant.orgId, [ids[0] ?? ''])
    await canceller.query('begin')
    await canceller.query(text, [...values])
    const recording = complete(claimed)
    await canceller.query('commit')
    assert.deepEqual((await recording).news.lost, [ids[0]])
    assert.deepEqual(await jobs.statuses(ids), ['cancelled', 'completed'])
  } finally {
    await canceller.end()
  }
})

test('a part of a lease is recorded, the lease lives on, and the rest follows', async () => {
  const ids = await seed(['a', 'b', 'c'])
  const claimed = await claim(database.run)
  const [first] = claimed
  assert.ok(first)
  await database.sql(`update leases set expires_at = now() + interval '1 second'`)
  assert.deepEqual((await complete(claimed, [completed(first)])).news.lost, [])
  const [lease] = await database.sql<{ left: boolean }>(
    `select expires_at > now() + interval '20 seconds' as left from leases`,
  )
  assert.ok(lease?.left, 'and is renewed')
  const rest = claimed.slice(1).map((job) => completed(job))
  const { news } = await exchange(database.run, { ended: rest, closed: [first.token] })
  assert.deepEqual(news.lost, [])
  assert.deepEqual(await jobs.statuses(ids), Array(3).fill('completed'))
  assert.deepEqual(await database.sql('select from leases'), [])
})
