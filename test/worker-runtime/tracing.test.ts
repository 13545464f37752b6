import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { trace } from '@opentelemetry/api'
import { z } from 'zod'
import { parseConfig } from '../../worker-runtime/config.ts'
import { defineThreadedJob, JobError, snooze } from '../../worker-runtime/handler-api.ts'
import type { JobTracing } from '../../worker-runtime/tracing/job-tracing.ts'
import { startTracing } from '../../worker-runtime/tracing/start-tracing.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { newJob, seedJobs, watchJobs } from '../support/jobs.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { SIGNERS } from '../support/webhooks.ts'
import { handle, keepLog, prepareWorker } from '../support/worker.ts'

let database: TestDatabase
let collector: OtlpReceiver
let target: Receiver
let edge: Edge
let ada: TestAccount
let tracing: JobTracing | undefined
let worker: ReturnType<typeof prepareWorker>
let jobs: ReturnType<typeof watchJobs>

const fetching = handle(async ({ path }, ctx) => {
  const own = trace.getTracer('of a handler').startSpan('own work')
  await ctx.fetch(`${target.url}${path}`)
  own.end()
}, 'fetching')
const failing = handle(async (_, ctx) => {
  if (ctx.attempt < 3) throw new JobError('broken', 'It broke.')
}, 'failing')
let naps = 0
const snoozing = handle(() => (++naps < 3 ? snooze(0) : 'awake'), 'snoozing')
const threaded = defineThreadedJob({
  type: 'threaded',
  schema: z.looseObject({}),
  module: new URL('../support/threaded/fetch.ts', import.meta.url),
})

before(async () => {
  // The SDK's own setting: five seconds unless set.
  process.env.OTEL_BSP_SCHEDULE_DELAY = '50'
  ;[database, collector, target] = await Promise.all([
    createTestDatabase(),
    startOtlpReceiver(),
    startReceiver(),
  ])
  const settings = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=top%20secret',
  }
  tracing = await startTracing(parseConfig(settings), keepLog().logger)
  const env = { SMARTQUEUE_HTTP_ALLOW: '127.0.0.1' }
  worker = prepareWorker(database.url, [fetching, failing, snoozing, threaded], env, { tracing })
  await worker.start()
  edge = await startEdge({ databaseUrl: database.url, bindings: settings })
  ada = await registerUser(edge)
  jobs = watchJobs(database.sql)
})
after(async () => {
  await edge.stop()
  await worker.stop()
  await tracing?.stop()
  await Promise.all([collector.stop(), target.stop(), database.drop()])
})

