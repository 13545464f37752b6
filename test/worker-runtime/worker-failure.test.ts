import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { reclaimExpiredLeases } from '../../db/queue/upkeep.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { httpJobs } from '../support/http-jobs.ts'
import { clearJobs, lead, makeSuspects, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'
import { startTarget, type Target } from '../support/target.ts'
import { waitFor } from '../support/wait-for.ts'
import { CRASHING, startWorker as forkWorker, type TestWorker } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let target: Target
let jobs: ReturnType<typeof httpJobs>
let workers: TestWorker[] = []
before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.kill()))
  workers = []
  await clearJobs(database.sql)
})
beforeEach(async (t) => {
  target = await startTarget()
  jobs = httpJobs(database, tenant, target)
  if ('after' in t) t.after(() => target.stop())
})

const startWorker = async (...options: Parameters<typeof forkWorker>): Promise<TestWorker> => {
  const worker = await forkWorker(...options)
  workers.push(worker)
  return worker
}

/** Simulates half a minute after all workers have died. */
const loseHeldJobs = async (): Promise<void> => {
  await database.sql(`update workers set last_seen = now() - interval '30 seconds'`)
  await database.sql('update leases set expires_at = now()')
  await database.run(reclaimExpiredLeases(await lead(database.run), 100))
}

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

test('a worker that claims a job again, after it lost it, runs the new attempt only', async () => {
  const worker = await startWorker(database.url)
  const id = await jobs.submit('/wait')
  await jobs.untilArrived('/wait')
  const [lease] = await database.sql('select token from leases')
  await waitFor('the watchdog', async () => {
    // Again, should the worker have renewed it just now.
    await database.sql('update leases set expires_at = now() where token = $1', [lease?.token])
    return (await database.sql('select from leases where token = $1', [lease?.token])).length === 0
  })
  await jobs.untilArrived('/wait', 2)
  assert.deepEqual([(await jobs.look(id)).attempts, (await jobs.look(id)).worker_id], [2, worker.id])
  const stopped = worker.stop()
  await waitFor('draining', () => worker.log.some(({ message }) => message === 'draining'))
  target.release()
  assert.equal(await stopped, 0)
  const job = await jobs.look(id)
  assert.deepEqual([job.status, job.attempts], ['completed', 2], 'the drain waited for it')
})

test('a worker that crashes while holding several jobs costs none of them an attempt', async () => {
  await seedJobs(database.run, tenant, [
    // Jobs that take no time first: while their mean is below 10 ms, others are held ahead.
    ...Array.from({ length: 40 }, () => newJob({ name: 'short', priority: 'critical' })),
    ...Array.from({ length: 6 }, () => newJob({ type: 'call', payload: { url: `${target.url}/wait` } })),
  ])
  const victim = await startWorker(database.url, { SMARTQUEUE_WORKER_SLOTS: '2' }, CRASHING)
  const leases = await waitFor('jobs in hand', async () => {
    const rows = await database.sql<{ job_id: string }>(
      `select job_id from held_jobs join jobs on id = job_id where name <> 'short'`,
    )
    return rows.length === 4 && target.arrived.filter((path) => path === '/wait').length === 2 && rows
  })
  await victim.kill()
  await database.sql('update leases set expires_at = now()')
  const term = await lead(database.run)
  await database.run(reclaimExpiredLeases(term, 10))
  for (const { job_id } of leases) {
    const job = await jobs.look(job_id)
    assert.deepEqual([job.status, job.attempts], ['ready', 0])
  }
})

test('a job that kills its worker ends in failed, also if it was claimed together with others', async () => {
  const env = { SMARTQUEUE_WORKER_SLOTS: '1' }
  const [, , killer, last] = await seedJobs(database.run, tenant, [
    newJob({ priority: 'critical' }),
    newJob({ priority: 'critical' }),
    newJob({ type: 'kill', max_attempts: 2 }),
    newJob({ priority: 'low' }),
  ])
  let deaths = 0
  while ((await jobs.statusOf(killer)) !== 'failed') {
    assert.ok(++deaths < 6, `${deaths} workers`)
    const victim = await startWorker(database.url, env, CRASHING)
    await victim.exited
    await loseHeldJobs()
  }
  const job = await jobs.look(killer)
  assert.deepEqual([job.attempts, job.error?.code], [2, 'worker_lost'])
  const worker = await startWorker(database.url, env, CRASHING)
  await jobs.untilStatus(last, 'completed')
  await worker.stop()
})

test('a job that keeps killing its workers fails alone, and the eleven next to it complete', async () => {
  const env = { SMARTQUEUE_WORKER_SLOTS: '12' }
  const killer = newJob({ type: 'kill', max_attempts: 1 })
  const innocents = Array.from({ length: 11 }, () => newJob({ max_attempts: 1 }))
  const ids = innocents.map(({ id }) => id)
  await seedJobs(database.run, tenant, [...innocents.slice(0, 5), killer, ...innocents.slice(5)])
  await makeSuspects(database, ['test', 'kill'])
  assert.equal((await database.sql('select from ready_jobs where lane >= 15000')).length, 12)
  const victim = await startWorker(database.url, env, CRASHING)
  await victim.exited
  const [held] = await database.sql('select job_id from held_jobs')
  assert.deepEqual(held, { job_id: killer.id }, 'it was alone')
  await loseHeldJobs()
  const culprit = await jobs.look(killer.id)
  assert.deepEqual([culprit.status, culprit.attempts, culprit.error?.code], ['failed', 1, 'worker_lost'])

  const successor = await startWorker(database.url, env, CRASHING)
  await jobs.untilAll(ids, 'completed')
  for (const id of ids) assert.equal((await jobs.look(id)).attempts, 1)
  assert.equal(await successor.stop(), 0)
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
