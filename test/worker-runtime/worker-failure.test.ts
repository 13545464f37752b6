import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, beforeEach, test } from 'node:test'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { httpJobs } from '../support/http-jobs.ts'
import { seedTenant, type Tenant } from '../support/jobs.ts'
import { startTarget, type Target } from '../support/target.ts'
import { waitFor } from '../support/wait-for.ts'
import { startWorker } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let target: Target
let jobs: ReturnType<typeof httpJobs>
before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(async (t) => {
  target = await startTarget()
  jobs = httpJobs(database, tenant, target)
  if ('after' in t) t.after(() => target.stop())
})

test('a job that outlasts the drain time is given back and the try does not count', async () => {
  const worker = await startWorker(database.url, { SMARTQUEUE_DRAIN_SECONDS: '0' })
  const id = await jobs.submit('/wait')
  await jobs.untilArrived('/wait')
  assert.equal(await worker.stop(), 0)
  const job = await jobs.look(id)
  assert.deepEqual([job.status, job.attempts], ['ready', 0])
  const successor = await startWorker(database.url)
  target.release()
  await jobs.untilStatus(id, 'completed')
  await successor.stop()
})

test("a killed worker's job is taken over when its lease runs out, and the attempt counts", async () => {
  const victim = await startWorker(database.url)
  const id = await jobs.submit('/wait')
  await jobs.untilArrived('/wait')
  await victim.kill()
  assert.equal((await jobs.look(id)).status, 'running', 'the lease still stands')
  await database.sql('update leases set expires_at = now()')
  const successor = await startWorker(database.url)
  await jobs.untilArrived('/wait', 2)
  target.release()
  await jobs.untilStatus(id, 'completed')
  const job = await jobs.look(id)
  assert.deepEqual([job.attempts, job.worker_id], [2, successor.id])
  await successor.stop()
})

test('a worker that finishes after it lost its lease changes nothing, and says so once', async () => {
  const worker = await startWorker(database.url)
  const id = await jobs.submit('/wait')
  await jobs.untilArrived('/wait')
  await database.sql(
    'update leases set token = gen_random_uuid(), expires_at = now() + interval $$1 hour$$ where job_id = $1',
    [id],
  )
  target.release()
  const said = () =>
    worker.log.filter(({ message, job_id }) => job_id === id && String(message).startsWith('lease lost'))
  await waitFor('the loss to be logged', () => said().length > 0)
  assert.equal((await jobs.look(id)).status, 'running')
  assert.deepEqual(await database.sql('select * from attempts where job_id = $1', [id]), [])
  await worker.stop()
  assert.equal(said().length, 1)
})

test('a worker that claims a job again, after it lost it, runs the new attempt only', async () => {
  const worker = await startWorker(database.url)
  const id = await jobs.submit('/wait')
  await jobs.untilArrived('/wait')
  await database.sql('update leases set expires_at = now()')
  await jobs.untilArrived('/wait', 2)
  assert.deepEqual([(await jobs.look(id)).attempts, (await jobs.look(id)).worker_id], [2, worker.id])
  const stopped = worker.stop()
  await waitFor('draining', () => worker.log.some(({ message }) => message === 'draining'))
  target.release()
  assert.equal(await stopped, 0)
  const job = await jobs.look(id)
  assert.deepEqual([job.status, job.attempts], ['completed', 2], 'the drain waited for it')
})

test('a worker outlives the loss of all its connections', async () => {
  const worker = await startWorker(database.url)
  await waitFor(
    'the listener',
    async () =>
      (await database.sql(`select 1 from pg_stat_activity where application_name like '%listener'`)).length,
  )
  await database.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'smartqueue ${worker.id}%'`,
  )
  target.release()
  const id = await jobs.submit('/ok')
  await jobs.untilStatus(id, 'completed')
  assert.equal(await worker.stop(), 0)
})

test('a worker on a database without a schema says what to do', async () => {
  const empty = await createTestDatabase({ empty: true })
  const { status, stderr } = spawnSync(process.execPath, ['worker-runtime/main.ts'], {
    env: { ...process.env, DATABASE_URL: empty.url },
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  assert.match(stderr, /^The schema is at version 0, \d+ is needed\. Run npm run migrate\.\n$/)
  await empty.drop()
})

test('two workers share the jobs, each job once', async () => {
  const workers = await Promise.all([startWorker(database.url), startWorker(database.url)])
  const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => jobs.submit(`/ok?${n}`)))
  await Promise.all(ids.map((id) => jobs.untilStatus(id, 'completed')))
  assert.deepEqual(target.arrived.sort(), Array.from({ length: 40 }, (_, n) => `/ok?${n}`).sort())
  await Promise.all(workers.map((worker) => worker.stop()))
})
