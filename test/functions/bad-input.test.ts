import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, type RequestOptions, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'
import { createRawClient } from '../support/raw-request.ts'

let database: TestDatabase
let edge: Edge
let account: TestAccount
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
  account = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const WRITTEN = `
  select
    (select count(*) from jobs) + (select count(*) from waiting_jobs) + (select count(*) from ready_jobs)
    + (select count(*) from job_events) as jobs,
    (select count(*) from users) + (select count(*) from orgs) + (select count(*) from memberships) as accounts`
const nothingWritten = { jobs: '0', accounts: '3' }
afterEach(async () => assert.deepEqual(await database.sql(WRITTEN), [nothingWritten], 'nothing was written'))

const job = { name: 'report', type: 'test', payload: {} }
const send = (path: string, options: RequestOptions) =>
  edge.request('POST', path, path.startsWith('/jobs') ? { token: account.token, ...options } : options)
const PATHS = ['/jobs', '/auth/register', '/auth/login', '/auth/refresh']

test('malformed JSON is refused with 400', async () => {
  for (const path of PATHS) {
    for (const body of [
      '',
      '{',
      '{"name":}',
      "{'name':1}",
      'undefined',
      '{"a":1}{',
      '\0',
      '{"a":"\0"}',
      '[1,]',
    ]) {
      assertProblem(await send(path, { body }), 400, 'malformed-body')
    }
  }
})

test('bytes that are no UTF-8 are refused with 400', async () => {
  for (const path of PATHS) {
    const body = new Uint8Array([...new TextEncoder().encode('{"name":"'), 0xff, 0xfe, 0x22, 0x7d])
    assertProblem(await send(path, { body }), 400, 'malformed-body')
  }
})

test('a body that is not declared as JSON is refused with 415', async () => {
  for (const path of PATHS) {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json;',
      'application/json ; charset=utf-8',
      'application/vnd.api.v2+json',
    ]) {
      const options = { body: JSON.stringify(job), headers: { 'content-type': type } }
      assertProblem(await send(path, options), 415, 'unsupported-media-type')
    }
  }
})

test('JSON of the wrong kind is refused with 422', async () => {
  for (const path of PATHS) {
    for (const body of ['null', '1', '"text"', '[]', 'true']) {
      assertProblem(await send(path, { body }), 422, 'invalid-request')
    }
  }
})

test('wrong types are refused with 422 and the place of each', async () => {
  const wrong: [object, string][] = [
    [{ ...job, name: 1 }, '#/name'],
    [{ ...job, name: '' }, '#/name'],
    [{ ...job, name: 'x'.repeat(201) }, '#/name'],
    [{ ...job, name: null }, '#/name'],
    [{ ...job, type: {} }, '#/type'],
    [{ ...job, payload: [] }, '#/payload'],
    [{ ...job, payload: 'text' }, '#/payload'],
    [{ ...job, payload: null }, '#/payload'],
    [{ name: 'n', type: 'test' }, '#/payload'],
    [{ ...job, priority: 'urgent' }, '#/priority'],
    [{ ...job, tags: 'one' }, '#/tags'],
    [{ ...job, tags: ['ok', 7] }, '#/tags/1'],
    [{ ...job, tags: Array.from({ length: 21 }, String) }, '#/tags'],
    [{ ...job, timeout_seconds: 0 }, '#/timeout_seconds'],
    [{ ...job, timeout_seconds: 1.5 }, '#/timeout_seconds'],
    [{ ...job, timeout_seconds: '60' }, '#/timeout_seconds'],
    [{ ...job, retry: { max_attempts: 0 } }, '#/retry/max_attempts'],
    [{ ...job, retry: { backoff_multiplier: 0.5 } }, '#/retry/backoff_multiplier'],
    [{ ...job, retry: { initial_delay_seconds: -1 } }, '#/retry/initial_delay_seconds'],
    [{ ...job, run_at: 'tomorrow' }, '#/run_at'],
    [{ ...job, run_at: '2026-13-01T00:00:00Z' }, '#/run_at'],
    [{ ...job, run_at: '2026-01-01T00:00:00' }, '#/run_at'],
    [{ ...job, run_at: '0000-01-01T00:00:00Z' }, '#/run_at'],
    [{ ...job, run_at: '9999-12-31T23:59:59-14:00' }, '#/run_at'],
    [{ ...job, run_at: '2026-01-01T00:00:00+24:00' }, '#/run_at'],
    [{ ...job, deadline: 'soon' }, '#/deadline'],
    [{ ...job, resources: { cpu_units: -1 } }, '#/resources/cpu_units'],
    [{ ...job, resources: { cpu_units: 1025 } }, '#/resources/cpu_units'],
    [{ ...job, resources: { cpu_units: 1e-50 } }, '#/resources/cpu_units'],
    [{ ...job, resources: { memory_mb: 0.5 } }, '#/resources/memory_mb'],
    [{ ...job, resources: { memory_mb: 1_048_577 } }, '#/resources/memory_mb'],
    [{ ...job, depends_on: 'all' }, '#/depends_on'],
    [{ ...job, depends_on: ['first'] }, '#/depends_on/0'],
    [{ ...job, depends_on: Array.from({ length: 101 }, () => crypto.randomUUID()) }, '#/depends_on'],
    [{ ...job, on_parent_failure: 'ignore' }, '#/on_parent_failure'],
    [{ ...job, fairness_key: '' }, '#/fairness_key'],
    [{ ...job, fairness_key: 'x'.repeat(201) }, '#/fairness_key'],
    [{ ...job, fairness_key: 42 }, '#/fairness_key'],
    [{ ...job, fairness_key: null }, '#/fairness_key'],
  ]
  for (const [json, pointer] of wrong)
    assertProblem(await send('/jobs', { json }), 422, 'invalid-request', pointer)
  const both = await send('/jobs', { json: { ...job, name: 1, priority: 2 } })
  assertProblem(both, 422, 'invalid-request', '#/name')
  assertProblem(both, 422, 'invalid-request', '#/priority')
})

