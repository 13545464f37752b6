import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { disableCallbackUrl } from '../../db/queries/callback-delivery.ts'
import { MAX_ENDPOINTS } from '../../db/queries/callback-endpoints.ts'
import { newCallback } from '../../db/queries/callback-job.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { CALLBACK_EVENTS } from '../../db/rules/callbacks.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { COMPLETED, claimJob, end, jobInState } from '../support/job-in-state.ts'
import { seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const ask = (method: string, path: string, json?: unknown, account = ada): Promise<Answer> =>
  edge.request(method, path, { token: account.token, ...(json !== undefined && { json }) })

const addEndpoint = async (url: string, events?: string[]): Promise<Record<string, unknown>> => {
  const { status, body, text } = await ask('POST', '/callbacks/endpoints', { url, ...(events && { events }) })
  assert.equal(status, 201, text)
  return body
}

const lastAudited = async (): Promise<unknown[]> => {
  const { items } = (await ask('GET', '/orgs/me/audit?limit=1')).body
  return [items[0].action, items[0].target]
}

test('an endpoint is made, listed, changed, disabled, enabled and deleted', async () => {
  const made = await addEndpoint('https://example.com/a?token=x')
  const { id, created_at, updated_at, ...rest } = made
  assert.ok(Date.parse(String(created_at)) && Date.parse(String(updated_at)))
  const url = 'https://example.com/a?token=x'
  assert.deepEqual(rest, {
    ...{ url, events: [...CALLBACK_EVENTS], disabled_at: null, disabled_reason: null },
    created_by: ada.userId,
  })
  const target = { endpoint_id: id, url: 'https://example.com/a', events: [...CALLBACK_EVENTS] }
  assert.deepEqual(await lastAudited(), ['callback_endpoint.created', target])
  assert.deepEqual((await ask('GET', '/callbacks/endpoints')).body, { items: [made], next_cursor: null })

  const path = `/callbacks/endpoints/${id}`
  const changed = await ask('PATCH', path, {
    url: 'http://example.com/b',
    events: ['job.failed', 'job.failed'],
  })
  assert.deepEqual(
    [changed.status, changed.body.url, changed.body.events],
    [200, 'http://example.com/b', ['job.failed']],
  )
  const disabled = (await ask('PATCH', path, { disabled: true })).body
  assert.ok(disabled.disabled_at)
  assert.equal(disabled.disabled_reason, 'by hand')
  assert.deepEqual((await lastAudited())[0], 'callback_endpoint.changed')
  const again = (await ask('PATCH', path, { disabled: true })).body
  assert.equal(again.disabled_at, disabled.disabled_at, 'since when stays')
  const enabled = (await ask('PATCH', path, { disabled: false })).body
  assert.deepEqual(
    [enabled.disabled_at, enabled.disabled_reason, enabled.events],
    [null, null, ['job.failed']],
  )

  assert.equal((await ask('DELETE', path)).status, 204)
  assert.deepEqual((await lastAudited())[0], 'callback_endpoint.deleted')
  for (const method of ['PATCH', 'DELETE']) {
    assertProblem(
      await ask(method, path, method === 'PATCH' ? { disabled: true } : undefined),
      404,
      'not-found',
    )
  }
})

test('what does not fit is refused, and says why', async () => {
  const refuse = async (json: unknown, pointer: string) =>
    assertProblem(await ask('POST', '/callbacks/endpoints', json), 422, 'invalid-request', pointer)
  await refuse({}, '#/url')
  await refuse({ url: 'ftp://example.com/' }, '#/url')
  await refuse({ url: 'https://user:pw@example.com/' }, '#/url')
  await refuse({ url: 'https://example.com/', events: [] }, '#/events')
  await refuse({ url: 'https://example.com/', events: ['job.started'] }, '#/events/0')
  await refuse({ url: 'https://example.com/', secret: 'x' }, '#/secret')
  const { id } = await addEndpoint('https://example.com/refusals')
  assertProblem(await ask('PATCH', `/callbacks/endpoints/${id}`, {}), 422, 'invalid-request')
  const twice = await ask('POST', '/callbacks/endpoints', { url: 'https://example.com/refusals' })
  assertProblem(twice, 409, 'endpoint-exists')
  const other = await addEndpoint('https://example.com/others')
  const taken = await ask('PATCH', `/callbacks/endpoints/${other.id}`, {
    url: 'https://example.com/refusals',
  })
  assertProblem(taken, 409, 'endpoint-exists')
})

test('an organisation has only so many endpoints', async () => {
  const send = () => ask('POST', '/callbacks/endpoints', { url: `https://example.com/${uuidV7()}` }, bob)
  await database.sql(
    `insert into callback_endpoints (org_id, id, url, events)
    select $1, gen_random_uuid(), 'https://example.com/' || n, '{job.failed}' from generate_series(2, $2::int) n`,
    [bob.orgId, MAX_ENDPOINTS],
  )
  assert.equal((await send()).status, 201)
  assertProblem(await send(), 409, 'limit-reached')
  const page = (await ask('GET', '/callbacks/endpoints?limit=15', undefined, bob)).body
  const rest = await ask('GET', `/callbacks/endpoints?limit=15&cursor=${page.next_cursor}`, undefined, bob)
  assert.deepEqual([page.items.length, rest.body.items.length], [15, MAX_ENDPOINTS - 15])

  const gone = {
    id: uuidV7(),
    orgId: bob.orgId,
    url: 'https://example.com/full',
    reason: 'answered 410 Gone',
  }
  await database.run(disableCallbackUrl(gone))
  const change = (json: unknown) => ask('PATCH', `/callbacks/endpoints/${gone.id}`, json, bob)
  assertProblem(await change({ events: ['job.failed'], disabled: false }), 409, 'limit-reached')
  assert.equal((await change({ disabled: false })).status, 200, 'it is still none of them')
  await ask('DELETE', `/callbacks/endpoints/${page.items[0].id}`, undefined, bob)
  assert.deepEqual((await change({ events: ['job.failed'] })).body.events, ['job.failed'])
  assert.equal((await change({ events: ['job.completed'] })).status, 200, 'it has its place')
})

test('a URL that was disabled because its receiver is gone is shown, and can be made an endpoint', async () => {
  const url = 'https://example.com/gone'
  const disabled = { id: uuidV7(), orgId: ada.orgId, url, reason: 'answered 410 Gone' }
  for (let n = 0; n < 2; n++) await database.run(disableCallbackUrl(disabled))
  const { items } = (await ask('GET', '/callbacks/endpoints')).body
  const shown = items.find((one: { url: string }) => one.url === url)
  assert.deepEqual([shown.id, shown.events, shown.disabled_reason], [disabled.id, [], 'answered 410 Gone'])
  const made = await addEndpoint(url, ['job.cancelled'])
  assert.deepEqual([made.id, made.events, made.disabled_at], [disabled.id, ['job.cancelled'], null])
})

test('a secret is shown once, and told by its end', async () => {
  const stranger = await registerUser(edge)
  const rotate = (json: unknown) => ask('POST', '/callbacks/secret', json, stranger)
  const look = () => ask('GET', '/callbacks/secret', undefined, stranger)
  assertProblem(await look(), 404, 'not-found')
  const first = await rotate({})
  assert.equal(first.status, 201, first.text)
  assert.match(first.body.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.equal(first.body.previous_expires_at, null, 'there was none')
  const second = (await rotate({})).body
  assert.notEqual(second.secret, first.body.secret)
  const keptMs = Date.parse(second.previous_expires_at) - Date.parse(second.created_at)
  assert.equal(keptMs, 86_400_000)
  const { created_at, previous_expires_at } = second
  assert.deepEqual((await look()).body, {
    hint: second.secret.slice(-5, -1),
    ...{ created_at, previous_expires_at },
  })
  assert.equal((await rotate({ keep_previous_seconds: 0 })).body.previous_expires_at, null)
  assertProblem(
    await rotate({ keep_previous_seconds: -1 }),
    422,
    'invalid-request',
    '#/keep_previous_seconds',
  )
  const { items } = (await ask('GET', '/orgs/me/audit?action=callback_secret.rotated', undefined, stranger))
    .body
  assert.equal(items.length, 3)
  assert.ok(!JSON.stringify(items).includes('whsec_'))
})

test('an endpoint can be tried out', async () => {
  const { id } = await addEndpoint('https://example.com/test')
  const sent = await ask('POST', `/callbacks/endpoints/${id}/test`)
  assert.equal(sent.status, 202, sent.text)
  const job = (await ask('GET', `/jobs/${sent.body.job_id}`)).body
  assert.deepEqual([job.type, job.name, job.created_by], ['callback', 'test → example.com', ada.userId])
  assert.equal(job.payload.url, 'https://example.com/test')
  assert.deepEqual([job.payload.body.type, job.payload.body.data.endpoint_id], ['test', id])
  assert.deepEqual(job.retry, { max_attempts: 60, initial_delay_seconds: 5, backoff_multiplier: 3 })
  assertProblem(await ask('POST', `/callbacks/endpoints/${uuidV7()}/test`), 404, 'not-found')
})

test('who was told of a job can be seen', async () => {
  const jobId = await jobInState(database.run, ada, 'completed')
  assert.deepEqual((await ask('GET', `/jobs/${jobId}/callbacks`)).body, { items: [], next_cursor: null })
  const callbacks = ['https://one.example/x?key=y', 'https://two.example/'].map((url) =>
    newCallback({
      url,
      body: { type: 'job.completed', timestamp: '', data: {} },
      triggeredBy: { kind: 'callback', job_id: jobId, event: 'job.completed' },
      traceparent: null,
      fairnessKey: null,
    }),
  )
  const [first] = await seedJobs(database.run, ada, callbacks)
  assert.ok(first)
  await end(database.run, await claimJob(database.run, first, 'callback'), COMPLETED)
  const { body, text } = await ask('GET', `/jobs/${jobId}/callbacks`)
  const [one, two] = body.items
  assert.deepEqual(Object.keys(one), [
    'id',
    'event',
    'host',
    'status',
    'attempts',
    'error',
    'created_at',
    'finished_at',
  ])
  assert.deepEqual(
    [one.id, one.event, one.host, one.status, one.attempts],
    [first, 'job.completed', 'one.example', 'completed', 1],
  )
  assert.ok(Date.parse(one.finished_at))
  assert.equal(two.host, 'two.example')
  assert.ok(!text.includes('key=y'))
  const page = (await ask('GET', `/jobs/${jobId}/callbacks?limit=1`)).body
  const next = (await ask('GET', `/jobs/${jobId}/callbacks?limit=1&cursor=${page.next_cursor}`)).body
  assert.deepEqual([page.items[0].id, next.items[0].id, next.next_cursor], [one.id, two.id, null])
  assertProblem(await ask('GET', `/jobs/${jobId}/callbacks`, undefined, bob), 404, 'not-found')
})

test('nobody submits jobs of the type callback, even if a handler once had that name', async () => {
  await database.run(registerJobTypes([{ type: 'callback', payload_schema: {} }]))
  const job = {
    name: 'n',
    type: 'callback',
    payload: { url: 'https://example.com/', event: 'job.completed', body: {} },
  }
  assertProblem(await ask('POST', '/jobs', job), 422, 'unknown-job-type', '#/type')
  assertProblem(await ask('POST', '/jobs/batch', { jobs: [job] }), 422, 'unknown-job-type', '#/jobs/0/type')
  assertProblem(await ask('POST', '/predictions', job), 422, 'unknown-job-type', '#/type')
})
