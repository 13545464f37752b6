import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { fromElsewhere, registerUser } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'
import { signIn } from '../support/tenants.ts'

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

const post = (path: string, json: unknown) => edge.request('POST', path, { json, headers: fromElsewhere() })

test('registration makes an account, a personal organisation and a session', async () => {
  const answer = await post('/auth/register', { username: 'ada', password: 'correct horse' })
  assert.equal(answer.status, 201, answer.text)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  const { user, access_token, refresh_token, expires_in } = answer.body
  assert.deepEqual([user.username, user.role, expires_in], ['ada', 'org_admin', 600])
  assert.match(refresh_token, /^sqr_/)
  assert.equal(decodeProtectedHeader(access_token).alg, 'EdDSA')
  const claims = decodeJwt(access_token)
  assert.deepEqual(
    [claims.sub, claims.org, (claims.exp ?? 0) - (claims.iat ?? 0)],
    [user.id, user.org_id, 600],
  )
  const rows = await database.sql(
    `select o.name, m.role, u.password_hash
     from users u
     join memberships m on m.user_id = u.id
     join orgs o on o.id = m.org_id
     where u.id = $1`,
    [user.id],
  )
  assert.deepEqual(
    rows.map(({ name, role }) => [name, role]),
    [['ada', 'org_admin']],
  )
  assert.match(String(rows[0]?.password_hash), /^scrypt\$14\$8\$5\$/)
})

test('a taken name is refused, whatever its case, and leaves nothing behind', async () => {
  const { username } = await registerUser(edge)
  const count = () =>
    database.sql('select (select count(*) from orgs) as orgs, (select count(*) from users) as users')
  const before = await count()
  const answer = await post('/auth/register', { username: username.toUpperCase(), password: 'correct horse' })
  assertProblem(answer, 409, 'username-taken', '#/username')
  assert.deepEqual(await count(), before)
})

test('of many registrations of one name at once exactly one succeeds', async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      post('/auth/register', { username: 'contended', password: 'correct horse' }),
    ),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409, 409, 409])
})

test('an easily guessed password is rejected with advice', async () => {
  const register = (password: string) => post('/auth/register', { username: 'new-person', password })
  const guessed = [
    'New-Person',
    'new-personNEW-PERSON',
    'new-person2026!',
    'aaaaaaaaaaaa',
    '12312312',
    'Password1',
  ]
  for (const password of guessed) {
    const answer = await register(password)
    assertProblem(answer, 422, 'invalid-request', '#/password')
    assert.match(answer.body.detail, /choose/)
  }
  assert.deepEqual(await database.sql(`select from users where username = 'new-person'`), [])
})

test('in invite mode a link creates one account, in the organisation that sent it', async (t) => {
  const bindings = { SMARTQUEUE_REGISTRATION: 'invite' }
  const invited = await startEdge({ databaseUrl: database.url, bindings })
  t.after(invited.stop)
  const register = (username: string, invitation?: string) =>
    invited.request('POST', '/auth/register', {
      json: { username, password: 'correct horse', invitation },
      headers: fromElsewhere(),
    })
  const owner = await registerUser(edge)
  const { token } = (
    await edge.request('POST', `/orgs/${owner.orgId}/invite`, { token: owner.token, json: {} })
  ).body
  assert.deepEqual((await invited.request('GET', '/auth/registration')).body, { registration: 'invite' })
  assertProblem(await register('guest-0'), 403, 'registration-closed')
  assertProblem(await register('guest-0', `sqi_${'0'.repeat(64)}`), 404, 'not-found', '#/invitation')
  assertProblem(await register(owner.username, token), 409, 'username-taken', '#/username')
  const answers = await Promise.all([1, 2, 3].map((n) => register(`guest-${n}`, token)))
  const made = answers.filter(({ status }) => status === 201)
  assert.equal(made.length, 1, answers.map(({ text }) => text).join())
  for (const answer of answers) if (answer.status !== 201) assertProblem(answer, 404, 'not-found')
  const { user, access_token } = made[0]?.body ?? {}
  assert.deepEqual([user.org_id, user.role], [owner.orgId, 'user'])
  const { items } = (await invited.request('GET', '/orgs', { token: access_token })).body
  assert.deepEqual(
    items.map(({ id }: { id: string }) => id),
    [owner.orgId],
    'and no personal organisation',
  )
  const again = { ...owner, username: user.username, password: 'correct horse' }
  assert.equal((await signIn(edge, again)).body.user.org_id, owner.orgId)
  assert.equal((await database.sql(`select from users where username like 'guest-%'`)).length, 1)
  const log = await database.sql<{ action: string }>(
    'select action from audit_log where org_id = $1 and actor_id = $2 order by id limit 2',
    [owner.orgId, user.id],
  )
  assert.deepEqual(log.map(({ action }) => action).sort(), ['account.registered', 'member.joined'])
})

