import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { importJWK, SignJWT } from 'jose'
import { findCallbackAddress } from '../../db/queries/callback-delivery.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { isAtLeast, type Role } from '../../db/rules/roles.ts'
import { PERMISSIONS, type Permission } from '../../functions/auth/permissions.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
import { lead } from '../support/jobs.ts'
import { type Cast, makeCast } from '../support/tenants.ts'

/** Routes that need no token. A new one must be named here on purpose. */
const PUBLIC = [
  ...['GET /healthz', 'GET /readyz', 'GET /metrics', 'GET /autoscale', 'GET /.well-known/jwks.json'],
  'GET /auth/registration',
  ...['POST /auth/register', 'POST /auth/login', 'POST /auth/refresh', 'POST /auth/logout'],
  // Whoever sends there proves themselves by a signature.
  'POST /hooks/{source_id}',
]

type Operation = { method: string; path: string; permission: Permission | undefined }

let database: TestDatabase
let edge: Edge
let cast: Cast
let operations: Operation[]
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  await lead(database.run)
  cast = await makeCast(edge, database)
  await database.run(findCallbackAddress(cast.owner.orgId, 'https://example.com/'))
  const { body } = await edge.request('GET', '/openapi.json')
  operations = Object.entries<Record<string, { 'x-permission'?: Permission }>>(body.paths).flatMap(
    ([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        permission: operation['x-permission'],
      })),
  )
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const nameOf = ({ method, path }: Operation): string => `${method} ${path}`

/** Ids that belong to the organisation of the cast, made anew for each request: many can be used once only. */
const IDS: Record<string, () => Promise<string>> = {
  '/jobs/{id}': () => jobInState(database.run, cast.owner, 'ready'),
  '/jobs/{id}/logs': () => jobInState(database.run, cast.owner, 'ready'),
  '/jobs/{id}/attempts': () => jobInState(database.run, cast.owner, 'ready'),
  '/jobs/{id}/explain': () => jobInState(database.run, cast.owner, 'ready'),
  '/jobs/{id}/graph': () => jobInState(database.run, cast.owner, 'ready'),
  '/jobs/{id}/cancel': () => jobInState(database.run, cast.owner, 'ready'),
  '/jobs/{id}/retry': () => jobInState(database.run, cast.owner, 'failed'),
  '/schedules/{id}': () => makeSchedule(),
  '/schedules/{id}/ticks': () => makeSchedule(),
  '/schedules/{id}/run': () => makeSchedule(),
  '/schedules/{id}/pause': () => makeSchedule(),
  '/schedules/{id}/resume': () => makeSchedule(),
  '/jobs/{id}/callbacks': () => jobInState(database.run, cast.owner, 'completed'),
  '/callbacks/endpoints/{id}': async () => (await makeEndpoint()).body.id,
  '/callbacks/endpoints/{id}/test': async () => (await makeEndpoint()).body.id,
  '/auth/keys/{id}': async () => (await makeKey(cast.owner.token)).body.id,
  '/auth/sessions/{id}': () => makeSession(),
  '/orgs/me/members/{id}': async () => cast.member.userId,
  '/orgs/me/invitations/{id}': async () => (await invite()).body.id,
  '/orgs/invitations/{id}/accept': async () => (await invite()).body.id,
  '/orgs/{id}/invite': async () => cast.owner.orgId,
  '/orgs/{id}/switch': async () => cast.owner.orgId,
  '/orgs/{id}/quotas': async () => cast.owner.orgId,
  '/webhooks/sources/{id}': () => makeSource(),
  '/webhooks/sources/{id}/rotate': () => makeSource(),
  '/webhooks/sources/{id}/deliveries': () => makeSource(),
  '/webhooks/deliveries/{id}': () => makeDelivery(),
  '/webhooks/deliveries/{id}/replay': () => makeDelivery(),
}

const makeKey = (token: string): Promise<Answer> =>
  edge.request('POST', '/auth/keys', { token, json: { name: 'k', scopes: ['jobs:read'] } })

const makeSession = async (): Promise<string> => {
  const [row] = await database.sql<{ id: string }>(
    `insert into refresh_families (id, user_id, org_id, secret_hash) values (gen_random_uuid(), $1, $2, '') returning id`,
    [cast.owner.userId, cast.owner.orgId],
  )
  return row?.id ?? ''
}

const makeEndpoint = async (): Promise<Answer> => {
  // There may be only so many.
  await database.sql('delete from callback_endpoints')
  const json = { url: 'https://example.com/' }
  return edge.request('POST', '/callbacks/endpoints', { token: cast.owner.token, json })
}

