import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, neon, neonConfig } from '@neondatabase/serverless'
import pg from 'pg'
import { WebSocket } from 'ws'
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../worker-runtime/local/embedded-postgres.ts'
import { type NeonGateway, startNeonGateway } from '../../worker-runtime/local/neon-gateway.ts'

let folder: string
let postgres: EmbeddedPostgres
let gateway: NeonGateway

const startPostgres = (options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> =>
  startEmbeddedPostgres({ dataDir: join(folder, 'data'), password: 'secret', durable: false, ...options })

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'smartqueue-test-'))
  await chmod(folder, 0o755) // as root the server runs under another account, which must get in
  postgres = await startPostgres()
  gateway = await startNeonGateway({ target: postgres.superuserUrl })
  neonConfig.fetchEndpoint = () => `http://${gateway.address}/sql`
  neonConfig.wsProxy = () => `${gateway.address}/v2`
  neonConfig.webSocketConstructor = WebSocket
  neonConfig.useSecureWebSocket = false
  neonConfig.pipelineConnect = false
})

after(async () => {
  await Promise.all([gateway.stop(), gateway.stop()])
  await postgres.stop()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

const sql = () => neon(gateway.connectionString)

test('a query over HTTP returns its rows', async () => {
  assert.deepEqual(await sql()`select ${'a'}::text as letter, ${7}::int as number`, [
    { letter: 'a', number: 7 },
  ])
})

test('rows come as arrays and with the full result when asked', async () => {
  const full = neon(gateway.connectionString, { arrayMode: true, fullResults: true })
  const result = await full`select n, n * 2 as n from generate_series(1, 2) n`
  assert.deepEqual(result.rows, [
    [1, 2],
    [2, 4],
  ])
  assert.deepEqual([result.command, result.rowCount, result.rowAsArray], ['SELECT', 2, true])
  assert.deepEqual(
    result.fields.map(({ name, dataTypeID }) => [name, dataTypeID]),
    [
      ['n', 23],
      ['n', 23],
    ],
  )
})

const TYPED_VALUES = `select
  9007199254740993::int8 as big, 12.3400::numeric as exact, 1.5::float8 as float, true as yes,
  '2024-02-29 12:34:56.789012+05:30'::timestamptz as moment, '2024-02-29'::date as day,
  '{"a": [1, null, "é"]}'::jsonb as document, array['a,b', null, 'c"d'] as texts, array[[1, 2], [3, 4]] as grid,
  array['2024-01-01T00:00:00Z'::timestamptz] as moments, '\\x00ff10'::bytea as bytes,
  '0190a6b2-7c00-7000-8000-000000000001'::uuid as id, null::int as nothing`

test('values have the types that pg gives them', async () => {
  const [overHttp] = await sql().query(TYPED_VALUES)
  const [overTcp] = await direct(TYPED_VALUES)
  assert.deepEqual(overHttp, overTcp)
  assert.equal(overHttp?.big, '9007199254740993')
  assert.deepEqual(overHttp?.bytes, Buffer.from([0, 255, 16]))
})

test('parameters arrive as pg would send them', async () => {
  const values = [
    new Date(1e12),
    [1, 2],
    ['a"b', null],
    { a: 1 },
    Buffer.from([0, 255]),
    true,
    null,
    '9007199254740993',
  ]
  const text = `select $1::timestamptz as moment, $2::int[] as numbers, $3::text[] as texts, $4::jsonb as document,
    $5::bytea as bytes, $6::bool as yes, $7::text as nothing, $8::int8 as big`
  assert.deepEqual(await sql().query(text, values), await direct(text, values))
})

test('a statement is prepared once, and still works after a migration has changed its columns', async () => {
  await direct('create table growing (id int)')
  await direct('insert into growing values (1)')
  const look = () => sql().query('select * from growing')
  assert.deepEqual([await look(), await look()], [[{ id: 1 }], [{ id: 1 }]])
  const [kept] = await sql().query(
    `select count(*)::int as plans from pg_prepared_statements where statement = 'select * from growing'`,
  )
  assert.deepEqual(kept, { plans: 1 })
  await direct(`alter table growing add column name text default 'new'`)
  assert.deepEqual([await look(), await look()], [[{ id: 1, name: 'new' }], [{ id: 1, name: 'new' }]])
})

test('a transaction commits all of its statements', async () => {
  await direct('create table committed (id int primary key)')
  const db = sql()
  const results = await db.transaction([
    db`insert into committed (id) values (${1}) returning id`,
    db`insert into committed (id) values (${2})`,
    db`select count(*)::int as n from committed`,
  ])
  assert.deepEqual(results, [[{ id: 1 }], [], [{ n: 2 }]])
  assert.deepEqual(await direct('select id from committed order by id'), [{ id: 1 }, { id: 2 }])
})

test('a transaction takes its isolation level, access mode and deferrability', async () => {
  const db = sql()
  const modes = db`select current_setting('transaction_isolation') as level,
    current_setting('transaction_read_only') as read_only, current_setting('transaction_deferrable') as deferrable`
  const strict = { isolationLevel: 'Serializable', readOnly: true, deferrable: true } as const
  assert.deepEqual(await db.transaction([modes], strict), [
    [{ level: 'serializable', read_only: 'on', deferrable: 'on' }],
  ])
  assert.deepEqual(await db.transaction([modes]), [
    [{ level: 'read committed', read_only: 'off', deferrable: 'off' }],
  ])
})

test('a transaction with a failing statement leaves nothing, and its error names the constraint', async () => {
  await direct('create table guarded (id int constraint guarded_once primary key)')
  const db = sql()
  const insert = () => db`insert into guarded (id) values (${1})`
  await assert.rejects(db.transaction([insert(), insert()]), {
    name: 'NeonDbError',
    code: '23505',
    constraint: 'guarded_once',
    table: 'guarded',
    schema: 'public',
    severity: 'ERROR',
    detail: 'Key (id)=(1) already exists.',
  })
  assert.deepEqual(await direct('select id from guarded'), [])
  assert.deepEqual(await db`select 1 as one`, [{ one: 1 }])
})

test('a failed transaction is rolled back before its caller hears of it', async () => {
  const single = await startNeonGateway({ target: postgres.superuserUrl, maxConnections: 1 })
  try {
    const backend = async () =>
      (await post({ query: 'select pg_backend_pid()' }, { gateway: single })).body.rows
    const before = await backend()
    const failing = await post(
      { queries: [{ query: 'select 1' }, { query: 'select 1 / 0' }] },
      { gateway: single },
    )
    assert.equal(failing.body.code, '22012')
    assert.deepEqual(await backend(), before, 'and its connection stays in use')
  } finally {
    await single.stop()
  }
})

test('a constraint that fails at commit fails the transaction', async () => {
  await direct('create table deferred (id int unique deferrable initially deferred)')
  const db = sql()
  const insert = () => db`insert into deferred (id) values (${1})`
  await assert.rejects(db.transaction([insert(), insert()]), { code: '23505' })
  assert.deepEqual(await direct('select id from deferred'), [])
})

test('a transaction that a lone statement opens is not handed to the next caller', async () => {
  const single = await startNeonGateway({ target: postgres.superuserUrl, maxConnections: 1 })
  try {
    const ask = (query: string) => post({ query }, { gateway: single })
    await ask('begin')
    await ask('create table leaked (id int)')
    await ask('rollback')
    assert.equal((await ask('select 1 from leaked')).status, 200)
  } finally {
    await single.stop()
  }
})

test('without the driver’s headers rows are JSON objects', async () => {
  const query = `select 1 as n, true as yes, '{"a":1}'::jsonb as document, 2::int8 as big`
  const { status, body } = await post({ query }, { headers: {} })
  assert.equal(status, 200)
  assert.deepEqual(body.rows, [{ n: 1, yes: true, document: { a: 1 }, big: '2' }])
})

test('a wrong connection string is refused', async () => {
  const wrong = [
    gateway.connectionString.replace(/:[^:@]+@/, ':guess@'),
    gateway.connectionString.replace(/[^/]+$/, 'postgres'),
    postgres.superuserUrl,
    '',
  ]
  for (const connectionString of wrong) {
    const { status, body } = await post({ query: 'select 1' }, { connectionString })
    assert.deepEqual([status, body.code], [400, '28P01'])
  }
  const missing = await fetch(`http://${gateway.address}/sql`, {
    method: 'POST',
    body: '{"query":"select 1"}',
  })
  assert.equal(missing.status, 400)
})

test('what is not a query is refused', async () => {
  for (const body of ['{"query":', '{}', '[]', 'null', '{"query":1}', '{"queries":[{}]}']) {
    const reply = await post(body)
    assert.deepEqual([reply.status, reply.body.code], [400, '22032'], body)
  }
  const level = { 'neon-batch-isolation-level': 'read committed; drop table x' }
  assert.equal((await post({ queries: [] }, { headers: level })).body.code, '22023')
  const twice = await post({ query: 'select 1; select 2' })
  assert.deepEqual([twice.status, twice.body.code], [400, '42601'])
})

test('an unknown path is 404', async () => {
  assert.equal((await fetch(`http://${gateway.address}/other`, { method: 'POST' })).status, 404)
  assert.equal((await fetch(`http://${gateway.address}/sql`)).status, 404)
})

test('a body of 10 MiB passes and a larger one is 413', async () => {
  const limit = 10 * 1024 * 1024
  const frame = JSON.stringify({ query: 'select length($1::text) as n', params: [''] })
  const bodyOf = (bytes: number) => frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`)
  const fits = await post(bodyOf(limit))
  assert.deepEqual([fits.status, fits.body.rows], [200, [[String(limit - frame.length)]]])
  assert.equal((await post(bodyOf(limit + 1))).status, 413)
  assert.equal((await post(bodyOf(3 * limit))).status, 413)
  assert.equal((await post({ query: 'select 1' })).status, 200)
})

test('a caller that hangs up in the middle of its request does no harm', async () => {
  const abort = new AbortController()
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"query":')),
    pull: () => abort.abort(),
  })
  const request = { method: 'POST', body, duplex: 'half', signal: abort.signal } as RequestInit
  await assert.rejects(fetch(`http://${gateway.address}/sql`, request), { name: 'AbortError' })
  assert.deepEqual(await sql()`select 1 as one`, [{ one: 1 }])
})

test('an unreachable Postgres is reported as 08001, without credentials', async () => {
  const wrongPassword = postgres.superuserUrl.replace('secret', 'hunter2')
  for (const target of ['postgres://me:hunter2@127.0.0.1:1/db', wrongPassword]) {
    const cutOff = await startNeonGateway({ target })
    const { status, body } = await post({ query: 'select 1' }, { gateway: cutOff })
    await cutOff.stop()
    assert.deepEqual([status, body.code], [400, '08001'])
    assert.doesNotMatch(JSON.stringify(body), /hunter2|smartqueue|"me"/)
  }
})

test('a request whose caller has given up is not run once a connection is free', async (t) => {
  const single = await startNeonGateway({ target: postgres.superuserUrl, maxConnections: 1 })
  t.after(single.stop)
  await direct('create table abandoned (n int)')
  const sleeping = post({ query: 'select pg_sleep(63)' }, { gateway: single })
  await until(() => isRunning('select pg_sleep(63)'))
  const abort = new AbortController()
  const headers = { 'neon-connection-string': single.connectionString }
  const body = JSON.stringify({ query: 'insert into abandoned values (1)' })
  const url = `http://${single.address}/sql`
  const abandoned = fetch(url, { method: 'POST', body, headers, signal: abort.signal })
  const waiting = post({ query: 'insert into abandoned values (2)' }, { gateway: single })
  // Once later requests have been answered, the gateway has read the earlier ones.
  for (let later = 0; later < 3; later++) await fetch(`http://${single.address}/nowhere`, { method: 'POST' })
  abort.abort()
  await assert.rejects(abandoned, { name: 'AbortError' })
  await direct(`select pg_cancel_backend(pid) from pg_stat_activity where query = 'select pg_sleep(63)'`)
  assert.equal((await sleeping).body.code, '57014')
  assert.equal((await waiting).status, 200)
  assert.deepEqual(await direct('select n from abandoned'), [{ n: 2 }])
})

test('a client over WebSocket runs queries and hears notifications', { timeout: 15_000 }, async () => {
  const client = new Client(postgres.superuserUrl)
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query('select $1::int + 1 as n, repeat($2, 3000000) as long', [41, 'x'])
    assert.deepEqual([rows[0].n, rows[0].long.length], [42, 3_000_000])
    const heard = new Promise((resolve) => client.on('notification', ({ payload }) => resolve(payload)))
    await client.query('listen gateway_test')
    await sql()`select pg_notify('gateway_test', 'hello')`
    assert.equal(await heard, 'hello')
  } finally {
    await client.end()
  }
})

test('a web page gets no tunnel to the database', async () => {
  const socket = new WebSocket(`ws://${gateway.address}/v2`, { origin: 'https://page.example' })
  const [error] = await once(socket, 'error')
  assert.match(error.message, /401/)
})

test('WebSocket clients that vanish leave no backend behind', { timeout: 15_000 }, async () => {
  const connectionString = postgres.superuserUrl
  const clients = Array.from({ length: 5 }, () => new Client({ connectionString, application_name: 'lost' }))
  for (const client of clients) client.on('error', () => {})
  await Promise.all(clients.map((client) => client.connect()))
  await Promise.all(clients.map((client) => client.query('begin')))
  const lost = "select pid from pg_stat_activity where application_name = 'lost'"
  assert.equal((await direct(lost)).length, 5)
  // The driver keeps its WebSocket on the stream that it calls neonConfig.
  for (const { neonConfig: stream } of clients) (stream as unknown as { ws: WebSocket }).ws.terminate()
  await until(async () => (await direct(lost)).length === 0)
})

test('queries work again after Postgres was restarted', async () => {
  const db = sql()
  await Promise.all(Array.from({ length: 5 }, () => db`select pg_sleep(0.05)`))
  const cut = assert.rejects(db`select pg_sleep(60)`, { code: '57P01' })
  await until(() => isRunning('select pg_sleep(60)'))
  const port = Number(new URL(postgres.superuserUrl).port)
  await postgres.stop()
  await cut
  await assert.rejects(db`select 1`, { code: '08001' })
  postgres = await startPostgres({ port })
  const answers = await Promise.all(Array.from({ length: 5 }, () => db`select 1 as one`))
  assert.deepEqual(answers.flat(), Array(5).fill({ one: 1 }))
})

test('a connection that breaks in the middle of a statement is 08006, and is replaced', async () => {
  const db = sql()
  const before = await checkpointer()
  const broken = assert.rejects(db`select pg_sleep(62)`, { code: '08006' })
  await until(() => isRunning('select pg_sleep(62)'))
  const [backend] = await direct("select pid from pg_stat_activity where query = 'select pg_sleep(62)'")
  process.kill(Number(backend?.pid), 'SIGKILL')
  await broken
  // Postgres restarts all its processes after such an end, and refuses connections meanwhile.
  await until(async () => (await checkpointer().catch(() => before)) !== before)
  await until(async () => (await post({ query: 'select 1' })).status === 200)
})

test('stop cuts off what still runs', { timeout: 15_000 }, async () => {
  const short = await startNeonGateway({ target: postgres.superuserUrl })
  const sleeping = post({ query: 'select pg_sleep(61)' }, { gateway: short })
  const cut = assert.rejects(sleeping)
  await until(() => isRunning('select pg_sleep(61)'))
  await Promise.all([short.stop(), short.stop()])
  await cut
})

type PostOptions = { gateway?: NeonGateway; connectionString?: string; headers?: Record<string, string> }

const post = async (
  body: unknown,
  options: PostOptions = {},
): Promise<{ status: number; body: Record<string, unknown> }> => {
  const to = options.gateway ?? gateway
  const modes = options.headers ?? { 'neon-raw-text-output': 'true', 'neon-array-mode': 'true' }
  const response = await fetch(`http://${to.address}/sql`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'neon-connection-string': options.connectionString ?? to.connectionString, ...modes },
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const direct = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client(postgres.superuserUrl)
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

const checkpointer = async (): Promise<unknown> =>
  (await direct("select pid from pg_stat_activity where backend_type = 'checkpointer'"))[0]?.pid

const isRunning = async (query: string): Promise<boolean> => {
  const active = "select 1 from pg_stat_activity where state = 'active' and query = $1::text"
  return (await direct(active, [query])).length === 1
}

const until = async (isTrue: () => Promise<boolean>): Promise<void> => {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await delay(5)) if (await isTrue()) return
  throw new Error('the condition did not come true within 10 s')
}
