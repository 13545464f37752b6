import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
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
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
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
  assertProblem(await change(account.password, 'short'), 422, 'invalid-request', '#/new_password')
  const changed = await change(account.password, 'a new password')
  assert.deepEqual([changed.status, changed.body], [200, { ended_sessions: 1 }])
  assert.equal((await look(account.token)).status, 200, 'the one that did it goes on')
  assertProblem(await look(other.access_token), 401, 'unauthenticated')
  assert.equal((await signIn(edge, account)).status, 401)
  assert.equal((await signIn(edge, { ...account, password: 'a new password' })).status, 200)
})
