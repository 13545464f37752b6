import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { getJob } from '../../db/queries/jobs.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { COMPLETED, claimJob, end, FAILED, FAILURE, jobInState } from '../support/job-in-state.ts'
import { newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant
before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())

const retry = (...ids: string[]) => database.run(retryJobs(tenant.orgId, ids))
const look = async (id: string) => {
  const [job] = await database.run(getJob(tenant.orgId, id))
  assert.ok(job)
  return job
}
const attemptsOf = (id: string) =>
  database.sql('select attempt, outcome, error, worker_id from attempts where job_id = $1 order by id', [id])

/** Claims the job and ends it. */
const finish = async (id: string, type: string, state: 'completed' | 'failed'): Promise<void> =>
  end(database.run, await claimJob(database.run, id, type), state === 'completed' ? COMPLETED : FAILED)

test('a failed job starts over, and what it has tried is kept', async () => {
  const id = await jobInState(database.run, tenant, 'failed', { type: 'over', max_attempts: 1 })
  assert.deepEqual(await retry(id), [{ job_id: id, type: 'over', status: 'ready' }])
  const job = await look(id)
  assert.deepEqual([job.status, job.attempts, job.error, job.finished_at], ['ready', 0, null, null])
  const failed = { attempt: 1, outcome: 'failed', error: FAILURE, worker_id: 'worker-1' }
  assert.deepEqual(await attemptsOf(id), [failed])
  const events = await database.sql('select state, reason from job_events where job_id = $1 order by id', [
    id,
  ])
  assert.deepEqual(events.at(-1), { state: 'ready', reason: 'retried' })
  await finish(id, 'over', 'failed')
  await retry(id)
  assert.deepEqual(await attemptsOf(id), [failed, failed])
})

test('a cancelled job starts over, and what was cancelled is kept', async () => {
  const id = await jobInState(database.run, tenant, 'running')
  await database.run(cancelJobs(tenant.orgId, [id]))
  await retry(id)
  assert.deepEqual([(await look(id)).status, (await look(id)).attempts], ['ready', 0])
  const cancelled = { attempt: 1, outcome: 'cancelled', error: null, worker_id: 'worker-1' }
  assert.deepEqual(await attemptsOf(id), [cancelled])
})

test('a retried job keeps its fairness key, and waits among the jobs of that key', async () => {
  const id = await jobInState(database.run, tenant, 'failed', { fairness_key: 'customer-42' })
  await retry(id)
  assert.equal((await look(id)).fairness_key, 'customer-42')
  const flows = await database.sql(
    `select flow = flow_of(org_id, 'customer-42') as of_key from ready_jobs where job_id = $1`,
    [id],
  )
  assert.deepEqual(flows, [{ of_key: true }])
})

test('a job whose time has not come is pending again', async () => {
  const id = await jobInState(database.run, tenant, 'pending')
  await database.run(cancelJobs(tenant.orgId, [id]))
  assert.equal((await retry(id))[0]?.status, 'pending')
})

test('a job stands where its estimate is by now', async () => {
  const id = await jobInState(database.run, tenant, 'failed', { type: 'learned' })
  await database.sql(`update series set mean_log = 0 where type = 'learned'`)
  await retry(id)
  assert.deepEqual(await database.sql('select lane from ready_jobs where job_id = $1', [id]), [{ lane: 0 }])
})

test('a chain that failed together is retried together, and runs in order', async () => {
  const parent = newJob({ type: 'chain' })
  const child = newJob({ type: 'chain', depends_on: [parent.id] })
  await seedJobs(database.run, tenant, [parent, child])
  await finish(parent.id, 'chain', 'failed')
  assert.equal((await look(child.id)).status, 'failed')
  await retry(parent.id, child.id)
  assert.deepEqual([(await look(parent.id)).status, (await look(child.id)).status], ['ready', 'blocked'])
  await finish(parent.id, 'chain', 'completed')
  await finish(child.id, 'chain', 'completed')
})

test('a child that is retried before its parent is blocked until that has completed', async () => {
  const parent = newJob({ type: 'late' })
  const child = newJob({ type: 'late', depends_on: [parent.id] })
  await seedJobs(database.run, tenant, [parent, child])
  await finish(parent.id, 'late', 'failed')
  assert.equal((await retry(child.id))[0]?.status, 'blocked')
  assert.equal((await retry(parent.id))[0]?.status, 'ready')
  await finish(parent.id, 'late', 'completed')
  await finish(child.id, 'late', 'completed')
})

test('a dependent that waits for a failed parent goes on after its retry', async () => {
  const parent = newJob({ type: 'awaited' })
  const patient = newJob({ type: 'awaited', depends_on: [parent.id], on_parent_failure: 'wait' })
  await seedJobs(database.run, tenant, [parent, patient])
  await finish(parent.id, 'awaited', 'failed')
  await retry(parent.id)
  await finish(parent.id, 'awaited', 'completed')
  assert.equal((await look(patient.id)).status, 'ready')
})

test('two retries at the same time revive a job once', async () => {
  const id = await jobInState(database.run, tenant, 'failed')
  const answers = await Promise.all(Array.from({ length: 8 }, () => retry(id)))
  assert.equal(answers.flat().length, 1)
})
