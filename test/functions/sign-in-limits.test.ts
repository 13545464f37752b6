import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { fromElsewhere, registerUser } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const from = (ip: string) => ({ 'cf-connecting-ip': ip })

const login = (
  json: { username: string; password: string },
  headers: Record<string, string>,
): Promise<Answer> => edge.request('POST', '/auth/login', { json, headers })

const register = (username: string, ip: string): Promise<Answer> =>
  edge.request('POST', '/auth/register', { json: { username, password: 'correct horse' }, headers: from(ip) })

const statuses = (answers: Answer[]): Record<number, number> =>
  Object.fromEntries(
    [...Map.groupBy(answers, ({ status }) => status)].map(([status, of]) => [status, of.length]),
  )

test('of 200 logins at the same time from one address exactly 10 pass', async () => {
  const { username, password } = await registerUser(edge)
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => login({ username, password }, from('192.0.2.1'))),
  )
  assert.deepEqual(statuses(answers), { 200: 10, 429: 190 })
  const refused = answers.find(({ status }) => status === 429)
  assert.ok(refused)
  assertProblem(refused, 429, 'rate-limited')
  const wait = Number(refused.headers.get('retry-after'))
  assert.ok(wait >= 1 && wait <= 60, String(wait))
  assert.equal(refused.headers.get('ratelimit-policy'), '"login";q=10;w=60')
  assert.match(refused.headers.get('ratelimit') ?? '', /^"login";r=0;t=\d+$/)
  assert.equal((await login({ username, password }, from('192.0.2.2'))).status, 200, 'others sign in')
})

test('each answer says how much is left', async () => {
  const { username, password } = await registerUser(edge)
  const left: string[] = []
  for (let n = 0; n < 3; n++) {
    const { headers } = await login({ username, password }, from('192.0.2.9'))
    left.push(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1] ?? '')
  }
  assert.deepEqual(left, ['9', '8', '7'])
})

test('what has left the window counts no more', async () => {
  const { username, password } = await registerUser(edge)
  const headers = from('192.0.2.3')
  for (let n = 0; n < 10; n++) await login({ username, password }, headers)
  assert.equal((await login({ username, password }, headers)).status, 429)
  await database.sql(
    `update rate_limits set hits = array(select h - interval '61 seconds' from unnest(hits[:4]) h) || hits[5:]
     where subject = '192.0.2.3'`,
  )
  const answers = []
  for (let n = 0; n < 5; n++) answers.push(await login({ username, password }, headers))
  assert.deepEqual(statuses(answers), { 200: 4, 429: 1 })
})

test('a sixth registration from one address within a minute is refused, and makes no account', async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => register(`newcomer-${n}`, '192.0.2.4')),
  )
  assert.deepEqual(statuses(answers), { 201: 5, 429: 7 })
  const made = await database.sql(`select from users where username like 'newcomer-%'`)
  assert.equal(made.length, 5)
})

test('addresses of one IPv6 /64 are one, those of another are not, and a mapped IPv4 address is itself', async () => {
  for (let n = 0; n < 5; n++) assert.equal((await register(`six-${n}`, `2001:db8:1:2::${n}`)).status, 201)
  assert.equal((await register('six-5', '2001:db8:1:2:ffff:ffff:ffff:ffff')).status, 429)
  assert.equal((await register('six-6', '2001:db8:1:3::1')).status, 201)
  for (let n = 0; n < 5; n++) assert.equal((await register(`four-${n}`, '192.0.2.77')).status, 201)
  assert.equal((await register('four-5', '::ffff:192.0.2.77')).status, 429)
})

test('what is no address is one for all, and breaks nothing', async () => {
  const answers = []
  for (let n = 0; n < 6; n++)
    answers.push(await register(`odd-${n}`, n % 2 ? "'; drop table users" : 'localhost'))
  assert.deepEqual(statuses(answers), { 201: 5, 429: 1 })
})

/** Records logins of a network within this minute, because each real one would cost a password hash. */
const hitBefore = (network: string, times: number) =>
  database.sql(
    `insert into rate_limits (action, subject, hits, admitted, last_hit)
     select 'login', $1, array_agg(now()), true, now() from generate_series(1, $2)`,
    [network, times],
  )

