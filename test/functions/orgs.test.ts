import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { fromElsewhere, registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'
import { join, signIn } from '../support/tenants.ts'

let database: TestDatabase
let edge: Edge
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const get = (path: string, { token }: TestAccount) => edge.request('GET', path, { token })
const post = (path: string, { token }: TestAccount, json: object = {}) =>
  edge.request('POST', path, { token, json, headers: fromElsewhere() })

const invite = (owner: TestAccount, json: object = {}): Promise<Answer> =>
  post(`/orgs/${owner.orgId}/invite`, owner, json)
const accept = (id: string, guest: TestAccount, json: object = {}): Promise<Answer> =>
  post(`/orgs/invitations/${id}/accept`, guest, json)
const changeRole = (by: TestAccount, of: TestAccount, role: string): Promise<Answer> =>
  edge.request('PATCH', `/orgs/me/members/${of.userId}`, { token: by.token, json: { role } })
const remove = (by: TestAccount, of: TestAccount): Promise<Answer> =>
  edge.request('DELETE', `/orgs/me/members/${of.userId}`, { token: by.token })

test('whoever creates an organisation is its org_admin, and can make it the active one', async () => {
  const ada = await registerUser(edge)
  const made = await post('/orgs', ada, { name: ' Analytics ' })
  assert.equal(made.status, 201, made.text)
  assert.deepEqual([made.body.name, made.body.role], ['Analytics', 'org_admin'])
  assert.equal((await get('/orgs/me', ada)).body.id, ada.orgId, 'the active one stays')
  const { items } = (await get('/orgs', ada)).body
  assert.deepEqual(
    items.map(({ id }: { id: string }) => id),
    [ada.orgId, made.body.id],
  )
  const switched = await post(`/orgs/${made.body.id}/switch`, ada)
  assert.equal(switched.body.user.org_id, made.body.id)
  const there = { ...ada, token: switched.body.access_token }
  assert.deepEqual((await get('/orgs/me', there)).body.members, 1)
})

test('the refresh token goes on in the organisation that was switched to', async () => {
  const ada = await registerUser(edge)
  const session = (await signIn(edge, ada)).body
  const other = (await post('/orgs', ada, { name: 'Other' })).body
  await post(`/orgs/${other.id}/switch`, { ...ada, token: session.access_token })
  const json = { refresh_token: session.refresh_token }
  assert.equal((await edge.request('POST', '/auth/refresh', { json })).body.user.org_id, other.id)
})

test('a user who is invited by name sees it, and accepts it once', async () => {
  const [ada, grace, eve] = [await registerUser(edge), await registerUser(edge), await registerUser(edge)]
  const made = await invite(ada, { username: grace.username.toUpperCase(), role: 'org_admin' })
  assert.equal(made.status, 201, made.text)
  assert.deepEqual([made.body.username, made.body.token, made.body.url], [grace.username, null, null])
  const hours = (Date.parse(made.body.expires_at) - Date.parse(made.body.created_at)) / 3_600_000
  assert.equal(hours, 72)
  const { items } = (await get('/orgs/invitations', grace)).body
  assert.deepEqual(
    items.map(({ id, org_name }: { id: string; org_name: string }) => [id, org_name]),
    [[made.body.id, ada.username]],
  )
  assertProblem(await accept(made.body.id, eve), 404, 'not-found')
  const joined = await accept(made.body.id, grace)
  assert.deepEqual(joined.body, { org_id: ada.orgId, org_name: ada.username, role: 'org_admin' })
  assertProblem(await accept(made.body.id, grace), 404, 'not-found')
  assert.deepEqual((await get('/orgs/invitations', grace)).body.items, [])
  assertProblem(await invite(ada, { username: grace.username }), 409, 'already-member')
  assertProblem(await invite(ada, { username: 'no-such-user' }), 422, 'unknown-user', '#/username')
})

test('of many who have a link at the same time exactly one gets in', async () => {
  const ada = await registerUser(edge)
  const guests = await Promise.all(Array.from({ length: 5 }, () => registerUser(edge)))
  const { id, token, url } = (await invite(ada)).body
  assert.ok(url.endsWith(`/join#${id}.${token}`), url)
  const answers = await Promise.all(guests.map((guest) => accept(id, guest, { token })))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404, 404])
  assert.equal((await get('/orgs/me/members', ada)).body.items.length, 2)
})

test('a link is worth nothing without its token, with another, revoked, or after its time', async () => {
  const [ada, guest] = [await registerUser(edge), await registerUser(edge)]
  const link = (await invite(ada)).body
  assertProblem(await accept(link.id, guest), 404, 'not-found')
  assertProblem(await accept(link.id, guest, { token: `sqi_${'0'.repeat(64)}` }), 404, 'not-found')
  const pending = () => get('/orgs/me/invitations', ada)
  assert.ok(!(await pending()).text.includes(link.token))
  const revoke = () => edge.request('DELETE', `/orgs/me/invitations/${link.id}`, { token: ada.token })
  assert.equal((await revoke()).status, 204)
  assertProblem(await accept(link.id, guest, { token: link.token }), 404, 'not-found')
  assertProblem(await revoke(), 404, 'not-found')
  assert.deepEqual((await pending()).body.items, [])
  const late = (await invite(ada)).body
  await database.sql(`update invitations set expires_at = now() where id = $1`, [late.id])
  assertProblem(await accept(late.id, guest, { token: late.token }), 404, 'not-found')
})

