import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { JOBS_CANCELLED, notify, ping } from '../../db/queries/notifications.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { createDatabaseWatch, SILENT_MS } from '../../worker-runtime/database-watch.ts'
import { createStatusServer, probe } from '../../worker-runtime/http/status-server.ts'
import { createWorkerMetrics, type WorkerCondition } from '../../worker-runtime/http/worker-metrics.ts'
import { createWorkerStatus } from '../../worker-runtime/http/worker-status.ts'
import { type BreakableProxy, startBreakableProxy } from '../support/breakable-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { newJob, passLeaseOn, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { readMetrics } from '../support/metrics.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker, untilListening } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let network: BreakableProxy

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  network = await startBreakableProxy(database.url)
})
after(async () => {
  network.stop()
  await database.drop()
})

/** The database, by way of the network that can be cut. */
const throughNetwork = (): string => {
  const url = new URL(database.url)
  url.host = new URL(network.url).host
  return url.href
}

type Reply = { status: number; body: string; headers: Record<string, unknown> }

const ask = (port: number, path: string, method = 'GET'): Promise<Reply> =>
  new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', path, method }, async (response) => {
      let body = ''
      for await (const part of response) body += part
      resolve({ status: response.statusCode ?? 0, body, headers: response.headers })
    })
      .on('error', reject)
      .end()
  })

test('probes tell how a worker is, from before its start until it has drained', async (t) => {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const metrics = createWorkerMetrics(['test', 'broken', 'patient'])
  const handlers = [
    handle(() => ({})),
    handle(() => Promise.reject(new Error('no')), 'broken'),
    handle(() => released, 'patient'),
  ]
  const worker = prepareWorker(throughNetwork(), handlers, { SMARTQUEUE_WORKER_SLOTS: '3' }, { metrics })
  const status = createWorkerStatus({ port: 0, metrics, condition: worker.condition, onError: assert.fail })
  await status.start()
  t.after(async () => {
    release()
    await worker.stop()
    await status.stop()
    await status.stop()
  })
  const probes = async () => {
    const answers = await Promise.all(
      ['/healthz', '/startupz', '/readyz'].map((path) => ask(status.port(), path)),
    )
    return answers.map(({ status: code }) => code)
  }
  const readValue = async (name: string) =>
    readMetrics((await ask(status.port(), '/metrics')).body).values.get(name)

  assert.deepEqual(await probes(), [200, 503, 503], 'lives, and has not started')
  assert.equal((await ask(status.port(), '/readyz')).body, 'starting\n')
  await worker.start()
  assert.deepEqual(await probes(), [200, 200, 200])

  const jobs = watchJobs(database.sql)
  const [done, failed, patient] = await seedJobs(database.run, tenant, [
    newJob({ type: 'test' }),
    newJob({ type: 'broken', max_attempts: 1 }),
    newJob({ type: 'patient' }),
  ])
  await jobs.untilStatus(String(done), 'completed')
  await jobs.untilStatus(String(failed), 'failed')
  await jobs.untilStatus(String(patient), 'running')
  await waitFor('the counts', async () => {
    const { values } = readMetrics((await ask(status.port(), '/metrics')).body)
    return (
      values.get('smartqueue_worker_jobs_total{type="test",outcome="completed"}') === 1 &&
      values.get('smartqueue_worker_jobs_total{type="broken",outcome="failed"}') === 1
    )
  })
  const { values } = readMetrics((await ask(status.port(), '/metrics')).body)
  assert.equal(values.get('smartqueue_worker_in_flight'), 1)
  assert.equal(values.get('smartqueue_worker_slots'), 3)
  assert.equal(values.get('smartqueue_worker_execution_seconds_count{type="test"}'), 1)
  assert.equal(values.get('smartqueue_worker_execution_seconds_count{type="patient"}'), 0)
  assert.equal(values.get('smartqueue_worker_claim_batch_size_sum'), 3)
  assert.ok((values.get('smartqueue_worker_claim_seconds_count') ?? 0) > 0)
  await waitFor('it to lead', async () => (await readValue('smartqueue_worker_leader')) === 1)
  const [leader] = await database.sql<{ term: string }>('select term from scheduler_leader')
  assert.equal(await readValue('smartqueue_worker_leader_term'), Number(leader?.term))

  network.break()
  await waitFor('the database to be missed', async () => {
    return (await readValue('smartqueue_worker_database_up')) === 0
  })
  assert.deepEqual(await probes(), [200, 200, 503], 'without the database it lives, and is not ready')
  assert.equal((await ask(status.port(), '/readyz')).body, 'the database does not answer\n')
  assert.equal(await readValue('smartqueue_worker_leader'), 0)
  network.mend()
  await waitFor('the database to be back', async () => {
    return (await readValue('smartqueue_worker_database_up')) === 1
  })
  assert.deepEqual(await probes(), [200, 200, 200])

  const stopped = worker.stop()
  assert.deepEqual(await probes(), [200, 200, 503], 'draining it lives, and is not ready')
  assert.equal(await readValue('smartqueue_worker_draining'), 1)
  release()
  await stopped
  assert.deepEqual(await probes(), [200, 200, 503], 'it answers until its process ends')
})

