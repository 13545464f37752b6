import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { createEndpoint, rotateCallbackSecret } from '../../db/queries/callback-endpoints.ts'
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { CALLBACK_EVENTS, type CallbackEvent } from '../../db/rules/callbacks.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { JobError } from '../../worker-runtime/handler-api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type JobView, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker } from '../support/worker.ts'

let database: TestDatabase
let receiver: Receiver
let jobs: ReturnType<typeof watchJobs>
let worker: ReturnType<typeof prepareWorker>

before(async () => {
  database = await createTestDatabase()
  receiver = await startReceiver()
  jobs = watchJobs(database.sql)
  const behave = handle(({ fail, result }) => {
    if (fail) throw new JobError('broken', 'It broke.', { permanent: true })
    return result
  })
  worker = prepareWorker(database.url, [behave], { SMARTQUEUE_HTTP_ALLOW: '127.0.0.1' })
  await worker.start()
})
after(async () => {
  await worker.stop()
  await receiver.stop()
  await database.drop()
})

let paths = 0
/** A path of its own at the receiver, and an organisation of its own. */
const setUp = async (): Promise<{ tenant: Tenant; path: string; url: string }> => {
  const path = `/hooks/${++paths}?key=secret`
  return { tenant: await seedTenant(database.run), path, url: receiver.url + path }
}

const submit = async (tenant: Tenant, overrides: Partial<NewJob>): Promise<string> => {
  const [id] = await seedJobs(database.run, tenant, [newJob(overrides)])
  await database.run(notify(JOBS_READY, ['test']))
  assert.ok(id)
  return id
}

const addEndpoint = async (tenant: Tenant, url: string, events: readonly CallbackEvent[]): Promise<void> => {
  await database.run(createEndpoint({ ...tenant, id: uuidV7(), url, events }))
}

const untilReceived = (path: string, times = 1): Promise<Received[]> =>
  waitFor(`${times} requests for ${path}`, () => {
    const received = receiver.of(path)
    return received.length >= times && received
  })

const secretOf = async ({ orgId }: Tenant): Promise<string> => {
  const [row] = await database.sql('select secret from callback_secrets where org_id = $1', [orgId])
  return String(row?.secret)
}

/** What a receiver does. Throws if the signature does not fit. */
const verify = async ({ body, headers }: Received, tenant: Tenant, secret?: string) =>
  new Webhook(secret ?? (await secretOf(tenant))).verify(body, headers) as {
    type: string
    timestamp: string
    data: Record<string, unknown>
  }

type CallbackView = JobView & { name: string; payload: { url: string }; triggered_by: { event: string } }

const callbacksOf = (jobId: string): Promise<CallbackView[]> =>
  database.sql(
    `select * from job_overview where triggered_by ->> 'kind' = 'callback' and triggered_by ->> 'job_id' = $1 order by id`,
    [jobId],
  )

/** Whatever waits for its backoff need not. */
const wakeUp = () => database.sql('update waiting_jobs set wake_at = now()')

/** Events are told in their order: once a later one was, those before it have been looked at. */
const untilPassed = async (): Promise<void> => {
  const { tenant, path, url } = await setUp()
  await submit(tenant, { callback_url: url })
  await untilReceived(path)
}

test('the end of a job is told, and the receiver finds the signature right', async () => {
  const { tenant, path, url } = await setUp()
  const id = await submit(tenant, {
    name: 'report',
    tags: ['a'],
    payload: { result: { ok: 1 } },
    callback_url: url,
  })
  const [received] = await untilReceived(path)
  assert.ok(received)
  const { type, timestamp, data } = await verify(received, tenant)
  const job = await jobs.look(id)
  assert.deepEqual([type, timestamp], ['job.completed', job.finished_at?.toISOString()])
  assert.deepEqual(data, {
    ...{ id, name: 'report', type: 'test', status: 'completed', attempts: 1, tags: ['a'] },
    ...{ result: { ok: 1 }, error: null, org_id: tenant.orgId, triggered_by: null },
    created_at: (data.created_at as string) ?? '',
    started_at: job.started_at?.toISOString(),
    finished_at: timestamp,
  })
  const [callback] = await callbacksOf(id)
  assert.ok(callback)
  await jobs.untilStatus(callback.id, 'completed')
  assert.equal(callback.name, `job.completed → ${new URL(url).host}`)
  assert.equal(received.headers['webhook-id'], callback.id)
  assert.equal(received.headers['content-type'], 'application/json')
  assert.match(received.headers['user-agent'] ?? '', /^SmartQueue\/\d+\.\d+\.\d+$/)
  const { status, duration_ms } = (await jobs.look(callback.id)).result as Record<string, number>
  assert.equal(status, 204)
  assert.ok(Number.isInteger(duration_ms))
  await assert.rejects(verify({ ...received, body: `${received.body} ` }, tenant), 'one byte more')
})

