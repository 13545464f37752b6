import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { appendJobLogs } from '../../db/queries/job-logs.ts'
import { saveProgress } from '../../db/queries/progress.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { submitJobs } from '../../db/queue/submit.ts'
import { wakeDueJobs } from '../../db/queue/upkeep.ts'
import { deleteExpired, deleteStale, EXPIRING, forgetIdleSeries } from '../../db/retention/retention.ts'
import { createDuties } from '../../worker-runtime/duties.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  failed,
  lead,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { seedSchedule } from '../support/schedules.ts'
import { waitFor } from '../support/wait-for.ts'
import { keepLog } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let term: string

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  term = await lead(database.run)
})

/** A UUIDv7 of `days` ago. */
const idFrom = (days: number, n = 1): string => {
  const hex = (Date.now() - days * 86_400_000).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(n).padStart(12, '0')}`
}
/** The database as it was this many days ago. */
const age = async (days: number): Promise<void> => {
  await database.sql('update finished_jobs set finished_at = finished_at - $1::int * interval $$1 day$$', [
    days,
  ])
  await database.sql('update job_event_groups set at = at - $1::int * interval $$1 day$$', [days])
}
const finish = async (how: typeof completed | typeof failed = completed): Promise<void> => {
  await end(database.run, ...(await claim(database.run, 'worker-1', 100)).map((job) => how(job)))
}
const expire = async (limit = 100) =>
  (await database.run(deleteExpired('jobs', { term, days: 30, limit })))[0]?.deleted
const count = async (table: string): Promise<number> =>
  (await database.sql<{ n: number }>(`select count(*)::int as n from ${table}`))[0]?.n ?? -1

test('an old finished job goes with all that belongs to it', async () => {
  const [parent] = await seedJobs(database.run, tenant, [newJob({ id: idFrom(40) })])
  const [job] = await claim(database.run)
  assert.ok(job && parent)
  const key = { job_id: job.job_id, token: job.token }
  await database.run(appendJobLogs(JSON.stringify([{ ...key, at: new Date(), level: 'info', message: 'm' }])))
  await database.run(saveProgress(JSON.stringify([{ ...key, progress: 1, has_checkpoint: false }])))
  await end(database.run, retrying(job))
  await database.run(wakeDueJobs(term, 10))
  await finish()
  await seedJobs(database.run, tenant, [newJob({ id: idFrom(40, 2), depends_on: [parent] })])
  await finish()
  await age(31)
  assert.equal(await expire(), 2)
  for (const table of ['jobs', 'finished_jobs', 'attempts', 'job_logs', 'job_progress', 'job_dependencies']) {
    assert.equal(await count(table), 0, table)
  }
})

test('what finished lately stays, however old the job is', async () => {
  await seedJobs(database.run, tenant, [newJob({ id: idFrom(400) }), newJob()])
  await finish(failed)
  await age(29)
  assert.equal(await expire(), 0)
})

test('what has not finished stays', async () => {
  await seedJobs(database.run, tenant, [newJob({ id: idFrom(400) })])
  await claim(database.run)
  assert.equal(await expire(), 0)
})

test('a parent stays as long as a child is blocked', async () => {
  const parent = idFrom(40)
  await seedJobs(database.run, tenant, [newJob({ id: parent })])
  await seedJobs(database.run, tenant, [newJob({ depends_on: [parent], on_parent_failure: 'wait' })])
  await finish(failed)
  await age(31)
  assert.equal(await expire(), 0)
  await database.sql('delete from blocked_jobs')
  assert.equal(await expire(), 1)
})

test('old ticks of schedules go, but of each schedule the newest stays', async () => {
  const [busy, idle] = await Promise.all([
    seedSchedule(database.run, tenant, { next_at: null }),
    seedSchedule(database.run, tenant, { next_at: null }),
  ])
  const seedTicks = (id: string, daysAgo: number[]) =>
    database.sql(
      `insert into schedule_ticks (schedule_id, org_id, tick_at, outcome, fired_at)
      select $1, $2, at, 'fired', at
      from unnest($3::int[]) as days, lateral (select now() - days * interval '1 day') as a (at)`,
      [id, tenant.orgId, daysAgo],
    )
  await seedTicks(busy, [50, 40, 31, 29, 1])
  await seedTicks(idle, [300, 200])
  const expireTicks = async (limit: number, inTerm = term) =>
    (await database.run(deleteExpired('ticks', { term: inTerm, days: 30, limit })))[0]?.deleted
  assert.equal(await expireTicks(10, '0'), 0, 'not in another term')
  assert.deepEqual([await expireTicks(3), await expireTicks(3), await expireTicks(3)], [3, 1, 0])
  const kept = await database.sql(
    `select schedule_id, round(extract(epoch from now() - fired_at) / 86400)::int as days from schedule_ticks order by days`,
  )
  assert.deepEqual(kept, [
    { schedule_id: busy, days: 1 },
    { schedule_id: busy, days: 29 },
    { schedule_id: idle, days: 200 },
  ])
})

test('a worker may delete everything that expires', async () => {
  const worker = await connect(asLogin(database.url, 'workers'))
  const retention = [
    ...EXPIRING.map((kind) => deleteExpired(kind, { term, days: 30, limit: 10 })),
    deleteStale(term, 30),
    forgetIdleSeries({ term, days: 30, afterId: '0', limit: 10 }),
  ]
  for (const { text, values } of retention) await worker.query(text, [...values])
  await worker.end()
})

test('each look deletes no more than it is told to, over all organisations', async () => {
  const other = await seedTenant(database.run)
  await seedJobs(
    database.run,
    tenant,
    Array.from({ length: 5 }, (_, n) => newJob({ id: idFrom(40, n) })),
  )
  await seedJobs(
    database.run,
    other,
    Array.from({ length: 5 }, (_, n) => newJob({ id: idFrom(40, 10 + n) })),
  )
  await finish()
  await age(31)
  assert.deepEqual([await expire(4), await expire(4), await expire(4), await expire(4)], [4, 4, 2, 0])
})

test('events go by age, a bounded number at a time', async () => {
  for (let n = 0; n < 2; n++) await seedJobs(database.run, tenant, [newJob()])
  await age(31)
  await seedJobs(database.run, tenant, [newJob()])
  const deleted = async (limit: number) =>
    (await database.run(deleteExpired('events', { term, days: 30, limit })))[0]?.deleted
  assert.deepEqual([await deleted(1), await deleted(10), await deleted(10)], [1, 1, 0])
  assert.equal(await count('job_events'), 1)
})

test('deliveries of webhooks go by age, a bounded number at a time, and for the leader only', async () => {
  const seed = (rows: number, days: number) =>
    database.sql(
      `insert into webhook_deliveries (org_id, id, source_id, received_at, status, headers)
      select $1, gen_random_uuid(), gen_random_uuid(), now() - $2::int * interval '1 day', 'filtered', '{}'
      from generate_series(1, $3)`,
      [tenant.orgId, days, rows],
    )
  await seed(5, 31)
  await seed(2, 29)
  const deleted = async (limit: number, by = term) =>
    (await database.run(deleteExpired('deliveries', { term: by, days: 30, limit })))[0]?.deleted
  assert.equal(await deleted(100, '0'), 0, 'a former leader')
  assert.deepEqual([await deleted(3), await deleted(3), await deleted(3)], [3, 2, 0])
  await seed(1, 31)
  const duties = createDuties({ run: database.run, logger: keepLog().logger, retentionDays: 30 })
  await duties.find(({ name }) => name === 'retention')?.step(term)
  assert.equal(await count('webhook_deliveries'), 2)
})

test('a job that is being retried in that moment stays', async () => {
  const [id] = await seedJobs(database.run, tenant, [newJob({ id: idFrom(40) })])
  assert.ok(id)
  await finish(failed)
  await age(40)
  const someone = new pg.Client(database.url)
  await someone.connect()
  await someone.query('begin')
  const { text, values } = retryJobs(tenant.orgId, [id])
  await someone.query(text, [...values])
  const expired = expire()
  const blocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  await Promise.race([expired, waitFor('it to wait', async () => (await database.sql(blocked)).length > 0)])
  await someone.query('commit')
  await someone.end()
  await expired
  assert.deepEqual([await count('jobs'), await count('ready_jobs')], [1, 1])
})

test('executions go by age, and beyond a number, the oldest first and a bounded number at a time', async () => {
  const seed = (rows: number, days: number) =>
    database.sql(
      `insert into executions (org_id, series_id, outcome, job_ids, ran_ms, at)
      select $1, 1, 'completed', '{}', '{}', now() - $2::int * interval '1 day' from generate_series(1, $3)`,
      [tenant.orgId, days, rows],
    )
  await seed(5, 31)
  await seed(6, 1)
  const expired = async (limit: number, by = term) =>
    (await database.run(deleteExpired('executions', { term: by, days: 30, limit })))[0]?.deleted
  assert.deepEqual([await expired(3), await expired(100), await expired(100)], [3, 2, 0])
  await database.sql(
    `insert into executions (id, org_id, series_id, outcome, job_ids, ran_ms)
    overriding system value
    select max(id) - 3 + 100000, $1, 1, 'completed', '{}', '{}' from executions`,
    [tenant.orgId],
  )
  assert.deepEqual([await expired(1), await expired(100), await expired(100)], [1, 2, 0])
  assert.equal(await count('executions'), 4)
  await database.sql(`update executions set at = now() - interval '31 days'`)
  assert.equal(await expired(100, '0'), 0, 'a former leader')
})

const forgetSeries = async (afterId = '0', limit = 100) =>
  (await database.run(forgetIdleSeries({ term, days: 30, afterId, limit })))[0]

test('a series is forgotten once no job of it is left, with what was remembered of it', async () => {
  await seedJobs(database.run, tenant, [
    newJob({ id: idFrom(40), name: 'old' }),
    newJob({ name: 'new' }),
    newJob({ id: idFrom(40, 2), name: 'other' }),
  ])
  await finish()
  await database.sql(
    `insert into series_memories (series_id, org_id, memory, updated_at)
    select id, org_id, '', now() - case name when 'old' then interval '31 days' else interval '1 hour' end from series`,
  )
  assert.deepEqual((await forgetSeries())?.idle, 0, 'their jobs are still there')
  await database.sql(`update finished_jobs set finished_at = now() - interval '31 days'`)
  assert.equal(await expire(), 2)
  assert.deepEqual(await forgetSeries(), {
    looked_at: 3,
    last_id: (await database.sql<{ id: string }>(`select id from series where name = 'other'`))[0]?.id,
    idle: 1,
    forgotten: 1,
  })
  const left = await database.sql('select name from series order by name')
  assert.deepEqual(
    left.map(({ name }) => name),
    ['new', 'other'],
    'other has run an hour ago, as far as the learner knows',
  )
  assert.equal(await count('series_memories'), 2)
})

test('the leader goes through all series, some of them at a time', async () => {
  await database.sql(
    `insert into series (org_id, type, name) select $1, 'test', 'n' || n from generate_series(1, 2500) n`,
    [tenant.orgId],
  )
  const duties = createDuties({ run: database.run, logger: keepLog().logger, retentionDays: 30 })
  const duty = duties.find(({ name }) => name === 'deletion of idle series')
  const delays = [await duty?.step(term), await duty?.step(term), await duty?.step(term)]
  assert.deepEqual([delays, await count('series')], [[100, 100, 600_000], 0])
})

/** A submission that has looked its series up and has not committed yet. */
const submitWithin = async (client: pg.Client, name: string): Promise<void> => {
  await client.query('begin')
  const { text, values } = submitJobs([{ ...tenant, jobs: [newJob({ name })] }])
  await client.query(text, [...values])
}
const connect = async (url = database.url): Promise<pg.Client> => {
  const client = new pg.Client(url)
  await client.connect()
  return client
}

test('while a job is being submitted its series stays', async () => {
  await database.sql(`insert into series (org_id, type, name) values ($1, 'test', 'idle')`, [tenant.orgId])
  const someone = await connect()
  await submitWithin(someone, 'idle')
  const step = await forgetSeries()
  assert.deepEqual([step?.idle, step?.forgotten], [1, null], 'it did not wait for long')
  await someone.query('commit')
  await someone.end()
  assert.equal((await forgetSeries())?.idle, 0)
  const [job] = await claim(database.run)
  assert.equal(job?.name, 'idle')
})

test('a submission that comes while a series is forgotten makes it anew', async () => {
  await database.sql(`insert into series (org_id, type, name) values ($1, 'test', 'idle')`, [tenant.orgId])
  const leader = await connect()
  await leader.query('begin')
  const { text, values } = forgetIdleSeries({ term, days: 30, afterId: '0', limit: 100 })
  await leader.query(text, [...values])
  const submitted = seedJobs(database.run, tenant, [newJob({ name: 'idle' })])
  await waitFor(
    'the submission to wait',
    async () =>
      (
        await database.sql(
          `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        )
      ).length > 0,
  )
  await leader.query('commit')
  await leader.end()
  await submitted
  const dangling = await database.sql('select from jobs where series_id not in (select id from series)')
  assert.deepEqual([dangling.length, await count('series'), await count('jobs')], [0, 1, 1])
})
