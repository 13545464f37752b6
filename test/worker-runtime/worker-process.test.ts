import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { freePort } from '../../worker-runtime/local/ports.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { httpJobs } from '../support/http-jobs.ts'
import { seedTenant } from '../support/jobs.ts'
import {
  documentedMetrics,
  lintMetrics,
  readMetrics,
  servedMetrics,
  WITH_PROMTOOL,
} from '../support/metrics.ts'
import { startTarget, type Target } from '../support/target.ts'
import { waitFor } from '../support/wait-for.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

let database: TestDatabase
let target: Target
let jobs: ReturnType<typeof httpJobs>
let worker: TestWorker
let port: number
let waitedForIt: string[]

before(async () => {
  database = await createTestDatabase()
  target = await startTarget()
  jobs = httpJobs(database, await seedTenant(database.run), target)
  waitedForIt = await Promise.all(Array.from({ length: 30 }, (_, n) => jobs.submit(`/ok?${n}`)))
  const NODE_OPTIONS = `--import ${new URL('../support/report-modules.ts', import.meta.url)}`
  port = await freePort()
  worker = await startWorker(database.url, {
    NODE_OPTIONS,
    SMARTQUEUE_WORKER_SLOTS: '4',
    SMARTQUEUE_METRICS_PORT: String(port),
  })
})
after(async () => {
  assert.equal(await worker.stop(), 0)
  await target.stop()
  await database.drop()
})

const logsOf = (id: string) =>
  database.sql<{ message: string; attempt: number }>(
    'select message, attempt from job_logs where job_id = $1 order by id',
    [id],
  )

test('jobs that waited before the worker came are found', async () => {
  await jobs.untilAll(waitedForIt, 'completed')
})

test('a worker runs a job and stores result and log', async () => {
  const id = await jobs.submit('/ok')
  const job = await jobs.untilStatus(id, 'completed')
  assert.equal(job.worker_id, worker.id)
  const { status, body } = job.result as { status: number; body: string }
  assert.deepEqual([status, body], [200, 'done'])
  assert.match((await logsOf(id))[0]?.message ?? '', /^GET /)
})

test('a failing job is retried and ends in failed when its attempts are used up', async () => {
  const id = await jobs.submit('/fail', { max_attempts: 3 })
  const job = await jobs.untilStatus(id, 'failed')
  assert.deepEqual([job.attempts, job.error?.code], [3, 'http_status'])
  assert.equal(target.arrived.filter((path) => path === '/fail').length, 3)
  const lines = await logsOf(id)
  assert.deepEqual([...new Set(lines.map(({ attempt }) => attempt))], [1, 2, 3])
  assert.match(lines.at(-1)?.message ?? '', /^http_status: 500 from GET /, 'the log says why')
})

test('a payload that does not fit is not tried again', async () => {
  const job = await jobs.untilStatus(await jobs.submit('/ok', { payload: { uri: 'x' } }), 'failed')
  assert.deepEqual([job.attempts, job.error?.code], [1, 'invalid_payload'])
})

test('a result that jsonb refuses is stored with the refused characters replaced', async () => {
  const job = await jobs.untilStatus(await jobs.submit('/nul'), 'completed')
  assert.equal((job.result as { body: string }).body, 'a\ufffdb')
})

test("without a receiver of spans nothing of OpenTelemetry's SDK is loaded", async () => {
  process.kill(worker.pid, 'SIGUSR2')
  const line = await waitFor('its modules', () => worker.log.find(({ message }) => message === 'modules'))
  const urls = line.urls as string[]
  assert.ok(urls.some((url) => url.endsWith('/worker-runtime/tracing/start-tracing.ts')))
  assert.deepEqual(
    // The API alone is a few interfaces, and prom-client brings it.
    urls.filter((url) => /@opentelemetry\/(?!api\/)/.test(url)),
    [],
  )
})

test('a worker serves all metrics that are documented for it, and no others', async () => {
  const text = await scrape()
  assert.deepEqual(servedMetrics(text), documentedMetrics('Worker pods').filter(isServedHere))
  const { values } = readMetrics(text)
  assert.equal(values.get('smartqueue_worker_slots'), 4)
  assert.ok((values.get('smartqueue_worker_jobs_total{type="http",outcome="completed"}') ?? 0) >= 31)
  assert.equal(values.get('smartqueue_worker_jobs_total{type="callback",outcome="completed"}'), 0)
  assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 200)
})

test('promtool check metrics passes on those of a worker', WITH_PROMTOOL, async () => {
  assert.equal(lintMetrics(await scrape()), '')
})

const scrape = async (): Promise<string> => {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  assert.equal(answer.status, 200)
  return answer.text()
}

/** Some of a process are told only on Linux. */
const isServedHere = (metric: string): boolean =>
  process.platform === 'linux' || !/^process_(virtual|heap|open|max)_/.test(metric)

test('SIGTERM lets running jobs finish and claims no more', async () => {
  await worker.stop()
  worker = await startWorker(database.url, { SMARTQUEUE_WORKER_SLOTS: '1' })
  const running = await jobs.submit('/wait-drain')
  await jobs.untilArrived('/wait-drain')
  const queued = await jobs.submit('/ok')
  const stopped = worker.stop()
  await waitFor('draining', () => worker.log.some(({ message }) => message === 'draining'))
  target.release()
  assert.equal(await stopped, 0)
  assert.equal(await jobs.statusOf(running), 'completed')
  assert.equal(await jobs.statusOf(queued), 'ready')
})

test('what cannot succeed is not retried', async () => {
  worker = await startWorker(database.url, { SMARTQUEUE_HTTP_ALLOW: '' })
  const refused = await jobs.untilStatus(await jobs.submit('/ok'), 'failed')
  assert.deepEqual([refused.attempts, refused.error?.code], [1, 'address_refused'])
})