test('where no address header is trusted, forged headers do not bypass the limit', async (t) => {
  const bindings = { SMARTQUEUE_CLIENT_ADDRESS_HEADER: 'none' }
  const direct = await startEdge({ databaseUrl: database.url, bindings })
  t.after(direct.stop)
  await hitBefore('unknown', 8)
  const { username, password } = await registerUser(edge)
  const answers = await Promise.all(
    Array.from({ length: 13 }, (_, n) =>
      direct.request('POST', '/auth/login', {
        json: { username, password },
        headers: { 'cf-connecting-ip': `203.0.113.${n}`, 'x-forwarded-for': `203.0.113.${n}` },
      }),
    ),
  )
  assert.deepEqual(statuses(answers), { 200: 2, 429: 11 })
})

test('the last address in a list is used, which the proxy appended', async (t) => {
  const bindings = { SMARTQUEUE_CLIENT_ADDRESS_HEADER: 'X-Forwarded-For' }
  const proxied = await startEdge({ databaseUrl: database.url, bindings })
  t.after(proxied.stop)
  await hitBefore('198.51.100.1', 10)
  const { username, password } = await registerUser(edge)
  const via = (addresses: string) =>
    proxied.request('POST', '/auth/login', {
      json: { username, password },
      headers: { ...fromElsewhere(), 'x-forwarded-for': addresses },
    })
  assertProblem(await via('192.0.2.200, 198.51.100.1'), 429, 'rate-limited')
  assertProblem(await via('198.51.100.1'), 429, 'rate-limited')
  assert.equal((await via('198.51.100.1, 198.51.100.2')).status, 200)
})

/** The one name that is tried now: for how long it is blocked after its last attempt, in seconds. */
const blockOf = async (name: string): Promise<number> => {
  const [row] = await database.sql<{ seconds: number | null }>(
    `select extract(epoch from blocked_until - last_attempt)::float8 as seconds
     from sign_in_attempts where name_hash = sha256(convert_to(lower($1), 'UTF8'))`,
    [name],
  )
  return Math.round(row?.seconds ?? 0)
}

const setBlock = (until: string) => database.sql(`update sign_in_attempts set blocked_until = ${until}`)

test('a name that is guessed at from everywhere is blocked for longer and longer, known or not', async () => {
  const { username, password } = await registerUser(edge)
  for (const name of [username, 'nobody-at-all']) {
    const wrong = () => login({ username: name.toUpperCase(), password: 'wrong' }, fromElsewhere())
    assert.deepEqual(statuses(await Promise.all(Array.from({ length: 10 }, wrong))), { 401: 10 })
    assert.equal(await blockOf(name), 0, 'ten are free')
    for (const seconds of [2, 4, 8, 16]) {
      assert.equal((await wrong()).status, 401)
      assert.equal(await blockOf(name), seconds)
      await setBlock('now()')
    }
    await setBlock(`now() + interval '20 minutes'`)
    const blocked = await wrong()
    assertProblem(blocked, 429, 'rate-limited')
    assert.ok(Number(blocked.headers.get('retry-after')) > 1_000)
  }
  assertProblem(await login({ username, password }, fromElsewhere()), 429, 'rate-limited')
  await setBlock('now()')
  assert.equal((await login({ username, password }, fromElsewhere())).status, 200)
  assert.equal((await login({ username, password: 'wrong' }, fromElsewhere())).status, 401)
  assert.equal(await blockOf(username), 0, 'it starts over')
})

test('a wrong password and an unknown name take the same steps and get the same answer', async () => {
  const { username } = await registerUser(edge)
  const time = async (name: string): Promise<{ answer: Answer; ms: number }> => {
    const startedAt = performance.now()
    const answer = await login({ username: name, password: 'wrong' }, fromElsewhere())
    return { answer, ms: performance.now() - startedAt }
  }
  const rounds: Record<'known' | 'unknown', { answer: Answer; ms: number }>[] = []
  for (let n = 0; n < 5; n++) rounds.push({ known: await time(username), unknown: await time(`nobody-${n}`) })
  for (const { known, unknown } of rounds) {
    assertProblem(known.answer, 401, 'wrong-credentials')
    const { request_id: _, ...one } = known.answer.body
    const { request_id: __, ...other } = unknown.answer.body
    assert.deepEqual(one, other)
    assert.deepEqual([...known.answer.headers.keys()], [...unknown.answer.headers.keys()])
  }
  const fastest = (which: 'known' | 'unknown') => Math.min(...rounds.map((round) => round[which].ms))
  // Both spend a password hash, some 100 ms: an answer without would be many times faster.
  const ratio = fastest('unknown') / fastest('known')
  assert.ok(ratio > 0.5 && ratio < 2, String(ratio))
})
