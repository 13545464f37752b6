import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Hono } from 'hono'
import { tokenKeeper } from '../../functions/auth/session-cookie.ts'
import type { AppEnv } from '../../functions/context.ts'
import { fromElsewhere, registerUser } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

const COOKIE = { 'smartqueue-session': 'cookie' }
const FRIEND = 'https://friend.example'
const MONTH = 30 * 24 * 3600

let database: TestDatabase
let edge: Edge
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url, bindings: { CORS_ORIGINS: FRIEND } })
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const post = (path: string, json: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  edge.request('POST', path, { json, headers: { ...fromElsewhere(), ...headers } })

const withCookie = (token: string) => ({ ...COOKIE, cookie: `other=1; smartqueue_session=${token}; last=2` })

/** The one cookie that an answer sets: its value and its flags. */
const cookieOf = ({ headers, text }: Answer): { name: string; value: string; flags: string[] } => {
  const all = headers.getSetCookie()
  assert.equal(all.length, 1, text)
  const [pair = '', ...flags] = (all[0] ?? '').split('; ')
  const [name = '', value = ''] = pair.split('=')
  return { name, value, flags: flags.sort() }
}

const signIn = async (): Promise<{ token: string; answer: Answer }> => {
  const { username, password } = await registerUser(edge)
  const answer = await post('/auth/login', { username, password }, COOKIE)
  assert.equal(answer.status, 200, answer.text)
  return { token: cookieOf(answer).value, answer }
}

const look = (token: string) => edge.request('GET', '/orgs/me', { token })

test('registration and sign-in put the refresh token into a cookie, and not into the body', async () => {
  const credentials = { username: 'cookie-monster', password: 'correct horse battery' }
  for (const [path, status] of [
    ['/auth/register', 201],
    ['/auth/login', 200],
  ] as const) {
    const answer = await post(path, credentials, COOKIE)
    assert.equal(answer.status, status, answer.text)
    const { name, value, flags } = cookieOf(answer)
    assert.equal(name, 'smartqueue_session')
    assert.match(value, /^sqb_[0-9a-f]{64}$/)
    assert.deepEqual(flags, ['HttpOnly', `Max-Age=${MONTH}`, 'Path=/auth', 'SameSite=Strict'])
    assert.equal(answer.body.refresh_token, null)
    assert.ok(!answer.text.includes('sqb_'))
    assert.equal((await look(answer.body.access_token)).status, 200)
    assert.ok(answer.headers.get('ratelimit'), 'and the other headers are there')
  }
})

test('over https the cookie is for https alone', async () => {
  const app = new Hono<AppEnv>().post('/auth/login', (c) => c.json(tokenKeeper(c).keep('sqr_1').headers))
  const answer = await app.request('https://smartqueue.test/auth/login', { method: 'POST', headers: COOKIE })
  assert.deepEqual(await answer.json(), {
    'set-cookie': `__Secure-smartqueue_session=sqr_1; Max-Age=${MONTH}; Path=/auth; HttpOnly; SameSite=Strict; Secure`,
  })
})

test('a refresh exchanges the cookie for the next one', async () => {
  const { token } = await signIn()
  const renewed = await post('/auth/refresh', {}, withCookie(token))
  assert.equal(renewed.status, 200, renewed.text)
  assert.equal(renewed.body.refresh_token, null)
  const next = cookieOf(renewed).value
  assert.notEqual(next, token)
  assert.equal((await look(renewed.body.access_token)).status, 200)
  assert.equal((await post('/auth/refresh', {}, withCookie(next))).status, 200)
})

test('a page that comes again, or a second tab, gets the same next cookie, and the sign-in goes on', async () => {
  const { token } = await signIn()
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => post('/auth/refresh', {}, withCookie(token))),
  )
  const late = await post('/auth/refresh', {}, withCookie(token))
  const next = [...answers, late].map((answer) => cookieOf(answer).value)
  assert.equal(new Set(next).size, 1, 'one token is good at any time')
  for (const { body } of [...answers, late]) assert.equal((await look(body.access_token)).status, 200)
  const { value } = cookieOf(await post('/auth/refresh', {}, withCookie(next[0] ?? '')))
  assert.ok(![token, next[0]].includes(value))
})

/** As if the exchanges so far lay longer back than a reload takes. */
const elevenSecondsLater = () =>
  database.sql(`update refresh_tokens set replaced_at = replaced_at - interval '11 seconds'`)

test('a cookie that is presented again later ends the sign-in and is taken away', async () => {
  const { token } = await signIn()
  const renewed = await post('/auth/refresh', {}, withCookie(token))
  await elevenSecondsLater()
  const again = await post('/auth/refresh', {}, withCookie(token))
  assertProblem(again, 401, 'refresh-token-invalid')
  assert.deepEqual([cookieOf(again).value, cookieOf(again).flags.includes('Max-Age=0')], ['', true])
  assertProblem(
    await post('/auth/refresh', {}, withCookie(cookieOf(renewed).value)),
    401,
    'refresh-token-invalid',
  )
  assertProblem(await look(renewed.body.access_token), 401, 'unauthenticated')
})