test('a member does not spend a link by opening it', async () => {
  const [ada, guest] = [await registerUser(edge), await registerUser(edge)]
  const { id, token } = (await invite(ada)).body
  assertProblem(await accept(id, ada, { token }), 409, 'already-member')
  assert.equal((await accept(id, guest, { token })).status, 200)
})

test('a user of the organisation invites nobody, and nobody invites an admin', async () => {
  const ada = await registerUser(edge)
  const member = await join(edge, ada, await registerUser(edge))
  assertProblem(await invite(member), 403, 'forbidden')
  assertProblem(await invite(ada, { role: 'admin' }), 422, 'invalid-request', '#/role')
  assertProblem(await changeRole(ada, member, 'admin'), 422, 'invalid-request', '#/role')
})

test('a change of role holds from the next request on, with the token that is there', async () => {
  const ada = await registerUser(edge)
  const member = await join(edge, ada, await registerUser(edge))
  const raised = await changeRole(ada, member, 'org_admin')
  assert.deepEqual([raised.status, raised.body.role], [200, 'org_admin'])
  const { body } = await post(`/orgs/${ada.orgId}/switch`, member)
  const promoted = { ...member, token: body.access_token }
  assert.equal((await invite(promoted)).status, 201)
  assert.equal((await changeRole(ada, member, 'user')).body.role, 'user')
  assertProblem(await invite(promoted), 403, 'forbidden')
})

test('the last org_admin can neither leave nor be demoted', async () => {
  const ada = await registerUser(edge)
  const member = await join(edge, ada, await registerUser(edge))
  assertProblem(await changeRole(ada, ada, 'user'), 409, 'last-org-admin')
  assertProblem(await remove(ada, ada), 409, 'last-org-admin')
  await changeRole(ada, member, 'org_admin')
  assert.equal((await changeRole(ada, ada, 'user')).status, 200)
})

test('of two org_admins who demote each other at the same time one stays', async () => {
  for (let round = 0; round < 5; round++) {
    const ada = await registerUser(edge)
    const grace = await join(edge, ada, await registerUser(edge))
    await changeRole(ada, grace, 'org_admin')
    const { body } = await post(`/orgs/${ada.orgId}/switch`, grace)
    const promoted = { ...grace, token: body.access_token }
    const answers = await Promise.all([changeRole(ada, grace, 'user'), remove(promoted, ada)])
    const left = await database.sql(`select from memberships where org_id = $1 and role = 'org_admin'`, [
      ada.orgId,
    ])
    assert.equal(left.length, 1, answers.map(({ text }) => text).join())
  }
})

test('whoever is removed is out at once: sessions, invitations, and the list of organisations', async () => {
  const ada = await registerUser(edge)
  const guest = await registerUser(edge)
  const member = await join(edge, ada, guest)
  await changeRole(ada, member, 'org_admin')
  const { body } = await post(`/orgs/${ada.orgId}/switch`, member)
  const promoted = { ...member, token: body.access_token }
  const link = (await invite(promoted)).body
  assert.equal((await get('/jobs', promoted)).status, 200)
  assert.equal((await remove(ada, member)).status, 204)
  assertProblem(await get('/jobs', promoted), 401, 'unauthenticated')
  assertProblem(
    await post('/jobs', promoted, { name: 'n', type: 'test', payload: {} }),
    401,
    'unauthenticated',
  )
  assertProblem(await accept(link.id, await registerUser(edge), { token: link.token }), 404, 'not-found')
  const again = { ...guest, token: (await signIn(edge, guest)).body.access_token }
  assert.equal((await get('/orgs', again)).body.items.length, 1, 'their own')
  assertProblem(await post(`/orgs/${ada.orgId}/switch`, again), 404, 'not-found')
})

test('a member may leave, and may not remove others', async () => {
  const ada = await registerUser(edge)
  const member = await join(edge, ada, await registerUser(edge))
  assertProblem(await remove(member, ada), 403, 'forbidden')
  assert.equal((await remove(member, member)).status, 204)
  assert.equal((await get('/orgs/me/members', ada)).body.items.length, 1)
})

test('one who is removed takes nobody with them who submits at the same time', async () => {
  const ada = await registerUser(edge)
  const member = await join(edge, ada, await registerUser(edge))
  await remove(ada, member)
  const job = { name: 'n', type: 'test', payload: {} }
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      post('/jobs', n % 2 ? member : ada, job).then(({ status }) => ({ n, status })),
    ),
  )
  for (const { n, status } of answers) assert.equal(status, n % 2 ? 401 : 201)
})