test('wrong accounts are refused with 422', async () => {
  const wrong: [object, string][] = [
    [{ username: 'ab', password: 'correct horse' }, '#/username'],
    [{ username: '.hidden', password: 'correct horse' }, '#/username'],
    [{ username: 'with space', password: 'correct horse' }, '#/username'],
    [{ username: 'x'.repeat(65), password: 'correct horse' }, '#/username'],
    [{ username: 'grace', password: 'short' }, '#/password'],
    [{ username: 'grace', password: 'x'.repeat(257) }, '#/password'],
    [{ username: 'grace' }, '#/password'],
  ]
  for (const [json, pointer] of wrong) {
    assertProblem(await send('/auth/register', { json }), 422, 'invalid-request', pointer)
  }
})

test('unknown fields are refused with 422 and their name', async () => {
  const cases: [string, object, string][] = [
    ['/jobs', { ...job, colour: 'red' }, '#/colour'],
    ['/jobs', { ...job, org_id: crypto.randomUUID() }, '#/org_id'],
    ['/jobs', { ...job, ref: 'me' }, '#/ref'],
    ['/jobs', { ...job, resources: { gpu: 1 } }, '#/resources/gpu'],
    ['/jobs/batch', { jobs: [job], atomic: true }, '#/atomic'],
    ['/jobs/batch', { jobs: [{ ...job, id: crypto.randomUUID() }] }, '#/jobs/0/id'],
    ['/jobs', { ...job, retry: { attempts: 3 } }, '#/retry/attempts'],
    ['/auth/register', { username: 'grace', password: 'correct horse', role: 'admin' }, '#/role'],
    ['/auth/login', { username: 'grace', password: 'correct horse', admin: true }, '#/admin'],
    ['/auth/refresh', { refresh_token: 'sqr_', a: 1 }, '#/a'],
  ]
  for (const [path, json, pointer] of cases)
    assertProblem(await send(path, { json }), 422, 'invalid-request', pointer)
})

test('a body over 256 KiB is refused with 413, declared or streamed', async () => {
  const body = JSON.stringify({ ...job, payload: { text: 'x'.repeat(256 * 1024) } })
  for (const path of PATHS) assertProblem(await send(path, { body }), 413, 'body-too-large')
  const init = {
    method: 'POST',
    headers: { authorization: `Bearer ${account.token}`, 'content-type': 'application/json' },
    body: new Blob([body]).stream(),
    duplex: 'half',
  }
  const streamed = await fetch(new URL('/jobs', edge.url), init)
  assert.equal(streamed.status, 413)
  assert.equal(streamed.headers.get('content-type'), 'application/problem+json')
})

test('nesting beyond 32 levels is refused with 400', async () => {
  const nest = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
  assertProblem(await send('/jobs', { json: { ...job, payload: nest(32) } }), 400, 'malformed-body')
  const body = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  for (const path of PATHS) assertProblem(await send(path, { body }), 400, 'malformed-body')
})

