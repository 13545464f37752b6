import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ORG_EXPORT } from '../../db/queries/export.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { streamExport } from '../../functions/deletion/export-stream.ts'
import { withClient } from '../../worker-runtime/migrate.ts'
import { fromElsewhere, registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { fillTables } from '../support/every-table.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'
import { join, signIn } from '../support/tenants.ts'
import { waitFor } from '../support/wait-for.ts'

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

const get = (path: string, { token }: { token: string }) => edge.request('GET', path, { token })
const post = (path: string, { token }: TestAccount, json: object = {}) =>
  edge.request('POST', path, { token, json, headers: fromElsewhere() })
const deleteOrg = (by: TestAccount, json: object): Promise<Answer> =>
  edge.request('DELETE', '/orgs/me', { token: by.token, json, headers: fromElsewhere() })
const deleteAccount = (by: TestAccount, password = by.password): Promise<Answer> =>
  edge.request('DELETE', '/auth/account', { token: by.token, json: { password }, headers: fromElsewhere() })
const keyOf = async (owner: TestAccount): Promise<string> =>
  (await post('/auth/keys', owner, { name: 'k', scopes: ['jobs:read', 'jobs:submit'] })).body.key

test('an organisation is closed immediately for members, sessions, keys, invitations and webhooks', async () => {
  const [owner, guest] = [await registerUser(edge), await registerUser(edge)]
  const member = await join(edge, owner, guest)
  const key = await keyOf(owner)
  const session = (await signIn(edge, owner)).body
  const link = (await post(`/orgs/${owner.orgId}/invite`, owner)).body
  await post(`/orgs/${owner.orgId}/invite`, owner, { username: (await registerUser(edge)).username })
  const template = { name: 'n', type: 'test', payload: {} }
  const source = (await post('/webhooks/sources', owner, { name: 's', scheme: 'hmac', template })).body
  await post('/schedules', owner, { name: 's', cron: '* * * * *', job: { type: 'test', payload: {} } })
  const right = { name: owner.username, password: owner.password }

  assertProblem(await deleteOrg({ ...owner, token: key }, right), 403, 'forbidden')
  assertProblem(await deleteOrg(member, { ...right, password: member.password }), 403, 'forbidden')
  assertProblem(await deleteOrg(owner, { ...right, name: 'another' }), 422, 'invalid-request', '#/name')
  assertProblem(
    await deleteOrg(owner, { ...right, password: 'wrong' }),
    401,
    'wrong-credentials',
    '#/password',
  )
  assertProblem(await deleteOrg(owner, { password: owner.password }), 422, 'invalid-request', '#/name')
  assert.equal((await get('/orgs/me', owner)).status, 200, 'nothing has happened yet')

  // From the sign-in started above, which continues in another organisation.
  const answer = await deleteOrg({ ...owner, token: session.access_token }, right)
  assert.equal(answer.status, 202, answer.text)
  assert.deepEqual([answer.body.id, answer.body.name], [owner.orgId, owner.username])
  for (const token of [owner.token, member.token, session.access_token, key]) {
    assertProblem(await get('/jobs', { token }), 401, 'unauthenticated')
  }
  assertProblem(await deleteOrg(owner, right), 401, 'unauthenticated')
  const refreshed = await edge.request('POST', '/auth/refresh', {
    json: { refresh_token: session.refresh_token },
  })
  assert.equal(refreshed.body.user.org_id, answer.body.next_org_id)
  assert.deepEqual((await get('/orgs', { token: refreshed.body.access_token })).body.items.length, 1)
  const newcomer = await registerUser(edge)
  const joined = await post(`/orgs/invitations/${link.id}/accept`, newcomer, { token: link.token })
  assertProblem(joined, 404, 'not-found')
  assertProblem(await edge.request('POST', `/hooks/${source.id}`, { json: {} }), 404, 'not-found')
  const again = (await signIn(edge, guest)).body
  assert.notEqual(again.user.org_id, owner.orgId)
  assertProblem(
    await post(`/orgs/${owner.orgId}/switch`, { ...guest, token: again.access_token }),
    404,
    'not-found',
  )
  const schedules = await database.sql('select from schedules where org_id = $1 and next_at is not null', [
    owner.orgId,
  ])
  assert.deepEqual(schedules, [])
})

test('a platform admin sees who deleted an organisation, but cannot enter it', async () => {
  const [owner, operator] = [await registerUser(edge), await registerUser(edge)]
  await database.sql('update users set is_admin = true where id = $1', [operator.userId])
  const admin = { ...operator, token: (await signIn(edge, operator)).body.access_token }
  assert.equal((await deleteOrg(owner, { name: owner.username, password: owner.password })).status, 202)
  const { items } = (await get('/orgs/deletions?limit=100', admin)).body
  const [record] = items.filter(({ id }: { id: string }) => id === owner.orgId)
  assert.deepEqual([record.requested_by, record.removed_at], [owner.userId, null])
  const looked = await edge.request('GET', '/orgs/me', {
    token: admin.token,
    headers: { 'smartqueue-org': owner.orgId },
  })
  assertProblem(looked, 404, 'not-found')
  assertProblem(await get('/orgs/deletions', await registerUser(edge)), 403, 'forbidden')
})

test('an account is deleted with its organisations, unless others would be left without an org_admin', async () => {
  const [owner, guest] = [await registerUser(edge), await registerUser(edge)]
  const member = await join(edge, owner, guest)
  const ownOrg = (await post('/orgs', owner, { name: 'Empty' })).body
  const { orgs } = (await get('/auth/account', owner)).body
  assert.deepEqual(
    orgs.map(({ name, on_deletion }: Record<string, string>) => [name, on_deletion]),
    [
      [owner.username, 'blocks'],
      ['Empty', 'deleted'],
    ],
  )
  assertProblem(await deleteAccount(owner, 'wrong'), 401, 'wrong-credentials', '#/password')
  assertProblem(await deleteAccount({ ...owner, token: await keyOf(owner) }), 403, 'forbidden')
  const refused = await deleteAccount(owner)
  assertProblem(refused, 409, 'last-org-admin')
  assert.match(refused.body.detail, new RegExp(`"${owner.username}"`))

  await edge.request('PATCH', `/orgs/me/members/${member.userId}`, {
    token: owner.token,
    json: { role: 'org_admin' },
  })
  const { access_token: token } = (await post(`/orgs/${owner.orgId}/switch`, member)).body
  const answer = await deleteAccount(owner)
  assert.equal(answer.status, 202, answer.text)
  assert.deepEqual(answer.body.deleted_orgs, [{ id: ownOrg.id, name: 'Empty' }])
  assertProblem(await get('/orgs', owner), 401, 'unauthenticated')
  assertProblem(await signIn(edge, owner), 401, 'wrong-credentials')
  const members = (await get('/orgs/me/members', member)).body.items
  assert.deepEqual(
    members.map(({ user_id }: Record<string, string>) => user_id),
    [member.userId],
  )
  const audit = (await get('/orgs/me/audit?action=account.deleted', { token })).body.items
  assert.deepEqual(
    audit.map(({ actor, actor_id }: Record<string, string>) => [actor, actor_id]),
    [['deleted user', owner.userId]],
  )
  const taken = await edge.request('POST', '/auth/register', {
    json: { username: owner.username, password: owner.password },
    headers: fromElsewhere(),
  })
  assert.equal(taken.status, 201, 'the name is available again')
})

const linesOf = (text: string): Record<string, unknown>[] => {
  assert.ok(text.endsWith('\n'))
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}
const ofType = (lines: Record<string, unknown>[], type: string) => lines.filter((line) => line.type === type)

test('an export has every type of line, contains no secrets, and is marked as complete', async () => {
  const owner = await registerUser(edge)
  await fillTables(database, owner)
  await seedJobs(database.run, owner, [newJob({ fairness_key: 'customer-42' })])
  await database.sql(`update webhook_sources set secret = 'sesame' where org_id = $1`, [owner.orgId])
  await database.sql(`update callback_secrets set secret = 'sesame' where org_id = $1`, [owner.orgId])
  const answer = await edge.request('GET', '/orgs/me/export', { token: owner.token })
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson')
  const lines = linesOf(answer.text)
  const counts = Object.fromEntries(ORG_EXPORT.map(({ type }) => [type, ofType(lines, type).length]))
  assert.deepEqual(lines.at(-1), { type: 'end', counts })
  assert.deepEqual(
    Object.keys(counts).filter((type) => counts[type] === 0),
    [],
  )
  assert.deepEqual([lines[0]?.type, lines[1]?.name], ['export', owner.username])
  assert.doesNotMatch(answer.text, /sesame|secret"|hash"/)
  assert.equal(ofType(lines, 'job').filter((job) => job.fairness_key === 'customer-42').length, 1)
  assert.partialDeepStrictEqual(ofType(lines, 'organisation'), [{ quotas: { weight: 1 } }])
  const [completed] = ofType(lines, 'job').filter(({ status }) => status === 'completed')
  assert.deepEqual(completed?.result, { ok: true })
  const [retrying] = ofType(lines, 'job').filter(({ status }) => status === 'retrying')
  assert.partialDeepStrictEqual(retrying?.unfinished_attempts, [{ attempt: 1, outcome: 'failed' }])
  assertProblem(await get('/orgs/me/export?cursor=job:x', owner), 422, 'invalid-request', '#/cursor')
  assertProblem(await get('/orgs/me/export', { token: await keyOf(owner) }), 403, 'forbidden')
})

test('a person exports their own data', async () => {
  const owner = await registerUser(edge)
  await fillTables(database, owner)
  const answer = await edge.request('GET', '/auth/account/export', { token: owner.token })
  const lines = linesOf(answer.text)
  assert.equal(ofType(lines, 'account')[0]?.username, owner.username)
  assert.deepEqual(lines.at(-1), {
    type: 'end',
    counts: { account: 1, membership: 1, sign_in: 1, api_key: 1, invitation: 0 },
  })
  assert.doesNotMatch(answer.text, /hash|scrypt/)
})

test('a large export comes in pages, and continuing it misses nothing', async () => {
  const owner = await registerUser(edge)
  const payload = { text: Array.from({ length: 20_000 }, (_, n) => n * 7919).join(' ') }
  const jobs = [
    ...Array.from({ length: 1_500 }, () => newJob()),
    // Six megabytes, more than fits into a page.
    ...Array.from({ length: 40 }, () => newJob({ payload })),
  ]
  await seedJobs(database.run, owner, jobs)
  await database.sql(
    `insert into job_logs (org_id, job_id, attempt, at, level, message)
    select $1, id, 1, now(), 'info', 'line ' || n from unnest($2::uuid[]) id, generate_series(1, 1500) n`,
    [owner.orgId, [jobs[3]?.id, jobs[1200]?.id]],
  )
  const seen: Record<string, unknown>[] = []
  let cursor: string | undefined
  let parts = 0
  do {
    const [type = '', after = ''] = cursor?.split(':') ?? []
    const from = cursor === undefined ? undefined : { type, after: after || null }
    const source = { run: database.run, ownerId: owner.orgId, steps: ORG_EXPORT, from, maxPages: 5 }
    const lines = linesOf(await new Response(streamExport(source)).text())
    seen.push(...lines)
    const last = lines.at(-1)
    cursor = last?.type === 'continue' ? String(last.cursor) : undefined
    parts++
  } while (cursor !== undefined)
  assert.ok(parts > 3, `${parts} parts`)
  assert.equal(seen.at(-1)?.type, 'end')
  assert.deepEqual(
    ofType(seen, 'job').map(({ id }) => id),
    jobs.map(({ id }) => id).sort(),
  )
  const logs = ofType(seen, 'job_log').map(({ job_id, message }) => `${job_id} ${message}`)
  assert.deepEqual([logs.length, new Set(logs).size], [3_000, 3_000])
})

/** Sends a request whose transaction has entered and waits for its turn, while something happens. */
const during = async (lock: string, send: () => Promise<Answer>, happens: () => Promise<unknown>) =>
  withClient(database.url, async (client) => {
    await client.query('select pg_advisory_lock(hashtextextended($1, 0))', [lock])
    const sent = send()
    await waitFor('the transaction to wait', async () => {
      const waiting = await database.sql(`select from pg_locks where locktype = 'advisory' and not granted`)
      return waiting.length > 0
    })
    await happens()
    await client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [lock])
    return sent
  })

