import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claim } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
before(async () => {
  database = await createTestDatabase()
  const code = z
    .string()
    .regex(/^[A-Z]{2}$/)
    .describe('a country code')
  const schema = z.strictObject({ url: z.url(), times: z.int().min(1).default(1), code: code.optional() })
  const typed = { type: 'typed', payload_schema: z.toJSONSchema(schema, { io: 'input' }) }
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }, typed]))
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const submit = (json: unknown, account = ada) => edge.request('POST', '/jobs', { json, token: account.token })
const get = (path: string, account = ada) => edge.request('GET', path, { token: account.token })
const minimal = { name: 'report', type: 'test', payload: {} }

test('a submitted job is committed, and read back as it was answered', async () => {
  const full = {
    name: 'report ünïcödé 🚀',
    type: 'test',
    payload: {
      deep: { list: [1, 2.5, null, true, 'x', 9_007_199_254_740_991, '12345678901234567890'] },
      empty: {},
      ['__proto__']: 1,
    },
    priority: 'high',
    tags: ['nightly', "it's"],
    timeout_seconds: 60,
    retry: { max_attempts: 5, initial_delay_seconds: 0.5, backoff_multiplier: 1.5 },
    run_at: '2999-01-01T02:00:00+02:00',
    deadline: '2999-01-01T03:00:00+02:00',
    resources: { cpu_units: 0.3, memory_mb: 1024 },
    on_parent_failure: 'wait',
    fairness_key: 'Kundin Ä'.padEnd(200, '.'),
  }
  const answer = await submit(full)
  assert.equal(answer.status, 201, answer.text)
  assert.equal(answer.headers.get('location'), `/jobs/${answer.body.id}`)
  const { body } = answer
  assert.deepEqual([body.status, body.attempts, body.result, body.error], ['pending', 0, null, null])
  assert.deepEqual([body.org_id, body.created_by], [ada.orgId, ada.userId])
  assert.equal(body.run_at, '2999-01-01T00:00:00.000Z')
  assert.equal(body.deadline, '2999-01-01T01:00:00.000Z')
  const { run_at, deadline, ...asSent } = full
  for (const [key, value] of Object.entries(asSent)) assert.deepEqual(body[key], value, key)
  const read = await get(`/jobs/${body.id}`)
  assert.equal(read.status, 200)
  assert.deepEqual(read.body, body)
})

test('a time is understood in every form that RFC 3339 allows', async () => {
  for (const run_at of [
    '2999-01-01T00:00:00+23:59',
    '2999-01-01T00:00:00-16:00',
    `2999-01-01T00:00:00.${'1'.repeat(100)}Z`,
  ]) {
    const { status, body, text } = await submit({ ...minimal, run_at })
    assert.equal(status, 201, text)
    assert.equal(body.run_at, new Date(run_at).toISOString())
  }
})

test('what a job leaves out has sensible defaults', async () => {
  const { body } = await submit(minimal)
  assert.deepEqual(
    [body.status, body.priority, body.tags, body.timeout_seconds, body.run_at],
    ['ready', 'normal', [], null, null],
  )
  assert.deepEqual(body.retry, { max_attempts: 3, initial_delay_seconds: 5, backoff_multiplier: 2 })
  assert.deepEqual(body.resources, { cpu_units: 1, memory_mb: 64 })
  assert.deepEqual(
    [body.depends_on, body.on_parent_failure, body.deadline, body.deadline_at_risk, body.progress],
    [[], 'fail', null, false, null],
  )
  assert.equal(body.fairness_key, null)
})

test('a job is told its prediction and its place in the order', async () => {
  const { body: first } = await submit({ ...minimal, name: 'unheard of' })
  assert.deepEqual(first.prediction, {
    p50_ms: 1000,
    p90_ms: 10_014.2,
    source: 'default',
    model_version: null,
  })
  assert.equal(first.priority_score, 0.3868, 'below 0.5, because it may well take longer')
  await database.sql(
    `update series set runs = 9, mean_log = ln(200), deviation_log = 0.5 where name = 'unheard of'`,
  )
  const learned = await waitFor('what was learned to be used', async () => {
    const { body } = await submit({ ...minimal, name: 'unheard of', priority: 'high' })
    return body.prediction.source === 'series' && body
  })
  assert.equal(learned.prediction.p50_ms, 200)
  assert.equal(learned.priority_score, 0.9715)
  assert.deepEqual((await get(`/jobs/${learned.id}`)).body, learned)
})

