import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import type { AutoscaleRow } from '../../db/queries/autoscale.ts'
import { SCHEMA_VERSION } from '../../db/queries/schema-version.ts'
import type { Run } from '../../db/query.ts'
import { describeApi } from '../../functions/api-docs/document.ts'
import { createApp } from '../../functions/app.ts'
import { createAutoscale } from '../../functions/autoscale/snapshot.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'
import { waitFor } from '../support/wait-for.ts'

let migrated: TestDatabase
let empty: TestDatabase
let edge: Edge
before(async () => {
  ;[migrated, empty] = await Promise.all([createTestDatabase(), createTestDatabase({ empty: true })])
  edge = await startEdge({ databaseUrl: migrated.url })
})
after(async () => {
  await edge.stop()
  await Promise.all([migrated.drop(), empty.drop()])
})

test('healthz and readyz answer ok with a migrated database', async () => {
  assert.deepEqual((await edge.request('GET', '/healthz')).body, { status: 'ok' })
  assert.deepEqual((await edge.request('GET', '/readyz')).body, {
    status: 'ok',
    schema_version: SCHEMA_VERSION,
  })
})

test('autoscale answers by the newest snapshot, and 503 while there is none that anything may be scaled by', async () => {
  const absent = await edge.request('GET', '/autoscale')
  assertProblem(absent, 503, 'autoscale-unknown')
  assert.match(absent.body.detail, /Start a worker/)
  assert.ok(Number(absent.headers.get('retry-after')) > 0)

  const take = (age: string) =>
    migrated.sql(
      `insert into autoscale_snapshots (
        taken_at, queued_seconds, running_seconds, arriving_per_second, scheduled_seconds, no_forecast_because, workers,
        slots_per_worker, drain_goal_seconds, lead_seconds, min_workers, max_workers
      )
      values (now() - $1::interval, 1000, 200, 2, 96, 'there is no forecast yet', 2, 10, 60, 75, 1, 5)
      on conflict (only_row) do update set taken_at = excluded.taken_at`,
      [age],
    )
  await take('3 s')
  const { status, body } = await edge.request('GET', '/autoscale')
  assert.equal(status, 200)
  const { age_seconds, taken_at, ...rest } = body
  assert.ok(age_seconds >= 3 && age_seconds < 10, `${age_seconds}`)
  assert.ok(Date.parse(taken_at) < Date.now())
  assert.deepEqual(rest, {
    desired: 3,
    ...{ B: 1200, R: 1120, F: 96, T: 480, needed: { B: 2.5, R: 2.333, F: 0.2 } },
    ...{ workers: 2, min_workers: 1, max_workers: 5, drain_goal_seconds: 60 },
    forecast: {
      ...{ p50_seconds: null, p90_seconds: null, unused_because: 'there is no forecast yet' },
      ...{ scheduled_seconds: 96, lead_seconds: 75 },
    },
  })

  await take('40 s')
  // The isolate asks again after a second.
  const stale = await waitFor('the next look', async () => {
    const answer = await edge.request('GET', '/autoscale')
    return answer.status !== 200 && answer
  })
  assertProblem(stale, 503, 'autoscale-unknown')
  assert.match(stale.body.detail, /4\d seconds old: no leader takes any/)
})

test('a snapshot ages also while nobody can read the next', async () => {
  let nowMs = 0
  let isAway = false
  const row = { age_seconds: 3 } as AutoscaleRow
  const run: Run = async <Row>() => {
    if (isAway) throw new Error('away')
    return [row as Row]
  }
  const autoscale = createAutoscale(run, () => nowMs)
  assert.equal((await autoscale.read()).age_seconds, 3)
  isAway = true
  nowMs = 20_000
  await assert.rejects(autoscale.read(), /away/)
  assert.equal((await autoscale.read()).age_seconds, 23)
  nowMs = 28_000
  await assert.rejects(autoscale.read(), /away/)
  await assert.rejects(autoscale.read(), /31 seconds old/)
})

test('readyz says which version is missing', async () => {
  await migrated.sql('update schema_migrations set version = 1000 where version = $1', [SCHEMA_VERSION])
  await migrated.sql('delete from schema_migrations where version = 1000')
  const answer = await edge.request('GET', '/readyz')
  assertProblem(answer, 503, 'not-ready')
  assert.match(answer.body.detail, /npm run migrate/)
})

test('without a schema readyz says what to do', async () => {
  const bare = await startEdge({ databaseUrl: empty.url })
  const answer = await bare.request('GET', '/readyz')
  assertProblem(answer, 503, 'not-ready')
  assert.match(answer.body.detail, /npm run migrate/)
  assert.equal((await bare.request('GET', '/healthz')).status, 200, 'alive all the same')
  await bare.stop()
})

test('without a database requests answer 503 and when to come back', async () => {
  const cutOff = await startEdge({ databaseUrl: 'postgres://nobody:secret@127.0.0.1:9/none' })
  assertProblem(await cutOff.request('GET', '/readyz'), 503, 'not-ready')
  const json = { username: 'ada', password: 'correct horse' }
  const answer = await cutOff.request('POST', '/auth/register', { json })
  assertProblem(answer, 503, 'database-unavailable')
  assert.ok(Number(answer.headers.get('retry-after')) > 0)
  await cutOff.stop()
})

test('a bad binding answers 500 without telling its value', async () => {
  const misconfigured = await startEdge({ databaseUrl: migrated.url, bindings: { AUTH_KEYS: 'topsecret' } })
  const answer = await misconfigured.request('GET', '/healthz')
  assertProblem(answer, 500, 'internal-error')
  assert.doesNotMatch(answer.text, /topsecret/)
  await misconfigured.stop()
})

