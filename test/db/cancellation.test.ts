import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { getJob } from '../../db/queries/jobs.ts'
import type { Run } from '../../db/query.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { withClient } from '../../worker-runtime/migrate.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { COMPLETED, claimJob, claimTypes, end, FAILED, jobInState } from '../support/job-in-state.ts'
import { exchange, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant
before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())

const cancel = (...ids: string[]) => database.run(cancelJobs(tenant.orgId, ids))
const look = async (id: string) => {
  const [job] = await database.run(getJob(tenant.orgId, id))
  assert.ok(job)
  return job
}
const lastEvent = async (id: string) =>
  (
    await database.sql('select state, attempt from job_events where job_id = $1 order by id desc limit 1', [
      id,
    ])
  )[0]

test('a running job is taken from its worker, which is named', async () => {
  const id = await jobInState(database.run, tenant, 'running')
  assert.deepEqual(
    (await cancel(id)).map(({ job_id, worker_id }) => [job_id, worker_id]),
    [[id, 'worker-1']],
  )
  const job = await look(id)
  assert.deepEqual([job.status, job.attempts, job.worker_id], ['cancelled', 1, 'worker-1'])
  assert.ok(job.started_at && job.finished_at)
  assert.deepEqual(await lastEvent(id), { state: 'cancelled', attempt: 1 })
})

test('a former holder cannot complete a cancelled job', async () => {
  const [id] = await seedJobs(database.run, tenant, [newJob({ type: 'fenced' })])
  assert.ok(id)
  const held = await claimJob(database.run, id, 'fenced')
  await cancel(id)
  await end(database.run, held, { outcome: 'completed', resultJson: '1' })
  assert.deepEqual([(await look(id)).status, (await look(id)).result], ['cancelled', null])
})

test('a job that has completed stays so, although its lease goes on with others', async () => {
  const ids = await seedJobs(database.run, tenant, [newJob({ type: 'pair' }), newJob({ type: 'pair' })])
  const [first, second] = await claimTypes(database.run, ['pair'])
  assert.ok(first && second)
  await end(database.run, first, COMPLETED)
  assert.deepEqual(
    (await cancel(...ids)).map(({ job_id }) => job_id),
    [second.job_id],
  )
  assert.deepEqual(
    [(await look(first.job_id)).status, (await look(second.job_id)).status],
    ['completed', 'cancelled'],
  )
})

test('a job that completes while it is being cancelled stays so', async () => {
  const [id] = await seedJobs(database.run, tenant, [
    newJob({ type: 'photo-finish' }),
    newJob({ type: 'photo-finish' }),
  ])
  assert.ok(id)
  const job = await claimJob(database.run, id, 'photo-finish')
  const worker = new pg.Client(database.url)
  await worker.connect()
  await worker.query('begin')
  await worker.query('select from leases where token = $1 for update', [job.token])
  await worker.query(
    `insert into finished_jobs (org_id, job_id, series_id, state, attempts) values ($1, $2, $3, 'completed', 1)`,
    [job.org_id, id, job.series_id],
  )
  const cancelled = cancel(id)
  await waitUntilBlocked()
  await worker.query('commit')
  assert.deepEqual(await cancelled, [])
  assert.equal((await look(id)).status, 'completed')
  await worker.end()
})

test('a job whose lease is renewed while it is being cancelled is cancelled', async () => {
  const [id] = await seedJobs(database.run, tenant, [
    newJob({ type: 'renewed' }),
    newJob({ type: 'renewed' }),
  ])
  assert.ok(id)
  const { token } = await claimJob(database.run, id, 'renewed')
  const worker = new pg.Client(database.url)
  await worker.connect()
  await worker.query('begin')
  await worker.query(`update leases set expires_at = now() + interval '1 minute' where token = $1`, [token])
  const cancelled = cancel(id)
  await waitUntilBlocked()
  await worker.query('commit')
  await worker.end()
  assert.deepEqual(
    (await cancelled).map(({ job_id, worker_id }) => [job_id, worker_id]),
    [[id, 'worker-1']],
  )
  assert.equal((await look(id)).status, 'cancelled')
  const [lease] = await database.sql<{ job_ids: string[] }>('select job_ids from leases where token = $1', [
    token,
  ])
  assert.equal(lease?.job_ids.includes(id), false, 'it has left its lease')
})