test('a failure is told with its error, and what was cancelled without having run is told, too', async () => {
  const { tenant, path, url } = await setUp()
  const failed = await submit(tenant, { payload: { fail: true }, callback_url: url })
  const [first] = await untilReceived(path)
  assert.ok(first)
  const failure = await verify(first, tenant)
  assert.deepEqual(
    [failure.type, failure.data.id, failure.data.status, failure.data.error],
    ['job.failed', failed, 'failed', { code: 'broken', message: 'It broke.' }],
  )
  const later = await submit(tenant, { run_at: '2999-01-01T00:00:00Z', callback_url: url })
  await database.run(cancelJobs(tenant.orgId, [later]))
  const [, second] = await untilReceived(path, 2)
  assert.ok(second)
  const { type, data } = await verify(second, tenant)
  assert.deepEqual(
    [type, data.id, data.attempts, data.started_at, data.error, data.result],
    ['job.cancelled', later, 0, null, null, null],
  )
})

test('a result that is too large is left out, and that is said', async () => {
  const { tenant, path, url } = await setUp()
  await submit(tenant, { payload: { result: 'x'.repeat(65_534) }, callback_url: url })
  await submit(tenant, { payload: { result: 'x'.repeat(65_535) }, callback_url: url })
  const bodies = await Promise.all((await untilReceived(path, 2)).map((one) => verify(one, tenant)))
  const results = bodies.map(({ data }) => [String(data.result).length, data.result_omitted])
  assert.deepEqual(results.sort(), [
    [4, true],
    [65_534, undefined],
  ])
})

test('while the previous secret is good both sign, and then only the new one', async () => {
  const { tenant, path, url } = await setUp()
  const [old] = await database.run(rotateCallbackSecret(tenant.orgId, 60))
  const [fresh] = await database.run(rotateCallbackSecret(tenant.orgId, 60))
  assert.ok(old && fresh && old.secret !== fresh.secret)
  await submit(tenant, { callback_url: url })
  const [first] = await untilReceived(path)
  assert.ok(first)
  for (const { secret } of [old, fresh]) await verify(first, tenant, secret)
  assert.equal(first.headers['webhook-signature']?.split(' ').length, 2)
  await database.sql(`update callback_secrets set previous_expires_at = now() where org_id = $1`, [
    tenant.orgId,
  ])
  await submit(tenant, { callback_url: url })
  const [, second] = await untilReceived(path, 2)
  assert.ok(second)
  await verify(second, tenant, fresh.secret)
  await assert.rejects(verify(second, tenant, old.secret))
})

test('what was not taken is sent again, under the same id and with the time of the attempt', async () => {
  const { tenant, path, url } = await setUp()
  receiver.reply(path, { status: 500, body: 'down\0' }, { status: 404 })
  const id = await submit(tenant, { callback_url: url })
  await untilReceived(path, 1)
  const [callback] = await callbacksOf(id)
  const waiting = await jobs.untilStatus(callback?.id, 'retrying')
  assert.deepEqual(waiting.error, { code: 'http_status', message: `${new URL(url).host} answered 500: down` })
  for (const times of [2, 3]) {
    await waitFor(
      'a backoff',
      async () => (await jobs.statusOf(callback?.id)) !== 'running' && (await wakeUp()),
    )
    await untilReceived(path, times)
  }
  assert.equal((await jobs.untilStatus(callback?.id, 'completed')).attempts, 3)
  const sent = receiver.of(path)
  assert.deepEqual([...new Set(sent.map(({ headers }) => headers['webhook-id']))], [callback?.id])
  assert.deepEqual([...new Set(sent.map(({ body }) => body))].length, 1)
  for (const one of sent) await verify(one, tenant)
})

test('a redirect is a failure, and is not followed', async () => {
  const { tenant, path, url } = await setUp()
  receiver.reply(path, { status: 302, headers: { location: '/elsewhere' } })
  const id = await submit(tenant, { callback_url: url })
  await untilReceived(path)
  const [callback] = await callbacksOf(id)
  const waiting = await jobs.untilStatus(callback?.id, 'retrying')
  assert.match(String(waiting.error?.message), /answered 302: redirects are not followed/)
  assert.deepEqual(receiver.of('/elsewhere'), [])
})

