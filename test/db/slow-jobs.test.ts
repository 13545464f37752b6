import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { getJob } from '../../db/queries/jobs.ts'
import { exchange as exchangeJobs } from '../../db/queue/exchange.ts'
import { reportSlowJobs } from '../../db/queue/leases.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  NO_CLAIM,
  newJob,
  passLeaseOn,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const submit = (count: number) =>
  seedJobs(
    database.run,
    tenant,
    Array.from({ length: count }, () => newJob()),
  )
const predict = (id: string | undefined, p99Ms: number | null) =>
  database.sql('update jobs set predicted_p99_ms = $2 where id = $1', [id, p99Ms])
const runningFor = (seconds: number) =>
  database.sql('update leases set claimed_at = now() - $1::int * interval $$1 second$$', [seconds])
const isSlow = async (id: string | undefined) => (await database.run(getJob(tenant.orgId, id ?? '')))[0]?.slow

test('a claim answers the p99 of each job that has one', async () => {
  const ids = await submit(3)
  await predict(ids[1], 1_234.5)
  const claimed = await claim(database.run)
  assert.deepEqual(
    claimed.map(({ job_id, predicted_p99_ms }) => [job_id, predicted_p99_ms]),
    ids.map((id, n) => [id, n === 1 ? 1_234.5 : null]),
  )
})

test('jobs that are slow get an event each, in one statement; others say nothing', async () => {
  const ids = await submit(3)
  const [first, second, third] = await claim(database.run)
  assert.ok(first && second && third)
  const rows = await database.run(reportSlowJobs([first, second, { ...third, token: '1' }]))
  assert.deepEqual(rows.map(({ job_id }) => job_id).sort(), ids.slice(0, 2))
  const events = await Promise.all(ids.map(jobs.eventsOf))
  assert.deepEqual(events, [
    ['ready', 'running', 'running: slow'],
    ['ready', 'running', 'running: slow'],
    ['ready', 'running'],
  ])
})

test('nothing is said of a job that was lost or has ended', async () => {
  await submit(2)
  const [first, second] = await claim(database.run)
  assert.ok(first && second)
  await passLeaseOn(database.sql, first.job_id)
  await end(database.run, completed(second))
  assert.deepEqual(await database.run(reportSlowJobs([first, second])), [])
})

test('an end that is being recorded at the same moment comes first, and then nothing is said', async () => {
  const [id] = await submit(1)
  const [job] = await claim(database.run)
  assert.ok(job)
  const recorder = new pg.Client({ connectionString: database.url })
  await recorder.connect()
  await recorder.query('begin')
  const { text, values } = exchangeJobs({
    workerId: 'worker-1',
    leaseSeconds: 30,
    ended: [completed(job)],
    closed: [],
    claim: NO_CLAIM,
  })
  await recorder.query(text, [...values])
  const reported = database.run(reportSlowJobs([job]))
  const blocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  await waitFor('it to wait', async () => (await database.sql(blocked)).length > 0)
  await recorder.query('commit')
  await recorder.end()
  assert.deepEqual(await reported, [])
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'completed'])
})

test('a job is shown as slow while it runs beyond its p99, and a second at least', async () => {
  const [id] = await submit(1)
  assert.equal(await isSlow(id), false, 'it does not run')
  const [job] = await claim(database.run)
  await runningFor(10)
  assert.equal(await isSlow(id), false, 'nothing is known of its series')
  await predict(id, 9_000)
  assert.equal(await isSlow(id), true)
  await predict(id, 60_000)
  assert.equal(await isSlow(id), false)
  await predict(id, 5)
  await runningFor(0)
  assert.equal(await isSlow(id), false, 'not yet a second')
  await runningFor(2)
  assert.equal(await isSlow(id), true)
  assert.ok(job)
  await end(database.run, completed(job, null, 2_000))
  assert.equal(await isSlow(id), false, 'it has ended')
})
