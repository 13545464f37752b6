import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { importJWK, SignJWT } from 'jose'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'
import { openStream } from '../support/stream.ts'
import { type Cast, join, makeCast, signIn } from '../support/tenants.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let edge: Edge
let cast: Cast
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  cast = await makeCast(edge, database)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const ticketFor = async (
  { token }: Pick<TestAccount, 'token'>,
  headers: Record<string, string> = {},
): Promise<string> => {
  const answer = await edge.request('POST', '/jobs/stream/tickets', { token, headers })
  assert.equal(answer.status, 201, answer.text)
  const lifeMs = Date.parse(answer.body.expires_at) - Date.now()
  assert.ok(lifeMs > 20_000 && lifeMs <= 30_000)
  return answer.body.ticket
}

test('a ticket opens one socket, in its own organisation, and no second one', async () => {
  const ada = await registerUser(edge)
  const ticket = await ticketFor(ada)
  const client = await openStream(edge, { ticket })
  assert.equal(client.protocol, 'smartqueue.v1')
  await client.frame('hello')
  await seedJobs(database.run, ada, [newJob({ name: 'hers' })])
  await seedJobs(database.run, cast.owner, [newJob({ name: 'not hers' })])
  await client.until('the event', () => client.told().length > 0)
  assert.deepEqual(client.told(), ['ready hers'])
  const again = await openStream(edge, { ticket })
  assert.equal((await again.closed).code, 4401)
  const forged = await openStream(edge, { ticket: ticket.replace(ada.orgId, cast.owner.orgId) })
  assert.equal((await forged.closed).code, 4401, 'another organisation knows nothing of it')
  const nonsense = await openStream(edge, { ticket: 'nonsense' })
  assert.match((await nonsense.closed).reason, /POST \/jobs\/stream\/tickets/)
  client.close()
})

test('of two who show one ticket at the same time one is let in', async () => {
  const ticket = await ticketFor(cast.owner)
  const clients = await Promise.all([1, 2, 3].map(() => openStream(edge, { ticket })))
  const fates = await Promise.all(
    clients.map((client) =>
      Promise.race([client.frame('hello').then(() => 'let in'), client.closed.then(({ code }) => code)]),
    ),
  )
  assert.deepEqual(fates.sort(), [4401, 4401, 'let in'])
  for (const client of clients) client.close()
})

test('a token or a key in the header is enough; without any, and with a key of another scope, there is none', async () => {
  const { token } = cast.owner
  const makeKey = async (scopes: string[]): Promise<{ id: string; key: string }> => {
    const made = await edge.request('POST', '/auth/keys', { token, json: { name: 'k', scopes } })
    assert.equal(made.status, 201, made.text)
    return made.body
  }
  const reader = await makeKey(['jobs:read'])
  const client = await openStream(edge, { token: reader.key })
  assert.equal((await client.frame('hello')).expires_at, null, 'the key has no end')
  await edge.request('DELETE', `/auth/keys/${reader.id}`, { token })
  assert.equal((await client.closed).code, 4401, 'but was revoked')
  const submitter = await makeKey(['jobs:submit'])
  await assert.rejects(openStream(edge, { token: submitter.key }), /answered 403/)
  await assert.rejects(openStream(edge, {}), /answered 401/)
  assertProblem(await edge.request('GET', '/jobs/events'), 401, 'unauthenticated')
})

test('whoever is removed from the organisation hears no more, at once', async () => {
  const member = await join(edge, cast.owner, await registerUser(edge))
  const [client, other] = await Promise.all(
    [member, cast.owner].map(({ token }) => openStream(edge, { token })),
  )
  assert.ok(client && other)
  const { token } = cast.owner
  const beganAt = performance.now()
  await edge.request('DELETE', `/orgs/me/members/${member.userId}`, { token })
  const { code, reason } = await client.closed
  assert.ok(performance.now() - beganAt < 2_000)
  assert.equal(code, 4403)
  assert.match(reason, /member/)
  await seedJobs(database.run, cast.owner, [newJob({ name: 'secret' })])
  await other.until('the event', () => other.told().includes('ready secret'))
  assert.deepEqual(client.events(), [])
  await assert.rejects(openStream(edge, { token: member.token }), /answered 401/)
  other.close()
})

test('with the sign-in ends its stream, and no other', async () => {
  const ada = await registerUser(edge)
  const [one, two] = [(await signIn(edge, ada)).body, (await signIn(edge, ada)).body]
  const [ended, stays] = await Promise.all(
    [one, two].map((session) => openStream(edge, { token: session.access_token })),
  )
  assert.ok(ended && stays)
  await edge.request('POST', '/auth/logout', { json: { refresh_token: one.refresh_token } })
  assert.equal((await ended.closed).code, 4401)
  await seedJobs(database.run, ada, [newJob({ name: 'still there' })])
  await stays.until('the event', () => stays.told().length === 1)
  const { items } = (await edge.request('GET', '/auth/sessions', { token: two.access_token })).body
  const { id } = items.find(({ current }: { current: boolean }) => current)
  await edge.request('DELETE', `/auth/sessions/${id}`, { token: ada.token })
  assert.equal((await stays.closed).code, 4401, 'from the list of sign-ins, too')
})