test('a receiver that is gone is told no more', async () => {
  const { tenant, path, url } = await setUp()
  receiver.reply(path, { status: 410 })
  const [id, waiting] = await Promise.all([
    submit(tenant, { callback_url: url }),
    submit(tenant, { callback_url: url, run_at: '2999-01-01T00:00:00Z' }),
  ])
  await untilReceived(path)
  const [callback] = await callbacksOf(id)
  assert.equal((await jobs.untilStatus(callback?.id, 'failed')).error?.code, 'gone')
  assert.equal((await jobs.look(callback?.id)).attempts, 1)
  const [endpoint] = await database.sql(
    'select events, disabled_reason from callback_endpoints where url = $1',
    [url],
  )
  assert.deepEqual(endpoint, { events: [], disabled_reason: 'answered 410 Gone' })
  await database.run(cancelJobs(tenant.orgId, [waiting]))
  await untilPassed()
  assert.deepEqual(await callbacksOf(waiting), [])

  // Somebody has it sent once more, and then enables the URL.
  await database.run(retryJobs(tenant.orgId, [callback?.id ?? '']))
  await database.run(notify(JOBS_READY, ['callback']))
  assert.deepEqual((await jobs.untilStatus(callback?.id, 'completed')).result, { skipped: 'disabled' })
  assert.equal(receiver.of(path).length, 1)
  await database.sql('update callback_endpoints set disabled_at = null where url = $1', [url])
  await submit(tenant, { callback_url: url })
  await untilReceived(path, 2)
})

test('a failed callback can be retried like any job', async () => {
  const { tenant, path, url } = await setUp()
  const id = await submit(tenant, { callback_url: url })
  const [callback] = await waitFor('the callback', async () => {
    const made = await callbacksOf(id)
    return made.length > 0 && made
  })
  await jobs.untilStatus(callback?.id, 'completed')
  receiver.reply(path, { status: 500 })
  const second = await submit(tenant, { callback_url: url })
  await untilReceived(path, 2)
  const [failing] = await callbacksOf(second)
  await jobs.untilStatus(failing?.id, 'retrying')
  await database.run(cancelJobs(tenant.orgId, [failing?.id ?? '']))
  await database.run(retryJobs(tenant.orgId, [failing?.id ?? '']))
  await database.run(notify(JOBS_READY, ['callback']))
  await jobs.untilStatus(failing?.id, 'completed')
  const [, refused, taken] = receiver.of(path)
  assert.ok(refused && taken)
  assert.equal(taken.headers['webhook-id'], refused.headers['webhook-id'])
})

test('a receiver that asks for a pause gets it', async () => {
  const { tenant, path, url } = await setUp()
  receiver.reply(path, { status: 429, headers: { 'retry-after': '600' } })
  const id = await submit(tenant, { callback_url: url })
  await untilReceived(path)
  const [callback] = await callbacksOf(id)
  await jobs.untilStatus(callback?.id, 'retrying')
  const [row] = await database.sql(
    `select wake_at > now() + interval '9 minutes' as later from waiting_jobs where job_id = $1`,
    [callback?.id],
  )
  assert.deepEqual(row, { later: true })
})

test('an endpoint is told of the events it asked for, and of nothing before it', async () => {
  const { tenant, path, url } = await setUp()
  await jobs.untilStatus(await submit(tenant, { payload: { fail: true } }), 'failed')
  await addEndpoint(tenant, url, ['job.failed'])
  await jobs.untilStatus(await submit(tenant, {}), 'completed')
  const failed = await submit(tenant, { payload: { fail: true } })
  const [received] = await untilReceived(path)
  assert.ok(received)
  assert.equal((await verify(received, tenant)).data.id, failed)
  await untilPassed()
  assert.equal(receiver.of(path).length, 1)
})

test('a URL that a job and its organisation name is told once, and callbacks tell nobody', async () => {
  const { tenant, path, url } = await setUp()
  await addEndpoint(tenant, url, CALLBACK_EVENTS)
  await addEndpoint(tenant, `${url}&other`, CALLBACK_EVENTS)
  const id = await submit(tenant, { callback_url: url })
  for (const one of [path, `${path}&other`]) await untilReceived(one)
  const callbacks = await callbacksOf(id)
  assert.equal(callbacks.length, 2)
  await jobs.untilAll(
    callbacks.map((callback) => callback.id),
    'completed',
  )
  await untilPassed()
  for (const callback of callbacks) assert.deepEqual(await callbacksOf(callback.id), [])
  assert.deepEqual([receiver.of(path).length, receiver.of(`${path}&other`).length], [1, 1])
})

test('private addresses are refused, and not tried again', async () => {
  const { tenant } = await setUp()
  const id = await submit(tenant, { callback_url: 'http://169.254.169.254/latest' })
  const [callback] = await waitFor('the callback', async () => {
    const made = await callbacksOf(id)
    return made.length > 0 && made
  })
  const { error, attempts } = await jobs.untilStatus(callback?.id, 'failed')
  assert.deepEqual([error?.code, attempts], ['address_refused', 1])
})

test('nobody can submit callbacks, or handle them in our place', async () => {
  const types = await database.sql(`select type from job_types where type = 'callback'`)
  assert.deepEqual(types, [])
  const impostor = handle(() => {}, 'callback')
  assert.throws(() => prepareWorker(database.url, [impostor]), /"callback" is a type of SmartQueue's own/)
})