test('text that Postgres cannot hold is refused with 422, wherever it stands', async () => {
  for (const text of ['a\\u0000b', '\\ud800', 'x\\udfff']) {
    const bodies: [string, string][] = [
      [`{"name":"${text}","type":"test","payload":{}}`, '#/name'],
      [`{"name":"n","type":"${text}","payload":{}}`, '#/type'],
      [`{"name":"n","type":"test","payload":{"deep":[{"key":"${text}"}]}}`, '#/payload/deep/0/key'],
      [`{"name":"n","type":"test","payload":{"${text}":1}}`, '#/payload'],
      [`{"name":"n","type":"test","payload":{},"tags":["${text}"]}`, '#/tags/0'],
      [`{"name":"n","type":"test","payload":{},"run_at":"${text}"}`, '#/run_at'],
      [`{"name":"n","type":"test","payload":{},"fairness_key":"${text}"}`, '#/fairness_key'],
    ]
    for (const [body, pointer] of bodies)
      assertProblem(await send('/jobs', { body }), 422, 'invalid-request', pointer)
    const credentials = `{"username":"${text}","password":"correct horse"}`
    assertProblem(await send('/auth/register', { body: credentials }), 422, 'invalid-request', '#/username')
    assertProblem(await send('/auth/login', { body: credentials }), 422, 'invalid-request', '#/username')
    assertProblem(
      await send('/auth/refresh', { body: `{"refresh_token":"${text}"}` }),
      422,
      'invalid-request',
    )
  }
})

test('a number that a double would change is refused with 422', async () => {
  for (const number of ['1e999', '-1e999', '12345678901234567890', '9007199254740993', '9'.repeat(100_000)]) {
    const body = `{"name":"n","type":"test","payload":{"n":${number}}}`
    assertProblem(await send('/jobs', { body }), 422, 'invalid-request', '#/payload/n')
  }
})

test('a path or method that does not exist is a 404 problem', async () => {
  assertProblem(await edge.request('GET', '/nowhere'), 404, 'not-found')
  assertProblem(await edge.request('DELETE', '/jobs', { token: account.token }), 404, 'not-found')
})

test('a cursor that does not belong to the list is rejected with 422', async () => {
  const id = crypto.randomUUID()
  const encode = (text: string) => Buffer.from(text).toString('base64url')
  const lists: [string, string[]][] = [
    [`/jobs/${id}/attempts`, ['NaN', '-1', '1.5', '9223372036854775808', '1n', '']],
    [`/jobs/${id}/logs`, ['NaN', '9223372036854775808']],
    ['/orgs/me/audit', ['NaN', '9223372036854775808']],
    [`/schedules/${id}/ticks`, ['0000-01-01T00:00:00Z', '9999-13-01T00:00:00Z', 'yesterday']],
    ['/jobs', ['NaN', `${id}0`]],
    ['/dlq', ['1', '1.x']],
  ]
  for (const [path, cursors] of lists) {
    for (const cursor of cursors) {
      const answer = await edge.request('GET', `${path}?cursor=${encode(cursor)}`, { token: account.token })
      assertProblem(answer, 422, 'invalid-request', '#/cursor')
    }
  }
})

test('NUL in a query parameter is rejected with 422 and the name of the parameter', async () => {
  for (const path of ['/analytics/prediction-accuracy?type', '/jobs?name', '/jobs?tag', '/dlq?type']) {
    const answer = await edge.request('GET', `${path}=a%00b`, { token: account.token })
    assertProblem(answer, 422, 'invalid-request', `#/${path.split('?')[1]}`)
  }
})

test('fields named like properties of Object.prototype are rejected as unknown', async () => {
  for (const key of ['toString', 'constructor', 'hasOwnProperty', 'valueOf']) {
    const json = { name: 'n', cron: '0 0 * * *', job: { type: 'test', payload: {}, [key]: 1 } }
    const answer = await edge.request('POST', '/schedules', { token: account.token, json })
    assertProblem(answer, 422, 'invalid-request', `#/job/${key}`)
  }
})

test('a chunked body is accepted wherever a body is', async () => {
  const client = createRawClient(edge.url, 1)
  const id = crypto.randomUUID()
  for (const path of [`/webhooks/sources/${id}/rotate`, `/webhooks/deliveries/${id}/replay`]) {
    for (const chunks of [['{', '}'], ['{'], []]) {
      const { status, text } = await client.send({
        method: 'POST',
        path,
        headers: [
          ['authorization', `Bearer ${account.token}`],
          ['content-type', 'application/json'],
        ],
        body: chunks.map((chunk) => Buffer.from(chunk)),
      })
      const malformed = chunks.length === 1
      assert.equal(status, malformed ? 400 : 404, text)
    }
  }
  client.close()
})