test('a deadline that a job will probably miss is told at submission', async () => {
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  const risk = async (json: object) => {
    const { body } = await submit({ ...minimal, ...json })
    assert.equal((await get(`/jobs/${body.id}`)).body.deadline_at_risk, body.deadline_at_risk)
    return body.deadline_at_risk
  }
  assert.equal(await risk({ deadline: inSeconds(60) }), false)
  assert.equal(await risk({ deadline: inSeconds(5) }), true, 'its 90th percentile is 10 s')
  assert.equal(await risk({ deadline: inSeconds(60), run_at: inSeconds(55) }), true, 'it may start too late')
})

test('a trailing slash names the same resource', async () => {
  const { body } = await edge.request('POST', '/jobs/', { json: minimal, token: ada.token })
  assert.equal((await get(`/jobs/${body.id}/`)).status, 200)
  assert.equal((await get('/jobs/')).status, 200)
  assert.equal((await get(`/jobs/${body.id}/logs/`)).status, 200)
})

test('a type that no worker handles is refused, with the ones that are', async () => {
  const answer = await submit({ ...minimal, type: 'unheard-of' })
  assertProblem(answer, 422, 'unknown-job-type', '#/type')
  assert.match(answer.body.detail, /test, typed\)\.$/)
  const shell = await submit({ ...minimal, type: 'shell' })
  assertProblem(shell, 422, 'unknown-job-type', '#/type')
  assert.match(shell.body.detail, /Shell jobs are off until the operator sets SMARTQUEUE_SHELL_ALLOW/)
})

test('a type is accepted as soon as a worker has announced it', async () => {
  assertProblem(await submit({ ...minimal, type: 'newcomer' }), 422, 'unknown-job-type')
  await database.run(registerJobTypes([{ type: 'newcomer', payload_schema: {} }]))
  await waitFor(
    'the type to be known',
    async () => (await submit({ ...minimal, type: 'newcomer' })).status === 201,
  )
})

test("a payload is checked against its handler's schema at submission", async () => {
  assert.equal(
    (await submit({ ...minimal, type: 'typed', payload: { url: 'https://example.com/' } })).status,
    201,
  )
  const bad = await submit({ ...minimal, type: 'typed', payload: { url: 7, times: 0, surprise: 1 } })
  assertProblem(bad, 422, 'invalid-request', '#/payload/url')
  assertProblem(bad, 422, 'invalid-request', '#/payload/times')
  assertProblem(bad, 422, 'invalid-request', '#/payload/surprise')
  const malformed = await submit({
    ...minimal,
    type: 'typed',
    payload: { url: 'https://example.com/', code: 'xyz' },
  })
  assertProblem(malformed, 422, 'invalid-request', '#/payload/code')
  assert.equal(malformed.body.detail, '#/payload/code must be a country code')
})

test('a payload schema that the edge cannot read is in the way of nobody', async () => {
  const payload_schema = { type: 'object', unevaluatedProperties: false }
  await database.run(registerJobTypes([{ type: 'unreadable', payload_schema }]))
  const status = await waitFor('the type to be known', async () => {
    const answer = await submit({ ...minimal, type: 'unreadable' })
    return answer.status !== 422 && answer.status
  })
  assert.equal(status, 201)
  assert.equal((await submit(minimal)).status, 201)
})

test('jobs are listed newest first, page by page, each once', async () => {
  const carol = await registerUser(edge)
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.unshift((await submit({ ...minimal, name: `job ${n}` }, carol)).body.id)
  const seen: string[] = []
  let path = '/jobs?limit=2'
  for (let pages = 1; ; pages++) {
    const { body } = await get(path, carol)
    seen.push(...body.items.map((item: { id: string }) => item.id))
    if (body.next_cursor === null) {
      assert.equal(pages, 3)
      break
    }
    path = `/jobs?limit=2&cursor=${body.next_cursor}`
  }
  assert.deepEqual(seen, ids)
  const [item] = (await get('/jobs', carol)).body.items
  assert.equal('payload' in item || 'result' in item, false, 'a page stays small')
})

