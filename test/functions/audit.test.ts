import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { fromElsewhere, registerUser } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
import { join, signIn } from '../support/tenants.ts'
import { waitFor } from '../support/wait-for.ts'

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

type Entry = { action: string; actor: string | null; actor_id: string | null; ip: string; target: object }

const actionsOf = async (token: string): Promise<string[]> => {
  const { body } = await edge.request('GET', '/orgs/me/audit?limit=200', { token })
  return body.items.map(({ action }: Entry) => action).reverse()
}

test('what is done in an organisation is told in order, with who and from where, and no secret', async () => {
  const ada = await registerUser(edge)
  const { token, orgId } = ada
  const guest = await registerUser(edge)
  const send = (method: string, path: string, json?: object) =>
    edge.request(method, path, {
      token,
      ...(json && { json }),
      headers: { 'cf-connecting-ip': '2001:db8::7' },
    })
  const signedIn = (await signIn(edge, ada)).body
  await edge.request('POST', '/auth/logout', { json: { refresh_token: signedIn.refresh_token } })
  const member = await join(edge, ada, guest)
  const link = (await send('POST', `/orgs/${orgId}/invite`, {})).body
  await send('DELETE', `/orgs/me/invitations/${link.id}`)
  await send('PATCH', `/orgs/me/members/${member.userId}`, { role: 'org_admin' })
  await send('PATCH', `/orgs/me/members/${member.userId}`, { role: 'org_admin' })
  await send('DELETE', `/orgs/me/members/${member.userId}`)
  const key = (await send('POST', '/auth/keys', { name: 'ci', scopes: ['jobs:read'] })).body
  await send('DELETE', `/auth/keys/${key.id}`)
  await send('POST', '/queue/pause', { type: 'test' })
  await send('POST', '/queue/resume', { type: 'test' })
  const id = await jobInState(database.run, ada, 'ready')
  await send('PATCH', `/jobs/${id}/cancel`)
  await send('POST', `/jobs/${id}/retry`)
  const change = { current_password: ada.password, new_password: 'another password' }
  await edge.request('POST', '/auth/password', { token, json: change, headers: fromElsewhere() })

  assert.deepEqual(await actionsOf(token), [
    ...['account.registered', 'account.signed_in', 'account.signed_out'],
    ...['member.invited', 'member.joined', 'org.switched', 'member.invited', 'member.invitation_revoked'],
    ...['member.role_changed', 'member.removed', 'api_key.created', 'api_key.revoked'],
    ...['queue.paused', 'queue.resumed', 'jobs.cancelled', 'jobs.retried', 'account.password_changed'],
  ])
  const { body, text } = await edge.request('GET', '/orgs/me/audit?action=member.removed', { token })
  const [removed] = body.items as Entry[]
  assert.deepEqual(
    [removed?.actor, removed?.actor_id, removed?.ip, removed?.target],
    [ada.username, ada.userId, '2001:db8::7', { role: 'org_admin', user_id: member.userId }],
  )
  const rows = JSON.stringify(await database.sql('select * from audit_log'))
  for (const secret of [
    ada.password,
    token,
    signedIn.refresh_token,
    link.token,
    key.key,
    'another password',
  ]) {
    assert.ok(!rows.includes(secret) && !text.includes(secret))
  }
})

test('a failed sign-in and a reused refresh token are told, and nobody is named who may not have been it', async () => {
  const ada = await registerUser(edge)
  await edge.request('POST', '/auth/login', {
    json: { username: ada.username, password: 'wrong' },
    headers: { 'cf-connecting-ip': '203.0.113.9' },
  })
  await waitFor('the entry', async () => (await actionsOf(ada.token)).includes('account.sign_in_failed'))
  const { body } = await edge.request('GET', '/orgs/me/audit', { token: ada.token })
  const [failed] = body.items as Entry[]
  assert.deepEqual([failed?.actor_id, failed?.ip], [null, '203.0.113.9'])
  const { refresh_token } = (await signIn(edge, ada)).body
  for (let n = 0; n < 2; n++) await edge.request('POST', '/auth/refresh', { json: { refresh_token } })
  assert.equal((await actionsOf(ada.token)).at(-1), 'account.token_reused')
})

test('what a program does is told with its key', async () => {
  const ada = await registerUser(edge)
  const made = await edge.request('POST', '/auth/keys', {
    token: ada.token,
    json: { name: 'ci', scopes: ['queue:manage'] },
  })
  await edge.request('POST', '/queue/pause', { token: made.body.key, json: {} })
  const { body } = await edge.request('GET', '/orgs/me/audit?limit=1', { token: ada.token })
  assert.deepEqual(
    [body.items[0].action, body.items[0].api_key_id, body.items[0].actor_id],
    ['queue.paused', made.body.id, ada.userId],
  )
  assert.ok(body.next_cursor)
})
