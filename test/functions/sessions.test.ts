import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { signAccessToken } from '../../functions/auth/access-token.ts'
import { createKeyRing } from '../../functions/auth/key-ring.ts'
import type { PrivateKey } from '../../functions/bindings.ts'
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

const look = (token: string, at = edge) => at.request('GET', '/orgs/me', { token })

test('the public keys verify access tokens, and nothing private is among them', async () => {
  const { token } = await registerUser(edge)
  const { body } = await edge.request('GET', '/.well-known/jwks.json')
  await jwtVerify(token, createLocalJWKSet(body), { algorithms: ['EdDSA'], issuer: 'smartqueue' })
  assert.deepEqual(Object.keys(body.keys[0]).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x'])
})

test('a new signing key signs, while tokens of the old one live on; without it they end', async () => {
  const account = await registerUser(edge)
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  const fresh = { ...(jwk as Record<string, string>), kid: 'fresh' }
  const withKeys = (keys: object[]) =>
    startEdge({ databaseUrl: database.url, bindings: { AUTH_KEYS: JSON.stringify({ keys }) } })
  const rotated = await withKeys([fresh, ...edge.authKeys.keys])
  assert.equal((await look(account.token, rotated)).status, 200, 'nobody is signed out')
  const session = await signIn(rotated, account)
  assert.equal(decodeProtectedHeader(session.body.access_token).kid, 'fresh')
  await rotated.stop()
  const retired = await withKeys([fresh])
  assertProblem(await look(account.token, retired), 401, 'unauthenticated')
  assert.equal((await look(session.body.access_token, retired)).status, 200)
  await retired.stop()
})

test('logout ends the sign-in at once, its access tokens included, and no other', async () => {
  const account = await registerUser(edge)
  const [one, other] = [(await signIn(edge, account)).body, (await signIn(edge, account)).body]
  const json = { refresh_token: one.refresh_token }
  assert.equal((await edge.request('POST', '/auth/logout', { json })).status, 204)
  assertProblem(await look(one.access_token), 401, 'unauthenticated')
  assertProblem(await edge.request('POST', '/auth/refresh', { json }), 401, 'refresh-token-invalid')
  assert.equal((await look(other.access_token)).status, 200)
  assert.equal((await edge.request('POST', '/auth/logout', { json })).status, 204, 'twice is fine')
  const unknown = { refresh_token: 'sqr_nothing' }
  assert.equal((await edge.request('POST', '/auth/logout', { json: unknown })).status, 204)
})

test('a refresh token that is used twice ends its access tokens, too', async () => {
  const account = await registerUser(edge)
  const { refresh_token } = (await signIn(edge, account)).body
  const renewed = await edge.request('POST', '/auth/refresh', { json: { refresh_token } })
  assert.equal((await look(renewed.body.access_token)).status, 200)
  await edge.request('POST', '/auth/refresh', { json: { refresh_token } })
  assertProblem(await look(renewed.body.access_token), 401, 'unauthenticated')
})

test('refresh and access tokens, passwords and keys are stored as hashes only', async () => {
  const account = await registerUser(edge)
  const { refresh_token } = (await signIn(edge, account)).body
  const key = await edge.request('POST', '/auth/keys', {
    token: account.token,
    json: { name: 'k', scopes: ['jobs:read'] },
  })
  const invited = await edge.request('POST', `/orgs/${account.orgId}/invite`, {
    token: account.token,
    json: {},
  })
  const secrets = [account.password, account.token, refresh_token, key.body.key, invited.body.token]
  const tables = await database.sql<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'smartqueue'::regnamespace`,
  )
  for (const { name } of tables) {
    const [row] = await database.sql<{ text: string }>(
      `select coalesce(string_agg(to_jsonb(t)::text, ' '), '') as text from ${name} t`,
    )
    for (const secret of secrets) {
      assert.ok(!row?.text.includes(secret), `${name} holds a secret`)
      assert.ok(!row?.text.includes(Buffer.from(secret).toString('hex')), `${name} holds a secret in hex`)
    }
  }
})

test('the password is changed with the old one only, and all other sign-ins end', async () => {
  const account = await registerUser(edge)
  const other = (await signIn(edge, account)).body
  const change = (current_password: string, new_password: string) =>
    edge.request('POST', '/auth/password', {
      token: account.token,
      json: { current_password, new_password },
      headers: fromElsewhere(),
    })
  assertProblem(await change('wrong', 'a new password'), 401, 'wrong-credentials', '#/current_password')
  for (const weak of ['short', 'password123', account.username])
    assertProblem(await change(account.password, weak), 422, 'invalid-request', '#/new_password')
  assertProblem(await change('wrong', 'password123'), 401, 'wrong-credentials', '#/current_password')
  assert.equal((await look(other.access_token)).status, 200, 'nothing has ended so far')
  const changed = await change(account.password, 'a new password')
  assert.deepEqual([changed.status, changed.body], [200, { ended_sessions: 1, revoked_keys: 0 }])
  assert.equal((await look(account.token)).status, 200, 'the one that did it goes on')
  assertProblem(await look(other.access_token), 401, 'unauthenticated')
  assert.equal((await signIn(edge, account)).status, 401)
  assert.equal((await signIn(edge, { ...account, password: 'a new password' })).status, 200)
})

test('changing the password can also revoke the API keys in all organisations', async () => {
  const [ada, grace] = [await registerUser(edge), await registerUser(edge)]
  const make = async (token: string): Promise<string> =>
    (await edge.request('POST', '/auth/keys', { token, json: { name: 'k', scopes: ['org:read'] } })).body.key
  const other = (await edge.request('POST', '/orgs', { token: ada.token, json: { name: 'Other' } })).body
  const there = (await edge.request('POST', `/orgs/${other.id}/switch`, { token: ada.token })).body
    .access_token
  const keys = [await make(ada.token), await make(there)]
  const hers = await make(grace.token)
  for (const key of keys) assert.equal((await look(key)).status, 200)
  const changed = await edge.request('POST', '/auth/password', {
    token: ada.token,
    json: { current_password: ada.password, new_password: 'a new password', revoke_keys: true },
    headers: fromElsewhere(),
  })
  assert.deepEqual(changed.body, { ended_sessions: 0, revoked_keys: 2 })
  for (const key of keys) assertProblem(await look(key), 401, 'unauthenticated')
  assert.equal((await look(hers)).status, 200)
  const { items } = (await edge.request('GET', '/orgs/me/audit?action=api_key.revoked', { token: there }))
    .body
  assert.equal(items.length, 1, 'the log of each organisation has its own entry')
})

test('sign-ins are listed with the address of their last use, newest first, and only to their owner', async () => {
  const ada = await registerUser(edge)
  const from = (ip: string, agent: string) => ({ 'cf-connecting-ip': ip, 'user-agent': agent })
  const { username, password } = ada
  const json = { username, password }
  const laptop = await edge.request('POST', '/auth/login', { json, headers: from('192.0.2.8', 'Laptop') })
  const phone = await edge.request('POST', '/auth/login', { json, headers: from('192.0.2.9', 'Phone') })
  const { refresh_token } = laptop.body
  await edge.request('POST', '/auth/refresh', {
    json: { refresh_token },
    headers: from('2001:db8::9', 'x'.repeat(300)),
  })
  const list = (query = '') =>
    edge.request('GET', `/auth/sessions${query}`, { token: phone.body.access_token })
  const { items, next_cursor } = (await list('?limit=2')).body
  assert.deepEqual(
    items.map((one: Record<string, unknown>) => [one.ip, one.user_agent, one.current, one.org_id]),
    [
      ['192.0.2.9', 'Phone', true, ada.orgId],
      ['2001:db8::9', 'x'.repeat(256), false, ada.orgId],
    ],
  )
  assert.ok(items[1].last_used_at > items[1].created_at && items[1].expires_at > items[1].last_used_at)
  const rest = (await list(`?cursor=${next_cursor}`)).body
  assert.deepEqual([rest.items.length, rest.next_cursor], [1, null], 'the one from registration')
  const key = await edge.request('POST', '/auth/keys', {
    token: ada.token,
    json: { name: 'k', scopes: ['org:read'] },
  })
  assertProblem(await edge.request('GET', '/auth/sessions', { token: key.body.key }), 403, 'forbidden')
})

test('an ended sign-in is rejected immediately, and nobody can end those of others', async () => {
  const [ada, eve] = [await registerUser(edge), await registerUser(edge)]
  const { access_token: token, refresh_token } = (await signIn(edge, ada)).body
  const [{ id }] = (await edge.request('GET', '/auth/sessions', { token })).body.items
  const end = (by: string) => edge.request('DELETE', `/auth/sessions/${id}`, { token: by })
  assertProblem(await end(eve.token), 404, 'not-found')
  assert.equal((await look(token)).status, 200)
  assert.equal((await end(ada.token)).status, 204)
  assertProblem(await look(token), 401, 'unauthenticated')
  assertProblem(
    await edge.request('POST', '/auth/refresh', { json: { refresh_token } }),
    401,
    'refresh-token-invalid',
  )
  assert.equal((await end(ada.token)).status, 204, 'twice is fine')
  const log = await edge.request('GET', '/orgs/me/audit?action=account.signed_out', { token: ada.token })
  assert.deepEqual(
    log.body.items.map(({ target }: { target: unknown }) => target),
    [{ user_id: ada.userId, session_id: id }],
  )
})

test('all other sign-ins can be ended at once, whatever their organisation', async () => {
  const ada = await registerUser(edge)
  const others = [(await signIn(edge, ada)).body, (await signIn(edge, ada)).body]
  const org = (await edge.request('POST', '/orgs', { token: ada.token, json: { name: 'Other' } })).body
  await edge.request('POST', `/orgs/${org.id}/switch`, { token: others[1].access_token })
  const ended = await edge.request('DELETE', '/auth/sessions', { token: ada.token })
  assert.deepEqual([ended.status, ended.body], [200, { ended_sessions: 2 }])
  for (const { access_token } of others) assertProblem(await look(access_token), 401, 'unauthenticated')
  const { items } = (await edge.request('GET', '/auth/sessions', { token: ada.token })).body
  assert.deepEqual(
    items.map(({ current }: { current: boolean }) => current),
    [true],
  )
})

test("the session's secret survives a refresh, and only those who have it get in", async () => {
  const account = await registerUser(edge)
  const { access_token, refresh_token } = (await signIn(edge, account)).body
  const refreshed = await edge.request('POST', '/auth/refresh', { json: { refresh_token } })
  const { sid, secret } = decodeJwt<{ sid: string; secret: string }>(access_token)
  assert.match(secret, /^[0-9a-f]{32}$/)
  assert.equal(decodeJwt(refreshed.body.access_token).secret, secret)
  assert.notEqual(refreshed.body.refresh_token, refresh_token)
  assert.equal((await look(access_token)).status, 200, 'other tabs go on')

  const { text } = await edge.request('GET', '/auth/sessions', { token: access_token })
  assert.ok(text.includes(sid) && !text.includes(secret))
  const rows = await database.sql('select f::text from smartqueue.refresh_families f')
  assert.ok(!JSON.stringify(rows).includes(secret), 'only its hash is stored')

  const keys = createKeyRing(edge.authKeys.keys as PrivateKey[])
  const session = {
    user_id: account.userId,
    org_id: account.orgId,
    role: 'org_admin' as const,
    session_id: sid,
  }
  const forged = await signAccessToken(keys, { ...session, secret: secret.replace(/./g, '0') })
  assertProblem(await look(forged), 401, 'unauthenticated')
})