test('an invitation is worth nothing once its maker may not invite any more', async () => {
  const ada = await registerUser(edge)
  const grace = await join(edge, ada, await registerUser(edge))
  await changeRole(ada, grace, 'org_admin')
  const { body } = await post(`/orgs/${ada.orgId}/switch`, grace)
  const link = (await invite({ ...grace, token: body.access_token }, { role: 'org_admin' })).body
  await changeRole(ada, grace, 'user')
  assertProblem(await accept(link.id, await registerUser(edge), { token: link.token }), 404, 'not-found')
})

test('open invitations say who is invited and by whom, and whoever is invited again has one', async () => {
  const [ada, guest] = [await registerUser(edge), await registerUser(edge)]
  await invite(ada, { username: guest.username })
  await invite(ada, { username: guest.username, role: 'org_admin' })
  await invite(ada)
  const { items } = (await get('/orgs/me/invitations', ada)).body
  assert.deepEqual(
    items.map((item: Record<string, string>) => [item.username, item.invited_by, item.role]),
    [
      [guest.username, ada.username, 'org_admin'],
      [null, ada.username, 'user'],
    ],
  )
  assert.equal((await get('/orgs/invitations', guest)).body.items.length, 1)
})

test('an account can create five organisations, including its personal one, even under concurrent requests', async () => {
  const [ada, grace] = [await registerUser(edge), await registerUser(edge)]
  await database.sql(
    `with made as (
       insert into orgs (id, name, created_by)
       select gen_random_uuid(), 'o', $2 from generate_series(1, 9)
       returning id
     )
     insert into memberships (org_id, user_id, role) select id, $1, 'org_admin' from made`,
    [ada.userId, grace.userId],
  )
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => post('/orgs', ada, { name: `number ${n}` })),
  )
  const refused = answers.filter(({ status }) => status !== 201)
  assert.equal(refused.length, 6, 'organisations created by others do not count')
  for (const answer of refused) assertProblem(answer, 409, 'limit-reached')
})

test('an organisation still counts after its creator has left it, but keeps nobody from signing in', async () => {
  const ada = await registerUser(edge)
  await database.sql(
    `insert into orgs (id, name, created_by) select gen_random_uuid(), 'o', $1 from generate_series(1, 4)`,
    [ada.userId],
  )
  assertProblem(await post('/orgs', ada, { name: 'one more' }), 409, 'limit-reached')
  await database.sql('delete from memberships where user_id = $1', [ada.userId])
  const { body } = await signIn(edge, ada)
  assertProblem(
    await post('/orgs', { ...ada, token: body.access_token }, { name: 'one more' }),
    409,
    'limit-reached',
  )
})

test('an organisation has at most 1,000 open invitations, including links, even under concurrent requests', async () => {
  const [ada, guest] = [await registerUser(edge), await registerUser(edge)]
  await invite(ada, { username: guest.username })
  await database.sql(
    `insert into invitations (id, org_id, role, token_hash, invited_by, expires_at)
     select gen_random_uuid(), $1, 'user', sha256(gen_random_uuid()::text::bytea), $2, now() + interval '1 hour'
     from generate_series(1, 997)`,
    [ada.orgId, ada.userId],
  )
  const answers = await Promise.all(Array.from({ length: 8 }, () => invite(ada)))
  const refused = answers.filter(({ status }) => status !== 201)
  assert.equal(refused.length, 6)
  for (const answer of refused) assertProblem(answer, 409, 'limit-reached')
  assert.equal((await invite(ada, { username: guest.username })).status, 201, 'it replaces the previous one')
})

test('whoever has left all organisations gets a personal one at the next sign-in', async () => {
  const [ada, grace] = [await registerUser(edge), await registerUser(edge)]
  const promoted = await join(edge, ada, grace)
  await changeRole(ada, promoted, 'org_admin')
  assert.equal((await remove(ada, ada)).status, 204)
  const again = await signIn(edge, ada)
  assert.equal(again.status, 200, again.text)
  assert.notEqual(again.body.user.org_id, ada.orgId)
  assert.equal(again.body.user.role, 'org_admin')
  assert.equal((await get('/orgs', { ...ada, token: again.body.access_token })).body.items.length, 1)
})

test('invitations, which tell what names there are, are 30 a minute from one network', async () => {
  const ada = await registerUser(edge)
  const attempts = await Promise.all(
    Array.from({ length: 33 }, (_, n) =>
      edge.request('POST', `/orgs/${ada.orgId}/invite`, {
        token: ada.token,
        json: { username: `guess-${n}` },
        headers: { 'cf-connecting-ip': '198.51.100.7' },
      }),
    ),
  )
  assert.equal(attempts.filter(({ status }) => status === 429).length, 3)
})