test('a request that was let in just before its organisation or account was deleted is told that it ended', async () => {
  const closed = async (limited: string, send: (owner: TestAccount) => Promise<Answer>) => {
    const owner = await registerUser(edge)
    const { username: name, password } = owner
    const happens = () => deleteOrg(owner, { name, password })
    return during(`${limited}${owner.orgId}`, () => send(owner), happens)
  }
  const template = { name: 'n', type: 'test', payload: {} }
  const answers = [
    await closed('api-keys', (by) => post('/auth/keys', by, { name: 'k', scopes: ['jobs:read'] })),
    await closed('invitations', (by) => post(`/orgs/${by.orgId}/invite`, by)),
    await closed('webhook-sources', (by) =>
      post('/webhooks/sources', by, { name: 's', scheme: 'hmac', template }),
    ),
  ]
  const [maker, visitor] = [await registerUser(edge), await registerUser(edge)]
  const left = (person: TestAccount, send: () => Promise<Answer>) =>
    during(`orgs${person.userId}`, send, () => deleteAccount(person))
  answers.push(await left(maker, () => post('/orgs', maker, { name: 'o' })))
  for (const answer of answers) assertProblem(answer, 401, 'unauthenticated')
  const signedIn = await left(visitor, () => signIn(edge, visitor))
  assertProblem(signedIn, 401, 'wrong-credentials')
})