let made = 0
/** A client's span, in a trace of its own. */
const newTrace = (flags = '01') => {
  made++
  const traceId = made.toString(16).padStart(32, '7')
  const spanId = made.toString(16).padStart(16, '3')
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${flags}` }
}

const submit = async (type: string, traceparent: string, payload: object = {}, more: object = {}) => {
  const json = { name: 'a job', type, payload, retry: { initial_delay_seconds: 0 }, ...more }
  const answer = await edge.request('POST', '/jobs', { json, token: ada.token, headers: { traceparent } })
  assert.equal(answer.status, 201, answer.text)
  return answer.body as { id: string; traceparent: string }
}

const only = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => {
  const [span, ...others] = spans.filter((one) => one.name === name)
  assert.ok(span && others.length === 0, `${name} once`)
  return span
}

const linksTo = (span: ReceivedSpan, { traceId, spanId }: { traceId: string; spanId: string }): boolean =>
  span.links.some((link) => link.traceId === traceId && link.spanId === spanId)

test('a job is one connected trace, from the client to what its handler fetches', async () => {
  const client = newTrace()
  const { id, traceparent } = await submit('fetching', client.traceparent, { path: '/asked' })
  const names = ['POST /jobs', 'predict', 'insert', 'execute fetching', 'GET', 'own work']
  const spans = await collector.until(client.traceId, ...names)
  assert.deepEqual(spans.map(({ name }) => name).sort(), [...names].sort())
  const [server, predict, insert, execute, get, own] = names.map((name) => only(spans, name))
  assert.ok(server && predict && insert && execute && get && own)
  assert.equal(server.parentSpanId, client.spanId)
  assert.deepEqual(
    [predict, insert, execute].map(({ parentSpanId }) => parentSpanId),
    Array(3).fill(server.spanId),
  )
  assert.deepEqual(
    [get, own].map(({ parentSpanId }) => parentSpanId),
    [execute.spanId, execute.spanId],
  )
  assert.deepEqual(
    [server, predict, insert, execute, get].map(({ kind }) => kind),
    [2, 1, 3, 5, 3],
  )
  assert.deepEqual(
    [server, insert, execute, get].map(({ service }) => service),
    ['smartqueue-functions', 'smartqueue-functions', 'smartqueue-worker', 'smartqueue-worker'],
  )
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length)
  assert.ok(
    spans.every(({ startMs, endMs, failed }) => startMs > Date.now() - 60_000 && endMs >= startMs && !failed),
  )

  assert.equal(traceparent, `00-${client.traceId}-${server.spanId}-01`, 'what the job keeps')
  const read = await edge.request('GET', `/jobs/${id}`, { token: ada.token })
  assert.equal(read.body.traceparent, traceparent)
  const [asked] = target.of('/asked')
  assert.equal(asked?.headers.traceparent, `00-${client.traceId}-${get.spanId}-01`, 'what the target is told')
  assert.deepEqual([...collector.keys], ['top secret'], 'the headers go with the spans')
})

test('spans say what they are about by the conventions, and nothing of paths and payloads', async () => {
  const client = newTrace()
  const { id } = await submit('fetching', client.traceparent, { path: '/hidden?key=s3cret' })
  const spans = await collector.until(client.traceId, 'POST /jobs', 'insert', 'execute fetching', 'GET')
  const server = only(spans, 'POST /jobs').attributes
  assert.deepEqual(
    [server['http.request.method'], server['http.route'], server['http.response.status_code']],
    ['POST', '/jobs', 201],
  )
  const insert = only(spans, 'insert').attributes
  assert.deepEqual([insert['db.system.name'], insert['smartqueue.job.id']], ['postgresql', id])
  const execute = only(spans, 'execute fetching').attributes
  assert.deepEqual(
    ['messaging.message.id', 'job.type', 'job.name', 'job.attempt', 'job.outcome', 'worker.id'].map(
      (name) => execute[name] ?? execute[`smartqueue.${name}`],
    ),
    [id, 'fetching', 'a job', 1, 'completed', worker.id],
  )
  assert.ok(Number(execute['smartqueue.job.predicted_ms']) > 0)
  const get = only(spans, 'GET').attributes
  assert.deepEqual(
    [get['http.request.method'], get['server.address'], get['server.port'], get['http.response.status_code']],
    ['GET', '127.0.0.1', Number(new URL(target.url).port), 204],
  )
  assert.doesNotMatch(JSON.stringify(spans), /hidden|s3cret/)
})

test('a claim is linked with the jobs that it got, in both directions', async () => {
  const client = newTrace()
  await submit('fetching', client.traceparent, { path: '/claimed' })
  const spans = await collector.until(client.traceId, 'execute fetching', 'POST /jobs')
  const execute = only(spans, 'execute fetching')
  const claim = collector.spans.find((span) => span.name === 'claim' && linksTo(execute, span))
  assert.ok(claim)
  assert.notEqual(claim.traceId, client.traceId)
  assert.ok(linksTo(claim, only(spans, 'POST /jobs')))
  assert.ok(claim.endMs <= execute.endMs)
})

test('each attempt is a span of its own , also after a retry by hand', async () => {
  const client = newTrace()
  const { id } = await submit(
    'failing',
    client.traceparent,
    {},
    { retry: { max_attempts: 2, initial_delay_seconds: 0 } },
  )
  await jobs.untilStatus(id, 'failed')
  const retried = await edge.request('POST', `/jobs/${id}/retry`, { token: ada.token })
  assert.equal(
    retried.body.traceparent,
    (await edge.request('GET', `/jobs/${id}`, { token: ada.token })).body.traceparent,
  )
  const spans = await collector.until(client.traceId, ...Array(4).fill('execute failing'))
  const attempts = spans
    .filter(({ name }) => name === 'execute failing')
    .sort((a, b) => a.startMs - b.startMs)
  assert.deepEqual(
    attempts.map(({ attributes }) => attributes['smartqueue.job.attempt']),
    [1, 2, 1, 2],
  )
  assert.equal(new Set(attempts.map(({ spanId }) => spanId)).size, 4)
  assert.ok(attempts.every(({ failed, attributes }) => failed && attributes['error.type'] === 'broken'))
})

test('a snoozed attempt is no failure, and the next one is another span', async () => {
  const client = newTrace()
  await submit('snoozing', client.traceparent)
  const spans = await collector.until(client.traceId, ...Array(3).fill('execute snoozing'))
  const naps = spans.filter(({ name }) => name === 'execute snoozing').sort((a, b) => a.startMs - b.startMs)
  assert.deepEqual(
    naps.map(({ attributes, failed }) => [attributes['smartqueue.job.outcome'], failed]),
    [
      ['snoozed', false],
      ['snoozed', false],
      ['completed', false],
    ],
  )
  assert.equal(new Set(naps.map(({ spanId }) => spanId)).size, 3)
})

test('what a handler fetches in its thread is in the trace', async () => {
  const client = newTrace()
  await submit('threaded', client.traceparent, { url: `${target.url}/threaded` })
  const spans = await collector.until(client.traceId, 'execute threaded', 'GET')
  const get = only(spans, 'GET')
  assert.equal(get.parentSpanId, only(spans, 'execute threaded').spanId)
  assert.equal(target.of('/threaded')[0]?.headers.traceparent, `00-${client.traceId}-${get.spanId}-01`)
})

test('a callback is in the trace of the job that it tells of', async () => {
  const client = newTrace()
  const callback_url = `${target.url}/told`
  await submit('fetching', client.traceparent, { path: '/telling' }, { callback_url })
  const spans = await collector.until(client.traceId, 'execute callback', 'POST')
  const post = only(spans, 'POST')
  assert.equal(post.parentSpanId, only(spans, 'execute callback').spanId)
  assert.equal(target.of('/told')[0]?.headers.traceparent, `00-${client.traceId}-${post.spanId}-01`)
})

test('what is not sampled is kept and passed on, and not exported', async () => {
  const client = newTrace('00')
  const { id, traceparent } = await submit('fetching', client.traceparent, { path: '/unsampled' })
  assert.equal(traceparent, client.traceparent)
  await jobs.untilStatus(id, 'completed')
  const told = target.of('/unsampled')[0]?.headers.traceparent ?? ''
  assert.match(told, new RegExp(`^00-${client.traceId}-[0-9a-f]{16}-00$`))
  // A later one has arrived by the same ways.
  const later = newTrace()
  await submit('fetching', later.traceparent, { path: '/later' })
  await collector.until(later.traceId, 'POST /jobs', 'execute fetching')
  assert.deepEqual(collector.ofTrace(client.traceId), [])
})

test('a traceparent that is none begins a new trace', async () => {
  const { traceparent } = await submit('fetching', `01-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, {
    path: '/new',
  })
  const [, traceId = ''] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/.exec(traceparent) ?? []
  assert.notEqual(traceId, 'a'.repeat(32))
  const server = only(await collector.until(traceId, 'POST /jobs', 'execute fetching'), 'POST /jobs')
  assert.ok(!server.parentSpanId)
})