test('the refresh token of a program is no cookie, nor the other way round: it has no grace', async () => {
  const { username, password } = await registerUser(edge)
  const { refresh_token } = (await post('/auth/login', { username, password })).body
  assertProblem(await post('/auth/refresh', {}, withCookie(refresh_token)), 401, 'refresh-token-invalid')
  const { token } = await signIn()
  assertProblem(await post('/auth/refresh', { refresh_token: token }), 401, 'refresh-token-invalid')
  assert.equal((await post('/auth/refresh', {}, withCookie(token))).status, 200, 'neither was used')
  assert.equal((await post('/auth/refresh', { refresh_token })).status, 200)
  assertProblem(await post('/auth/refresh', {}, withCookie(refresh_token)), 401, 'refresh-token-invalid')
  assertProblem(await post('/auth/refresh', { refresh_token }), 401, 'refresh-token-invalid')
})

test('logout ends the sign-in of the cookie and takes it away', async () => {
  const { token, answer } = await signIn()
  const ended = await post('/auth/logout', {}, withCookie(token))
  assert.equal(ended.status, 204, ended.text)
  assert.deepEqual(cookieOf(ended), {
    name: 'smartqueue_session',
    value: '',
    flags: ['HttpOnly', 'Max-Age=0', 'Path=/auth', 'SameSite=Strict'],
  })
  assertProblem(await look(answer.body.access_token), 401, 'unauthenticated')
  assertProblem(await post('/auth/refresh', {}, withCookie(token)), 401, 'refresh-token-invalid')
  assert.equal((await post('/auth/logout', {}, COOKIE)).status, 204, 'without one there is nothing to end')
})

test('without the header a cookie counts for nothing, and none is set', async () => {
  const { token } = await signIn()
  const cookie = `smartqueue_session=${token}`
  for (const path of ['/auth/refresh', '/auth/logout']) {
    assertProblem(await post(path, {}, { cookie }), 422, 'invalid-request', '#/refresh_token')
  }
  const { username, password } = await registerUser(edge)
  const inBody = await post('/auth/login', { username, password }, { cookie })
  assert.deepEqual([inBody.status, inBody.headers.getSetCookie()], [200, []])
  assert.match(inBody.body.refresh_token, /^sqr_/)
})

test('a request that is to take the token from the cookie has to have one, and only there', async () => {
  assertProblem(await post('/auth/refresh', {}, COOKIE), 401, 'refresh-token-invalid')
  const { token } = await signIn()
  const both = await post('/auth/refresh', { refresh_token: token }, withCookie(token))
  assertProblem(both, 422, 'invalid-request', '#/refresh_token')
  const unknown = await post('/auth/refresh', {}, { ...withCookie(token), 'smartqueue-session': 'body' })
  assertProblem(unknown, 422, 'invalid-request', '#/smartqueue-session')
  assert.equal((await post('/auth/refresh', {}, withCookie(token))).status, 200, 'none of it used the token')
})

test('pages of other origins are refused, and the token stays good', async () => {
  const { token } = await signIn()
  const elsewhere: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: edge.url },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: FRIEND },
  ]
  for (const headers of elsewhere) {
    for (const path of ['/auth/refresh', '/auth/logout']) {
      assertProblem(await post(path, {}, { ...withCookie(token), ...headers }), 403, 'forbidden')
    }
    const credentials = { username: 'somebody', password: 'correct horse battery' }
    for (const path of ['/auth/login', '/auth/register']) {
      assertProblem(await post(path, credentials, { ...COOKIE, ...headers }), 403, 'forbidden')
    }
  }
  const own = { ...withCookie(token), origin: edge.url, 'sec-fetch-site': 'same-origin' }
  const renewed = await post('/auth/refresh', {}, own)
  assert.equal(renewed.status, 200, renewed.text)
  const older = { ...withCookie(cookieOf(renewed).value), origin: edge.url }
  assert.equal((await post('/auth/refresh', {}, older)).status, 200, 'a browser that says the origin alone')
})

test('no page of another origin may send the header, not even one that may call the API', async () => {
  const preflight = await edge.request('OPTIONS', '/auth/refresh', {
    headers: {
      origin: FRIEND,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type, smartqueue-session',
    },
  })
  assert.equal(preflight.headers.get('access-control-allow-origin'), FRIEND)
  assert.doesNotMatch(preflight.headers.get('access-control-allow-headers') ?? '', /smartqueue-session/)
  assert.equal(preflight.headers.get('access-control-allow-credentials'), null)
})