test('jobs that are cancelled, lost or handed back count as that', async (t) => {
  const metrics = createWorkerMetrics(['test'])
  const finish = new Map<string, () => void>()
  const handler = handle(
    (_, { signal, jobId }) =>
      new Promise<void>((resolve, reject) => {
        finish.set(jobId, resolve)
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
  )
  const worker = prepareWorker(database.url, [handler], { SMARTQUEUE_DRAIN_SECONDS: '0' }, { metrics })
  await worker.start()
  t.after(worker.stop)
  const [cancelled = '', lost = '', unfinished = ''] = await seedJobs(database.run, tenant, [
    newJob(),
    newJob(),
    newJob(),
  ])
  await waitFor('all to run', () => finish.size === 3)
  const countOf = async (outcome: string) => {
    const { values } = readMetrics(await metrics.registry.metrics())
    return values.get(`smartqueue_worker_jobs_total{type="test",outcome="${outcome}"}`)
  }
  await untilListening(database, worker)
  await database.run(cancelJobs(tenant.orgId, [cancelled]))
  await database.run(notify(JOBS_CANCELLED, [worker.id]))
  await waitFor('the cancelled one', async () => (await countOf('cancelled')) === 1)
  await passLeaseOn(database.sql, lost)
  finish.get(lost)?.()
  await waitFor('the lost one', async () => (await countOf('lost')) === 1)
  await worker.stop()
  assert.equal(await countOf('given_back'), 1)
  assert.equal(await watchJobs(database.sql).statusOf(unfinished), 'ready')
  const { values } = readMetrics(await metrics.registry.metrics())
  assert.equal(values.get('smartqueue_worker_lease_losses_total'), 1)
})

test('a worker whose claims stand still does not live, whatever the database does', async (t) => {
  const well = {
    ...{ started: true, draining: false, databaseUp: false, stuck: false },
    ...{ inFlight: 0, slots: 1, term: undefined },
  }
  let condition: WorkerCondition = well
  const status = createWorkerStatus({
    port: 0,
    metrics: createWorkerMetrics([]),
    condition: () => condition,
    onError: assert.fail,
  })
  await status.start()
  t.after(status.stop)
  assert.equal((await ask(status.port(), '/healthz')).status, 200)
  condition = { ...well, databaseUp: true, stuck: true }
  assert.equal((await ask(status.port(), '/healthz')).status, 503)
})

test('the database is up while it answers, also with a refusal', async () => {
  let nowMs = 0
  let error: Error | undefined
  const watch = createDatabaseWatch(() => nowMs)
  const run = watch.watch(async () => {
    if (error) throw error
    return []
  })
  const ask = (failure?: Error) => {
    error = failure
    return run(ping()).catch(() => {})
  }
  const databaseError = (code: string) => Object.assign(new pg.DatabaseError('no', 1, 'error'), { code })
  assert.equal(watch.isUp(), false, 'nobody has asked')
  await ask()
  assert.equal(watch.isUp(), true)
  nowMs += SILENT_MS
  await ask(new Error('connect ECONNREFUSED'))
  await ask(databaseError('57P03'))
  assert.equal(watch.isUp(), false)
  await ask(databaseError('23505'))
  assert.equal(watch.isUp(), true)
})

test('a status server answers what it was given, to GET and HEAD', async (t) => {
  const errors: Error[] = []
  let reason: string | undefined
  const server = createStatusServer({
    port: 0,
    routes: {
      '/healthz': probe(() => reason),
      '/broken': () => Promise.reject(new Error('secret')),
    },
    onError: (error) => errors.push(error),
  })
  await server.start()
  t.after(server.stop)
  const port = server.port()
  assert.deepEqual(
    await Promise.all([ask(port, '/healthz'), ask(port, '/healthz?verbose=1')]).then((replies) =>
      replies.map(({ status, body }) => [status, body]),
    ),
    [
      [200, 'ok\n'],
      [200, 'ok\n'],
    ],
  )
  reason = 'not now'
  const head = await ask(port, '/healthz', 'HEAD')
  assert.deepEqual([head.status, head.body, head.headers['content-length']], [503, '', '8'])
  const posted = await ask(port, '/healthz', 'POST')
  assert.deepEqual([posted.status, posted.headers.allow], [405, 'GET, HEAD'])
  assert.equal((await ask(port, '/')).status, 404)
  assert.equal((await ask(port, '/constructor')).status, 404)
  const broken = await ask(port, '/broken')
  assert.equal(broken.status, 500)
  assert.doesNotMatch(broken.body, /secret/)
  assert.deepEqual(
    errors.map(({ message }) => message),
    ['secret'],
  )
})