test('a job of a webhook is in the trace of its delivery', async () => {
  const client = newTrace()
  const template = { name: 'hooked', type: 'fetching', payload: { path: '/hooked' } }
  const json = { name: 'hooks', scheme: 'github', template }
  const source = await edge.request('POST', '/webhooks/sources', { json, token: ada.token })
  assert.equal(source.status, 201, source.text)
  const { body, headers } = await SIGNERS.github(source.body.secret, '{}')
  const answer = await edge.request('POST', `/hooks/${source.body.id}`, {
    body,
    headers: { ...headers, traceparent: client.traceparent },
  })
  assert.equal(answer.status, 202, answer.text)
  const names = ['POST /hooks/{source_id}', 'predict', 'insert', 'execute fetching', 'GET']
  const spans = await collector.until(client.traceId, ...names)
  const server = only(spans, 'POST /hooks/{source_id}')
  assert.equal(only(spans, 'execute fetching').parentSpanId, server.spanId)
})

test('jobs of a batch are of one trace; refused requests, too, have their span', async () => {
  const client = newTrace()
  const headers = { traceparent: client.traceparent }
  const one = { name: 'one of many', type: 'fetching', payload: { path: '/batch' } }
  const batch = await edge.request('POST', '/jobs/batch', {
    json: { jobs: [one, one] },
    token: ada.token,
    headers,
  })
  assert.equal(batch.status, 201)
  const spans = await collector.until(
    client.traceId,
    'POST /jobs/batch',
    ...Array(2).fill('execute fetching'),
  )
  const server = only(spans, 'POST /jobs/batch')
  const executes = spans.filter(({ name }) => name === 'execute fetching')
  assert.ok(executes.every(({ parentSpanId }) => parentSpanId === server.spanId))
  const lost = newTrace()
  await edge.request('GET', '/jobs/01890000-0000-7000-8000-000000000001', {
    headers: { traceparent: lost.traceparent },
  })
  const refused = only(await collector.until(lost.traceId, 'GET /jobs/{id}'), 'GET /jobs/{id}')
  assert.deepEqual([refused.attributes['http.response.status_code'], refused.failed], [401, false])
})

test('a job that was submitted in no trace is one of its own, known by its id', async () => {
  const [id = ''] = await seedJobs(database.run, ada, [newJob({ type: 'failing', max_attempts: 2 })])
  await jobs.untilStatus(id, 'failed')
  const traceId = id.replaceAll('-', '')
  const attempts = await collector.until(traceId, 'execute failing', 'execute failing')
  assert.equal(new Set(attempts.map(({ spanId }) => spanId)).size, 2)
})

test('a receiver that does not answer delays no submission, and misses nothing once it does', async () => {
  collector.hold()
  const clients = Array.from({ length: 20 }, () => newTrace())
  const startedAt = performance.now()
  await Promise.all(clients.map(({ traceparent }) => submit('fetching', traceparent, { path: '/slow' })))
  assert.ok(performance.now() - startedAt < 3_000)
  collector.release()
  for (const { traceId } of clients) await collector.until(traceId, 'POST /jobs', 'execute fetching')
})

test('log lines about a job say of which trace it is', async () => {
  const client = newTrace()
  const { id } = await submit('failing', client.traceparent, {}, { retry: { max_attempts: 1 } })
  await jobs.untilStatus(id, 'failed')
  const lines = worker.log.filter(({ job_id }) => job_id === id)
  assert.ok(lines.some(({ message }) => message === 'job failed'))
  assert.ok(lines.every(({ trace_id }) => trace_id === client.traceId))
})