const invite = (): Promise<Answer> =>
  edge.request('POST', `/orgs/${cast.owner.orgId}/invite`, { token: cast.owner.token, json: {} })

const JOB = { name: 'n', type: 'test', payload: {} }
const SCHEDULE = { name: 'n', cron: '0 0 * * *', job: { type: 'test', payload: {} } }

const makeSchedule = async (): Promise<string> =>
  (await edge.request('POST', '/schedules', { token: cast.owner.token, json: SCHEDULE })).body.id

const SOURCE = { name: 'n', scheme: 'hmac', template: JOB }

const makeSource = async (): Promise<string> => {
  const [row] = await database.sql<{ id: string }>(
    `insert into webhook_sources (org_id, id, name, scheme, secret, template)
    values ($1, gen_random_uuid(), 'n', 'hmac', 'secret', $2)
    returning id`,
    [cast.owner.orgId, JOB],
  )
  return row?.id ?? ''
}

const makeDelivery = async (): Promise<string> => {
  const [row] = await database.sql<{ id: string }>(
    `insert into webhook_deliveries (org_id, id, source_id, status, headers, body)
    values ($1, gen_random_uuid(), $2, 'filtered', '{}', '{}')
    returning id`,
    [cast.owner.orgId, await makeSource()],
  )
  return row?.id ?? ''
}

/** Bodies that a route takes. Those not named take an empty object, or none. */
const BODIES: Record<string, unknown> = {
  'POST /jobs': JOB,
  'POST /jobs/batch': { jobs: [JOB] },
  'POST /predictions': JOB,
  'POST /jobs/bulk/cancel': { filter: { name: 'none' } },
  'POST /jobs/bulk/retry': { filter: { name: 'none' } },
  'POST /dlq/replay': { fingerprint: '0'.repeat(32) },
  'POST /schedules': SCHEDULE,
  'POST /schedules/preview': { cron: '0 0 * * *' },
  'POST /auth/keys': { name: 'k', scopes: ['jobs:read'] },
  'POST /auth/password': { current_password: 'wrong', new_password: 'correct horse' },
  'POST /orgs': { name: 'Another' },
  'DELETE /orgs/me': { name: 'wrong', password: 'wrong' },
  'DELETE /auth/account': { password: 'wrong' },
  'POST /webhooks/sources': SOURCE,
  'PATCH /webhooks/sources/{id}': { enabled: true },
  'PATCH /orgs/me/members/{id}': { role: 'user' },
  'PATCH /orgs/{id}/quotas': { running_jobs: null },
  'POST /callbacks/endpoints': { url: 'https://example.com/walk' },
  'PATCH /callbacks/endpoints/{id}': { disabled: true },
}

const send = async (operation: Operation, token: string | undefined, id?: string): Promise<Answer> => {
  const { method, path } = operation
  const made = id ?? (await IDS[path]?.()) ?? ''
  const json = BODIES[nameOf(operation)] ?? (method === 'GET' || method === 'DELETE' ? undefined : {})
  return edge.request(method, path.replace('{id}', made), {
    ...(json !== undefined && { json }),
    ...(token !== undefined && { token }),
  })
}

test('every route needs a permission of the table, or is public on purpose', () => {
  assert.ok(operations.length > 30, 'the document was read')
  for (const operation of operations) {
    const name = nameOf(operation)
    assert.notEqual(PUBLIC.includes(name), operation.permission !== undefined, name)
    if (operation.permission) assert.ok(operation.permission in PERMISSIONS, name)
    if (operation.path.includes('{id}')) assert.ok(IDS[operation.path], `the walk has an id for ${name}`)
  }
})

test('without a token, and with one that has expired, every route but the public ones answers 401', async () => {
  const issuedAt = Math.floor(Date.now() / 1000) - 601
  const expired = await new SignJWT({ org: cast.owner.orgId, role: 'admin', sid: crypto.randomUUID() })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'test' })
    .setIssuer('smartqueue')
    .setAudience('smartqueue')
    .setSubject(cast.owner.userId)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + 600)
    .sign(await importJWK(edge.authKeys.keys[0] ?? {}, 'EdDSA'))
  for (const operation of operations) {
    if (PUBLIC.includes(nameOf(operation))) continue
    for (const token of [undefined, expired]) {
      const answer = await send(operation, token, crypto.randomUUID())
      assert.equal(answer.status, 401, `${nameOf(operation)}: ${answer.text}`)
    }
  }
})