test('a retrying job keeps the number of its attempts', async () => {
  const id = await jobInState(database.run, tenant, 'retrying')
  await cancel(id)
  assert.equal((await look(id)).attempts, 1)
})

test('dependents fail with a cancelled job all the way down, or wait for it', async () => {
  const [parent, child, grandchild, patient] = [newJob(), newJob(), newJob(), newJob()]
  child.depends_on = [parent.id]
  grandchild.depends_on = [child.id]
  Object.assign(patient, { depends_on: [parent.id], on_parent_failure: 'wait' })
  await seedJobs(database.run, tenant, [parent, child, grandchild, patient])
  await cancel(parent.id)
  const statuses = await Promise.all(
    [parent, child, grandchild, patient].map(async ({ id }) => (await look(id)).status),
  )
  assert.deepEqual(statuses, ['cancelled', 'failed', 'failed', 'blocked'])
  assert.equal((await look(child.id)).error?.code, 'dependency_failed')
})

test('parent and child can be cancelled together', async () => {
  const parent = newJob()
  const child = newJob({ depends_on: [parent.id] })
  await seedJobs(database.run, tenant, [parent, child])
  assert.equal((await cancel(parent.id, child.id)).length, 2)
  assert.equal((await look(child.id)).status, 'cancelled')
})

test('the capacity that was kept for a job is free again', async () => {
  const id = await jobInState(database.run, tenant, 'ready')
  await database.sql(
    `insert into reservations (job_id, org_id, worker_id, cpu_units, memory_mb) values ($1, $2, 'w', 4, 4096)`,
    [id, tenant.orgId],
  )
  await cancel(id)
  assert.deepEqual(await database.sql('select * from reservations'), [])
})

test('finished jobs and those of other organisations are left alone', async () => {
  const stranger = await seedTenant(database.run)
  const ids = [
    await jobInState(database.run, tenant, 'completed'),
    await jobInState(database.run, tenant, 'failed'),
    await jobInState(database.run, stranger, 'ready'),
  ]
  assert.deepEqual(await cancel(...ids), [])
})

test('a job that is claimed while it is being cancelled is taken from the worker', async () => {
  const [id] = await seedJobs(database.run, tenant, [newJob({ type: 'contested' })])
  assert.ok(id)
  const worker = new pg.Client(database.url)
  await worker.connect()
  await worker.query('begin')
  const runInside: Run = async ({ text, values }) => (await worker.query(text, [...values])).rows
  const { claimed } = await exchange(runInside, { workerId: 'w', claim: { limit: 1, types: ['contested'] } })
  assert.equal(claimed[0]?.job_id, id)
  const first = cancel(id)
  await waitUntilBlocked()
  await worker.query('commit')
  assert.equal((await first)[0]?.worker_id, 'w')
  await worker.end()
})

test('many cancel and complete at the same time, and each job ends once', async () => {
  const jobs = Array.from({ length: 60 }, () => newJob({ type: 'crowd' }))
  const ids = await seedJobs(database.run, tenant, jobs)
  const work = async (): Promise<void> => {
    const held = await claimTypes(database.run, ['crowd'], 7)
    for (const job of held) await end(database.run, job, FAILED)
  }
  await Promise.all([
    ...Array.from({ length: 6 }, work),
    ...ids.map((id) => cancel(id)),
    cancel(...ids.toReversed()),
  ])
  await cancel(...ids)
  const rows = await database.sql(
    `select count(*)::int as finished, count(distinct job_id)::int as jobs from finished_jobs where job_id = any ($1)`,
    [ids],
  )
  assert.deepEqual(rows, [{ finished: 60, jobs: 60 }])
  assert.deepEqual(await database.sql('select job_id from held_jobs where job_id = any ($1)', [ids]), [])
})

test('the API cancels and retries nothing in an organisation that it has not entered', async () => {
  const queued = await jobInState(database.run, tenant, 'ready')
  const failed = await jobInState(database.run, tenant, 'failed')
  await withClient(asLogin(database.url, 'functions'), async (client) => {
    for (const { text, values } of [cancelJobs(tenant.orgId, [queued]), retryJobs(tenant.orgId, [failed])]) {
      await assert.rejects(client.query(text, [...values]), { code: 'SQ401' })
    }
  })
  assert.deepEqual([(await look(queued)).status, (await look(failed)).status], ['ready', 'failed'])
})

const waitUntilBlocked = async (): Promise<void> => {
  for (;;) {
    const waiting = await database.sql(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (waiting.length > 0) return
  }
}