test('a job of another organisation does not exist', async () => {
  const { id } = (await submit(minimal)).body
  assertProblem(await get(`/jobs/${id}`, bob), 404, 'not-found')
  assertProblem(await get(`/jobs/${id}/logs`, bob), 404, 'not-found')
  const { items } = (await get('/jobs?limit=200', bob)).body
  assert.deepEqual(items, [])
})

test('an id names its job in upper case, too', async () => {
  const { body } = await submit(minimal)
  const answer = await get(`/jobs/${body.id.toUpperCase()}`)
  assert.deepEqual([answer.status, answer.body.id], [200, body.id])
})

test('an id that is no id names nothing', async () => {
  for (const id of ['1', 'null', "';drop table jobs;--", '00000000-0000-0000-0000-000000000000', '%00']) {
    assertProblem(await get(`/jobs/${encodeURIComponent(id)}`), 404, 'not-found')
    assertProblem(await get(`/jobs/${encodeURIComponent(id)}/logs`), 404, 'not-found')
  }
})

test('bad paging is refused by name', async () => {
  assertProblem(await get('/jobs?limit=0'), 422, 'invalid-request', '#/limit')
  assertProblem(await get('/jobs?limit=many'), 422, 'invalid-request', '#/limit')
  assertProblem(await get('/jobs?cursor=%00'), 422, 'invalid-request', '#/cursor')
  assertProblem(await get(`/jobs?cursor=${btoa("' or 1=1")}`), 422, 'invalid-request', '#/cursor')
  assertProblem(await get('/jobs?colour=red'), 422, 'invalid-request', '#/colour')
})

test('log lines are read oldest first, page by page', async () => {
  const { id } = (await submit({ ...minimal, name: 'logged' })).body
  assert.deepEqual((await get(`/jobs/${id}/logs`)).body, { items: [], next_cursor: null })
  await claim(database.run, 'w', 1000)
  await database.sql(
    `insert into job_logs (org_id, job_id, attempt, at, level, message)
     select $1, $2, 1, now(), 'info', 'line ' || n from generate_series(1, 5) n`,
    [ada.orgId, id],
  )
  const first = (await get(`/jobs/${id}/logs?limit=3`)).body
  assert.deepEqual(
    first.items.map((line: { message: string }) => line.message),
    ['line 1', 'line 2', 'line 3'],
  )
  assert.deepEqual(Object.keys(first.items[0]).sort(), ['at', 'attempt', 'level', 'message'])
  const second = (await get(`/jobs/${id}/logs?limit=3&cursor=${first.next_cursor}`)).body
  assert.deepEqual(
    second.items.map((line: { message: string }) => line.message),
    ['line 4', 'line 5'],
  )
  assert.equal(second.next_cursor, null)
})

test('a job keeps where its trace goes on, also where nothing is traced', async () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const send = (trace: string, key: string) =>
    edge.request('POST', '/jobs', {
      json: minimal,
      token: ada.token,
      headers: { traceparent: trace, 'idempotency-key': key },
    })
  const answer = await send(traceparent, 'traced')
  assert.deepEqual([answer.status, answer.body.traceparent], [201, traceparent])
  assert.equal((await get(`/jobs/${answer.body.id}`)).body.traceparent, traceparent)
  const other = traceparent.replace('4bf9', '4bf8')
  const again = await send(other, 'traced')
  assert.deepEqual([again.status, again.body.traceparent], [200, traceparent], 'that of the first')
  for (const none of [
    '',
    'nonsense',
    `${traceparent}-x`,
    traceparent.replace('00f067aa0ba902b7', '0'.repeat(16)),
  ]) {
    const { status, body } = await send(none, `none ${none}`)
    assert.deepEqual([status, body.traceparent], [201, null], none)
  }
})
