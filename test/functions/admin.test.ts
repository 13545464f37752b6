import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
import { assertProblem } from '../support/problem.ts'
import { type Cast, makeCast } from '../support/tenants.ts'

let database: TestDatabase
let edge: Edge
let cast: Cast
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  cast = await makeCast(edge, database)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const asAdmin = (method: string, path: string, headers: Record<string, string> = {}) =>
  edge.request(method, path, { token: cast.admin.token, headers })

test('an admin sees the jobs of all organisations, newest first, page by page, and filtered', async () => {
  const seeded: string[] = []
  for (const tenant of [cast.owner, cast.stranger, cast.owner, cast.admin]) {
    seeded.push(await jobInState(database.run, tenant, 'ready', { tags: ['all'] }))
  }
  const failed = await jobInState(database.run, cast.stranger, 'failed', { tags: ['all'] })
  const newest = [...seeded, failed].reverse()
  const idsOf = (body: { items: { id: string }[] }) => body.items.map(({ id }) => id)
  const first = (await asAdmin('GET', '/jobs?limit=3')).body
  assert.deepEqual(idsOf(first), newest.slice(0, 3))
  const second = (await asAdmin('GET', `/jobs?limit=3&cursor=${first.next_cursor}`)).body
  assert.deepEqual(idsOf(second), newest.slice(3))
  assert.deepEqual(idsOf((await asAdmin('GET', '/jobs?status=failed')).body), [failed])
  assert.deepEqual(idsOf((await asAdmin('GET', '/jobs?tag=all&priority=normal')).body), newest)
  const one = await asAdmin('GET', '/jobs', { 'smartqueue-org': cast.stranger.orgId })
  assert.deepEqual(idsOf(one.body), [failed, seeded[1]])
})

test('an admin looks at, cancels and retries the jobs of all organisations', async () => {
  const id = await jobInState(database.run, cast.owner, 'ready')
  assert.equal((await asAdmin('GET', `/jobs/${id}`)).body.org_id, cast.owner.orgId)
  assert.equal((await asAdmin('GET', `/jobs/${id}/logs`)).status, 200)
  assert.equal((await asAdmin('PATCH', `/jobs/${id}/cancel`)).body.status, 'cancelled')
  assert.equal((await asAdmin('POST', `/jobs/${id}/retry`)).body.status, 'ready')
  assertProblem(await asAdmin('GET', `/jobs/${crypto.randomUUID()}`), 404, 'not-found')
})

test('an admin lists all users and all organisations', async () => {
  const users = (await asAdmin('GET', '/auth/users?limit=200')).body.items
  const byId = new Map<string, { is_admin: boolean; org_ids: string[] }>(
    users.map((user: { id: string }) => [user.id, user]),
  )
  for (const { userId } of Object.values(cast)) assert.ok(byId.has(userId))
  assert.ok(byId.get(cast.admin.userId)?.is_admin)
  assert.ok(byId.get(cast.member.userId)?.org_ids.includes(cast.owner.orgId))
  assert.ok(!JSON.stringify(users).includes('scrypt'))
  const orgs = (await asAdmin('GET', '/orgs?limit=200')).body.items
  const owners = orgs.find(({ id }: { id: string }) => id === cast.owner.orgId)
  assert.equal(owners.role, null, 'no member of it')
})

test('an admin looks into an organisation by its header, or switches to it', async () => {
  const headers = { 'smartqueue-org': cast.owner.orgId }
  assert.equal((await asAdmin('GET', '/orgs/me', headers)).body.id, cast.owner.orgId)
  assert.equal((await asAdmin('GET', '/orgs/me/members', headers)).body.items.length, 2)
  const switched = await asAdmin('POST', `/orgs/${cast.owner.orgId}/switch`)
  assert.deepEqual([switched.body.user.role, switched.body.user.org_id], ['admin', cast.owner.orgId])
  const token = switched.body.access_token
  assert.equal((await edge.request('GET', '/orgs/me', { token })).body.id, cast.owner.orgId)
  for (const unknown of [crypto.randomUUID(), 'no id']) {
    assertProblem(await asAdmin('GET', '/orgs/me', { 'smartqueue-org': unknown }), 404, 'not-found')
  }
})

test('nobody else may name another organisation', async () => {
  const headers = { 'smartqueue-org': cast.stranger.orgId }
  for (const { token } of [cast.owner, cast.member]) {
    assertProblem(await edge.request('GET', '/jobs', { token, headers }), 403, 'forbidden')
  }
})

test('an admin who is one no more is refused at once, whatever the token says', async () => {
  const fallen = await registerUser(edge)
  await database.sql('update users set is_admin = true where id = $1', [fallen.userId])
  const { body } = await edge.request('POST', `/orgs/${fallen.orgId}/switch`, { token: fallen.token })
  const token = body.access_token
  assert.equal((await edge.request('GET', '/auth/users', { token })).status, 200)
  await database.sql('update users set is_admin = false where id = $1', [fallen.userId])
  assertProblem(await edge.request('GET', '/auth/users', { token }), 403, 'forbidden')
  assertProblem(await edge.request('GET', '/jobs', { token }), 403, 'forbidden')
  const headers = { 'smartqueue-org': cast.owner.orgId }
  assertProblem(await edge.request('GET', '/orgs/me', { token, headers }), 404, 'not-found')
  const demoted = await edge.request('GET', '/auth/keys', { token })
  assert.equal(demoted.status, 200, 'still org_admin of their own')
})

test('an organisation that does not exist exists for nobody, and nothing breaks', async () => {
  const headers = { 'smartqueue-org': crypto.randomUUID() }
  const requests: [string, string, object?][] = [
    ['POST', '/queue/pause', {}],
    ['POST', `/orgs/${crypto.randomUUID()}/invite`, {}],
    ['POST', '/jobs', { name: 'n', type: 'test', payload: {} }],
    ['GET', '/orgs/me/audit'],
  ]
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  for (const [method, path, json] of requests) {
    const answer = await edge.request(method, path, {
      token: cast.admin.token,
      headers,
      ...(json && { json }),
    })
    assert.ok([403, 404].includes(answer.status), `${path}: ${answer.text}`)
  }
  const password = { current_password: cast.admin.password, new_password: 'another password' }
  const account = await edge.request('POST', '/auth/password', {
    token: cast.admin.token,
    headers,
    json: password,
  })
  assertProblem(account, 422, 'invalid-request', '#/smartqueue-org')
})