test('with the token ends its stream, that of its ticket too, and a new one goes on where it was', async () => {
  const ada = await registerUser(edge)
  const expires = Math.floor(Date.now() / 1000) + 3
  const token = await new SignJWT({
    org: ada.orgId,
    role: 'org_admin',
    sid: ada.sessionId,
    secret: ada.secret,
  })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'test' })
    .setIssuer('smartqueue')
    .setAudience('smartqueue')
    .setSubject(ada.userId)
    .setIssuedAt(expires - 600)
    .setExpirationTime(expires)
    .sign(await importJWK(edge.authKeys.keys[0] ?? {}, 'EdDSA'))
  const clients = [
    await openStream(edge, { token }),
    await openStream(edge, { ticket: await ticketFor({ token }) }),
  ]
  for (const client of clients) {
    assert.equal(Date.parse((await client.frame('hello')).expires_at), expires * 1000)
    assert.equal((await client.closed).code, 4401)
  }
  const late = Date.now() - expires * 1000
  assert.ok(late >= 0 && late < 2_000, `${late} ms`)
  await seedJobs(database.run, ada, [newJob({ name: 'meanwhile' })])
  const renewed = await openStream(edge, { token: ada.token, query: { cursor: clients[0]?.cursor() ?? '' } })
  await renewed.until('the event', () => renewed.told().length === 1)
  renewed.close()
})

test('an admin follows the organisation that the header names, by ticket too', async () => {
  const { token } = cast.admin
  const headers = { 'smartqueue-org': cast.owner.orgId }
  const clients = [
    await openStream(edge, { token, headers }),
    await openStream(edge, { ticket: await ticketFor({ token }, headers) }),
  ]
  await seedJobs(database.run, cast.owner, [newJob({ name: 'seen by an admin' })])
  for (const client of clients) {
    await client.until('the event', () => client.told().includes('ready seen by an admin'))
    client.close()
  }
  const unknown = { 'smartqueue-org': crypto.randomUUID() }
  assertProblem(
    await edge.request('POST', '/jobs/stream/tickets', { token, headers: unknown }),
    404,
    'not-found',
  )
  await assert.rejects(
    openStream(edge, { token: cast.member.token, headers: { 'smartqueue-org': cast.stranger.orgId } }),
    /answered 403/,
  )
})

test('what does not fit is refused before there is a socket, with what to do', async () => {
  const { token } = cast.owner
  const plain = await edge.request('GET', '/jobs/stream', { token })
  assertProblem(plain, 426, 'upgrade-required')
  assert.match(plain.body.detail, /\/jobs\/events/)
  for (const query of [
    'cursor=zzz',
    'status=gone',
    'job_id=1',
    'topics=weather',
    'topics=logs',
    'color=red',
  ]) {
    assertProblem(await edge.request('GET', `/jobs/events?${query}`, { token }), 422, 'invalid-request')
    await assert.rejects(
      openStream(edge, { token, query: Object.fromEntries(new URLSearchParams(query)) }),
      /answered 422/,
    )
  }
  const headers = { 'last-event-id': 'zzz' }
  assertProblem(await edge.request('GET', '/jobs/events/', { token, headers }), 422, 'invalid-request')
})

test('nobody may follow more than fifty times', async () => {
  const ada = await registerUser(edge)
  const clients = await Promise.all(Array.from({ length: 50 }, () => openStream(edge, { token: ada.token })))
  await assert.rejects(openStream(edge, { token: ada.token }), /answered 409.*limit-reached.*50/)
  const refused = await openStream(edge, { ticket: await ticketFor(ada) })
  assert.equal((await refused.closed).code, 1013)
  await seedJobs(database.run, ada, [newJob({ name: 'for all' })])
  for (const client of clients) {
    await client.until('the event', () => client.told().length === 1)
    client.close()
  }
  await Promise.all(clients.map(({ closed }) => closed))
  const next = await openStream(edge, { token: ada.token })
  next.close()
})

test('a client of server-sent events that goes leaves no socket behind', async () => {
  const ada = await registerUser(edge)
  const headers = { authorization: `Bearer ${ada.token}` }
  const follow = async () => {
    const abort = new AbortController()
    const response = await fetch(`${edge.url}/jobs/events`, { headers, signal: abort.signal })
    await response.body?.getReader().read()
    abort.abort()
    return response.status
  }
  // As many as one may have open at a time.
  const statuses = await Promise.all(Array.from({ length: 50 }, follow))
  assert.deepEqual(new Set(statuses), new Set([200]))
  const next = await waitFor('room for one more', async () => {
    // That a client has gone is noticed when something is written to it.
    await seedJobs(database.run, ada, [newJob()])
    return openStream(edge, { token: ada.token }).catch(() => undefined)
  })
  next.close()
})