test('in closed mode nobody can register, with or without an invitation', async (t) => {
  const bindings = { SMARTQUEUE_REGISTRATION: 'closed' }
  const closed = await startEdge({ databaseUrl: database.url, bindings })
  t.after(closed.stop)
  const owner = await registerUser(edge)
  const { token: invitation } = (
    await edge.request('POST', `/orgs/${owner.orgId}/invite`, { token: owner.token, json: {} })
  ).body
  const credentials = { username: 'too-late', password: 'correct horse' }
  for (const json of [credentials, { ...credentials, invitation }])
    assertProblem(await closed.request('POST', '/auth/register', { json }), 403, 'registration-closed')
  assert.equal((await closed.request('GET', '/auth/registration')).body.registration, 'closed')
})

test('login answers a session for the right password only', async () => {
  const { username, password, orgId } = await registerUser(edge)
  const good = await post('/auth/login', { username: username.toUpperCase(), password })
  assert.equal(good.status, 200, good.text)
  assert.equal(good.body.user.org_id, orgId)
  assert.equal((await edge.request('GET', '/jobs', { token: good.body.access_token })).status, 200)
  const wrongPassword = await post('/auth/login', { username, password: `${password}!` })
  const unknownName = await post('/auth/login', { username: 'nobody-here', password })
  assertProblem(wrongPassword, 401, 'wrong-credentials')
  assertProblem(unknownName, 401, 'wrong-credentials')
  assert.equal(wrongPassword.body.detail, unknownName.body.detail, 'both say the same')
})

test('a refresh token is good once, and using it again ends the whole sign-in', async () => {
  const { username, password } = await registerUser(edge)
  const first = (await post('/auth/login', { username, password })).body.refresh_token
  const renewed = await post('/auth/refresh', { refresh_token: first })
  assert.equal(renewed.status, 200, renewed.text)
  assert.equal((await edge.request('GET', '/jobs', { token: renewed.body.access_token })).status, 200)
  const second = renewed.body.refresh_token
  assert.notEqual(second, first)
  assertProblem(await post('/auth/refresh', { refresh_token: first }), 401, 'refresh-token-invalid')
  assertProblem(await post('/auth/refresh', { refresh_token: second }), 401, 'refresh-token-invalid')
})

test('of two exchanges of one refresh token at once at most one succeeds, and the sign-in ends', async () => {
  const { username, password } = await registerUser(edge)
  const { refresh_token } = (await post('/auth/login', { username, password })).body
  const answers = await Promise.all(Array.from({ length: 5 }, () => post('/auth/refresh', { refresh_token })))
  const winners = answers.filter(({ status }) => status === 200)
  assert.equal(winners.length, 1)
  const successor = winners[0]?.body.refresh_token
  assertProblem(await post('/auth/refresh', { refresh_token: successor }), 401, 'refresh-token-invalid')
})

test('an expired refresh token is refused', async () => {
  const { username, password, userId } = await registerUser(edge)
  const { refresh_token } = (await post('/auth/login', { username, password })).body
  await database.sql(
    `update refresh_tokens set expires_at = now()
     where family_id in (select id from refresh_families where user_id = $1)`,
    [userId],
  )
  assertProblem(await post('/auth/refresh', { refresh_token }), 401, 'refresh-token-invalid')
})