/** What a member of the role gets: refused, or let in, whatever then comes of it. */
const assertRole = (operation: Operation, role: Role, answer: Answer): void => {
  const { permission } = operation
  if (!permission) return
  const isAllowed = isAtLeast(role, PERMISSIONS[permission].role)
  const what = `${role}: ${nameOf(operation)} (${permission}): ${answer.status} ${answer.text}`
  if (isAllowed) assert.ok(answer.status < 500 && answer.status !== 403, what)
  else assert.equal(answer.status, 403, what)
  // Of one's own organisation everything is found, and the only 401 is that of a wrong password.
  if (answer.status === 404) assert.ok(EXPECTED_404.includes(nameOf(operation)), what)
  if (answer.status === 401) assert.ok(ASKS_PASSWORD.includes(nameOf(operation)), what)
}

const ASKS_PASSWORD = ['POST /auth/password', 'DELETE /auth/account']

/** Routes whose resource is somebody else's, even within the organisation: a link is not for those who have no token. */
const EXPECTED_404 = ['POST /orgs/invitations/{id}/accept']

/** The API key and the sign-in under test belong to the org_admin: for others they do not exist. */
const OF_OWNER = ['DELETE /auth/keys/{id}', 'DELETE /auth/sessions/{id}']

test('a user may what the table says, and nothing else', async () => {
  for (const operation of operations) {
    if (!operation.permission || nameOf(operation) === 'DELETE /orgs/me/members/{id}') continue
    const answer = await send(operation, cast.member.token)
    if (OF_OWNER.includes(nameOf(operation))) assert.equal(answer.status, 404, nameOf(operation))
    else assertRole(operation, 'user', answer)
  }
  const removal = { method: 'DELETE', path: '/orgs/me/members/{id}', permission: 'org:leave' as const }
  assert.equal((await send(removal, cast.member.token, cast.owner.userId)).status, 403)
})

const SUBMITTING = [
  'POST /jobs',
  'POST /jobs/batch',
  'POST /schedules/{id}/run',
  'POST /callbacks/endpoints/{id}/test',
]

test('an admin may everything, in all organisations', async () => {
  for (const operation of operations) {
    if (!operation.permission || nameOf(operation) === 'DELETE /orgs/me/members/{id}') continue
    const { method, path } = operation
    const id = (await IDS[path]?.()) ?? ''
    const json = method === 'GET' || method === 'DELETE' ? undefined : (BODIES[nameOf(operation)] ?? {})
    const answer = await edge.request(method, path.replace('{id}', id), {
      token: cast.admin.token,
      ...(json !== undefined && { json }),
      ...(operation.permission !== 'account' && { headers: { 'smartqueue-org': cast.owner.orgId } }),
    })
    const name = nameOf(operation)
    // An admin can manage the jobs of others, but submits only where they are a member.
    if (SUBMITTING.includes(name)) {
      assert.equal(answer.status, 403, `${name}: ${answer.text}`)
    } else if (OF_OWNER.includes(name)) assert.equal(answer.status, 404, answer.text)
    else assertRole(operation, 'admin', answer)
  }
})

test('an org_admin may what the table says, and nothing else', async () => {
  for (const operation of operations) {
    if (!operation.permission || nameOf(operation) === 'DELETE /orgs/me/members/{id}') continue
    assertRole(operation, 'org_admin', await send(operation, cast.owner.token))
  }
  const removal = { method: 'DELETE', path: '/orgs/me/members/{id}', permission: 'org:leave' as const }
  assert.equal((await send(removal, cast.owner.token)).status, 204)
})

test('to another organisation every id answers 404, as one that does not exist does', async () => {
  for (const operation of operations) {
    if (!operation.permission || !operation.path.includes('{id}')) continue
    if (operation.permission === 'platform') continue
    const foreign = await send(operation, cast.stranger.token)
    const unknown = await send(operation, cast.stranger.token, crypto.randomUUID())
    const what = `${nameOf(operation)}: ${foreign.text}`
    assert.deepEqual([foreign.status, unknown.status], [404, 404], what)
    const withoutId = ({ body }: Answer) => String(body.detail).replace(/[0-9a-f-]{36}/g, 'ID')
    assert.equal(withoutId(foreign), withoutId(unknown), what)
  }
})

test('to another organisation no list shows anything', async () => {
  const lists = [
    ...[
      '/jobs',
      '/dlq',
      '/schedules',
      '/webhooks/sources',
      '/callbacks/endpoints',
      '/auth/keys',
      '/analytics/prediction-accuracy',
    ],
    ...['/orgs/me/members', '/orgs/me/invitations', '/orgs/me/audit'],
  ]
  for (const path of lists) {
    const { status, text } = await edge.request('GET', path, { token: cast.stranger.token })
    assert.equal(status, 200, text)
    for (const id of [cast.owner.orgId, cast.owner.userId, cast.member.userId])
      assert.ok(!text.includes(id), path)
  }
})
