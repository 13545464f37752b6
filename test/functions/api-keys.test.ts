import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'
import { type Cast, makeCast } from '../support/tenants.ts'

let database: TestDatabase
let edge: Edge
let cast: Cast
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
  cast = await makeCast(edge, database)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const makeKey = (account: TestAccount, json: object): Promise<Answer> =>
  edge.request('POST', '/auth/keys', { token: account.token, json: { name: 'ci', ...json } })

const JOB = { name: 'n', type: 'test', payload: {} }
const submit = (token: string) => edge.request('POST', '/jobs', { token, json: JOB })

test('a key does what it was given, in its organisation, for its maker', async () => {
  const made = await makeKey(cast.member, { scopes: ['jobs:submit'] })
  assert.equal(made.status, 201, made.text)
  assert.match(made.body.key, /^sqk_[0-9a-f]{64}$/)
  assert.ok(made.body.key.startsWith(made.body.prefix))
  const submitted = await submit(made.body.key)
  assert.equal(submitted.status, 201, submitted.text)
  assert.deepEqual(
    [submitted.body.org_id, submitted.body.created_by],
    [cast.member.orgId, cast.member.userId],
  )
  const refused = await edge.request('GET', '/jobs', { token: made.body.key })
  assertProblem(refused, 403, 'forbidden')
  assert.match(refused.body.detail, /jobs:read/)
  for (const path of ['/auth/keys', '/orgs']) {
    assertProblem(await edge.request('GET', path, { token: made.body.key }), 403, 'forbidden')
  }
})

test('the key is shown once; the list says which it is and when it was last used', async () => {
  const made = await makeKey(cast.stranger, { scopes: ['jobs:read', 'jobs:submit'] })
  const list = () => edge.request('GET', '/auth/keys', { token: cast.stranger.token })
  const before = await list()
  assert.ok(!before.text.includes(made.body.key))
  assert.equal(before.body.items[0].last_used_at, null)
  await edge.request('GET', '/jobs', { token: made.body.key })
  const [after] = (await list()).body.items
  assert.deepEqual([after.id, after.prefix], [made.body.id, made.body.prefix])
  assert.deepEqual([made.body.username, after.username], [cast.stranger.username, cast.stranger.username])
  assert.ok(Date.parse(after.last_used_at) > Date.now() - 60_000)
})

test('a revoked key ends at once, also where it was just used', async () => {
  const { id, key } = (await makeKey(cast.owner, { scopes: ['jobs:read', 'jobs:submit'] })).body
  assert.equal((await submit(key)).status, 201)
  const revoke = () => edge.request('DELETE', `/auth/keys/${id}`, { token: cast.owner.token })
  assert.equal((await revoke()).status, 204)
  assertProblem(await submit(key), 401, 'unauthenticated')
  assertProblem(await edge.request('GET', '/jobs', { token: key }), 401, 'unauthenticated')
  assert.equal((await revoke()).status, 204, 'twice is fine')
})

test('an expired key is worth nothing, also if it was known before', async () => {
  const { id, key } = (
    await makeKey(cast.owner, { scopes: ['jobs:read'], expires_at: '2999-01-01T00:00:00Z' })
  ).body
  assert.equal((await edge.request('GET', '/jobs', { token: key })).status, 200)
  await database.sql('update api_keys set expires_at = now() where id = $1', [id])
  assertProblem(await edge.request('GET', '/jobs', { token: key }), 401, 'unauthenticated')
})

test('an org_admin sees and revokes the keys of members; a member only their own', async () => {
  const [theirs, own] = [
    (await makeKey(cast.owner, { scopes: ['jobs:read'] })).body,
    (await makeKey(cast.member, { scopes: ['jobs:read'] })).body,
  ]
  const idsFor = async (account: TestAccount): Promise<string[]> => {
    const { body } = await edge.request('GET', '/auth/keys', { token: account.token })
    return body.items.map(({ id }: { id: string }) => id)
  }
  const ofMember = await idsFor(cast.member)
  assert.ok(ofMember.includes(own.id) && !ofMember.includes(theirs.id))
  assert.ok((await idsFor(cast.owner)).includes(own.id))
  const revoke = (id: string, account: TestAccount) =>
    edge.request('DELETE', `/auth/keys/${id}`, { token: account.token })
  assertProblem(await revoke(theirs.id, cast.member), 404, 'not-found')
  assert.equal((await revoke(own.id, cast.owner)).status, 204)
})

test('a demoted org_admin has only their own keys in hand, at once', async () => {
  const theirs = (await makeKey(cast.member, { scopes: ['jobs:read'] })).body
  const demote = (role: string) =>
    database.sql('update memberships set role = $3 where user_id = $1 and org_id = $2', [
      cast.owner.userId,
      cast.owner.orgId,
      role,
    ])
  await demote('user')
  const revoke = await edge.request('DELETE', `/auth/keys/${theirs.id}`, { token: cast.owner.token })
  assertProblem(revoke, 403, 'forbidden')
  assertProblem(await edge.request('GET', '/auth/keys', { token: cast.owner.token }), 403, 'forbidden')
  await demote('org_admin')
})

test('nobody gives a key more than they have', async () => {
  assertProblem(
    await makeKey(cast.member, { scopes: ['jobs:read', 'queue:manage'] }),
    422,
    'invalid-request',
    '#/scopes/1',
  )
  assertProblem(await makeKey(cast.owner, { scopes: ['org:manage'] }), 422, 'invalid-request', '#/scopes/0')
  assertProblem(await makeKey(cast.owner, { scopes: [] }), 422, 'invalid-request', '#/scopes')
  const { key } = (await makeKey(cast.owner, { scopes: ['queue:manage'] })).body
  const pause = () => edge.request('POST', '/queue/pause', { token: key, json: { type: 'none' } })
  assert.equal((await pause()).status, 200)
  await database.sql(`update memberships set role = 'user' where user_id = $1 and org_id = $2`, [
    cast.owner.userId,
    cast.owner.orgId,
  ])
  assertProblem(await pause(), 403, 'forbidden')
  await database.sql(`update memberships set role = 'org_admin' where user_id = $1 and org_id = $2`, [
    cast.owner.userId,
    cast.owner.orgId,
  ])
})

test('a key ends with the membership of its maker', async () => {
  const { key } = (await makeKey(cast.member, { scopes: ['jobs:read', 'jobs:submit'] })).body
  assert.equal((await submit(key)).status, 201)
  const removed = await edge.request('DELETE', `/orgs/me/members/${cast.member.userId}`, {
    token: cast.owner.token,
  })
  assert.equal(removed.status, 204, removed.text)
  assertProblem(await submit(key), 401, 'unauthenticated')
  assertProblem(await edge.request('GET', '/jobs', { token: key }), 401, 'unauthenticated')
})

test('what is no key of ours is refused', async () => {
  for (const token of [`sqk_${'0'.repeat(64)}`, 'sqk_short', 'sqk_']) {
    assertProblem(await submit(token), 401, 'unauthenticated')
  }
})

test('an organisation has at most 1,000 keys, even under concurrent requests', async () => {
  const ada = await registerUser(edge)
  await database.sql(
    `insert into api_keys (id, org_id, user_id, name, prefix, key_hash, scopes)
     select gen_random_uuid(), $1, $2, 'k', 'sqk_', sha256(gen_random_uuid()::text::bytea), '{jobs:read}'
     from generate_series(1, 998)`,
    [ada.orgId, ada.userId],
  )
  const json = { name: 'k', scopes: ['jobs:read'] }
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => edge.request('POST', '/auth/keys', { token: ada.token, json })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, ...Array(6).fill(409)])
})