const operationsOf = ({ paths }: { paths: Record<string, object> }): string[] =>
  Object.entries(paths)
    .flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`))
    .sort()

test('the OpenAPI document describes every route with its answers', async () => {
  const { status, body } = await edge.request('GET', '/openapi.json')
  assert.equal(status, 200)
  assert.equal(body.openapi, '3.1.0')
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  assert.equal(body.info.version, version)
  assert.deepEqual(operationsOf(body), [
    'delete /auth/account',
    'delete /auth/keys/{id}',
    'delete /auth/sessions',
    'delete /auth/sessions/{id}',
    'delete /callbacks/endpoints/{id}',
    'delete /orgs/me',
    'delete /orgs/me/invitations/{id}',
    'delete /orgs/me/members/{id}',
    'delete /schedules/{id}',
    'delete /webhooks/sources/{id}',
    'get /.well-known/jwks.json',
    'get /analytics/prediction-accuracy',
    'get /analytics/queue-depth',
    'get /analytics/scheduler-leader',
    'get /analytics/scheduling-gain',
    'get /analytics/summary',
    'get /analytics/throughput',
    'get /auth/account',
    'get /auth/account/export',
    'get /auth/keys',
    'get /auth/registration',
    'get /auth/sessions',
    'get /auth/users',
    'get /autoscale',
    'get /callbacks/endpoints',
    'get /callbacks/secret',
    'get /dlq',
    'get /healthz',
    'get /jobs',
    'get /jobs/events',
    'get /jobs/scheduler/leader',
    'get /jobs/stream',
    'get /jobs/types',
    'get /jobs/workers',
    'get /jobs/{id}',
    'get /jobs/{id}/attempts',
    'get /jobs/{id}/callbacks',
    'get /jobs/{id}/explain',
    'get /jobs/{id}/graph',
    'get /jobs/{id}/logs',
    'get /metrics',
    'get /model',
    'get /orgs',
    'get /orgs/deletions',
    'get /orgs/invitations',
    'get /orgs/me',
    'get /orgs/me/audit',
    'get /orgs/me/export',
    'get /orgs/me/invitations',
    'get /orgs/me/members',
    'get /orgs/me/quotas',
    'get /queue',
    'get /readyz',
    'get /schedules',
    'get /schedules/{id}',
    'get /schedules/{id}/ticks',
    'get /webhooks/deliveries/{id}',
    'get /webhooks/sources',
    'get /webhooks/sources/{id}',
    'get /webhooks/sources/{id}/deliveries',
    'patch /callbacks/endpoints/{id}',
    'patch /jobs/{id}/cancel',
    'patch /orgs/me/members/{id}',
    'patch /orgs/{id}/quotas',
    'patch /schedules/{id}',
    'patch /webhooks/sources/{id}',
    'post /auth/keys',
    'post /auth/login',
    'post /auth/logout',
    'post /auth/password',
    'post /auth/refresh',
    'post /auth/register',
    'post /callbacks/endpoints',
    'post /callbacks/endpoints/{id}/test',
    'post /callbacks/secret',
    'post /dlq/replay',
    'post /hooks/{source_id}',
    'post /jobs',
    'post /jobs/batch',
    'post /jobs/bulk/cancel',
    'post /jobs/bulk/retry',
    'post /jobs/stream/tickets',
    'post /jobs/{id}/retry',
    'post /orgs',
    'post /orgs/invitations/{id}/accept',
    'post /orgs/{id}/invite',
    'post /orgs/{id}/switch',
    'post /predictions',
    'post /queue/pause',
    'post /queue/resume',
    'post /schedules',
    'post /schedules/preview',
    'post /schedules/{id}/pause',
    'post /schedules/{id}/resume',
    'post /schedules/{id}/run',
    'post /webhooks/deliveries/{id}/replay',
    'post /webhooks/sources',
    'post /webhooks/sources/{id}/rotate',
  ])
  const submit = body.paths['/jobs'].post
  assert.deepEqual(Object.keys(submit.responses), [
    ...['200', '201', '400', '401', '403', '413', '415', '422', '429', '503'],
  ])
  assert.deepEqual(submit.security, [{ bearer: [] }])
  assert.equal(body.components.securitySchemes.bearer.scheme, 'bearer')
  assert.equal(body.components.schemas.NewJob.additionalProperties, false)
})

/** Other spellings of a route that is described, and the document itself. */
const UNDESCRIBED = [
  'get /openapi.json',
  'post /webhooks/sources/deliveries/{id}/replay',
  'post /webhooks/sources/{source_id}/deliveries/{id}/replay',
]

test('the OpenAPI document is of the routes as they are now, and of all of them', async () => {
  const app = createApp()
  const answer = await edge.request('GET', '/openapi.json')
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.text, JSON.stringify(describeApi(app)))
  assert.equal((await edge.request('GET', '/openapi.json/')).text, answer.text)
  const routed = app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`)
  assert.deepEqual([...new Set(routed)].sort(), [...operationsOf(answer.body), ...UNDESCRIBED].sort())
})

test('the root is the dashboard, and the documentation is a page', async () => {
  for (const path of ['/', '/docs']) {
    const { status, headers } = await edge.request('GET', path)
    assert.deepEqual([status, headers.get('content-type')], [200, 'text/html; charset=utf-8'], path)
  }
})

test('every answer carries a request id', async () => {
  assert.match((await edge.request('GET', '/healthz')).headers.get('x-request-id') ?? '', /^[\w-]{36}$/)
  assert.match((await edge.request('GET', '/openapi.json')).headers.get('x-request-id') ?? '', /^[\w-]{36}$/)
  const answer = await edge.request('GET', '/nowhere')
  assert.equal(answer.headers.get('x-request-id'), answer.body.request_id)
})
