import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'
import { join } from '../support/tenants.ts'
import { ANY_JOB, deliver, SIGNERS, send, type TestSource, webhooksOf } from '../support/webhooks.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
let hooks: ReturnType<typeof webhooksOf>
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes(['test', 'http'].map((type) => ({ type, payload_schema: {} }))))
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
  hooks = webhooksOf(edge, ada)
})
after(async () => {
  await edge?.stop()
  await database?.drop()
})

const SOURCES = '/webhooks/sources'
const ask = (method: string, path: string, json?: unknown, account = ada): Promise<Answer> =>
  edge.request(method, path, { token: account.token, ...(json !== undefined && { json }) })
const create = (source: Record<string, unknown>) =>
  ask('POST', SOURCES, { name: 'n', scheme: 'hmac', template: ANY_JOB, ...source })

const countOf = async (table: string, where: string, id: string): Promise<number> => {
  const [row] = await database.sql<{ n: number }>(
    `select count(*)::int as n from ${table} where ${where} = $1`,
    [id],
  )
  return row?.n ?? -1
}
const jobsOf = ({ id }: TestSource) => countOf('jobs', `triggered_by ->> 'source_id'`, id)
const journalOf = ({ id }: TestSource) => countOf('webhook_deliveries', 'source_id', id)

test('a source is made, listed, changed and deleted', async () => {
  const filter = { path: '$.ref', eq: 'refs/heads/main' }
  const made = await create({ name: '  Pushes ', scheme: 'github', filter })
  assert.equal(made.status, 201, made.text)
  const { secret, warnings, ...source } = made.body
  assert.deepEqual(warnings, [])
  assert.equal(made.headers.get('location'), `${SOURCES}/${source.id}`)
  assert.deepEqual(
    [
      source.name,
      source.scheme,
      source.url,
      source.enabled,
      source.filter,
      source.template,
      source.created_by,
    ],
    ['Pushes', 'github', `${edge.url}/hooks/${source.id}`, true, filter, ANY_JOB, ada.userId],
  )
  assert.deepEqual(source.verification, {
    signature_header: 'x-hub-signature-256',
    prefix: 'sha256=',
    algorithm: 'sha256',
    encoding: 'hex',
    content: '{body}',
    timestamp_header: null,
    tolerance_seconds: null,
    id_header: 'x-github-delivery',
    id_path: null,
    type_header: 'x-github-event',
    type_path: null,
  })
  assert.match(secret, /^[0-9a-f]{64}$/)
  assert.deepEqual([source.secret_hint, source.previous_expires_at], [`…${secret.slice(-4)}`, null])
  assert.deepEqual((await ask('GET', `${SOURCES}/${source.id}`)).body, source)

  const changed = await ask('PATCH', `${SOURCES}/${source.id}`, { name: 'All', filter: null, enabled: false })
  assert.deepEqual(
    [changed.body.name, changed.body.filter, changed.body.enabled, changed.body.template],
    ['All', null, false, ANY_JOB],
  )
  const [first, second] = [await ask('GET', `${SOURCES}?limit=1`), await create({})]
  assert.equal(first.body.items[0].id, source.id)
  const next = await ask(
    'GET',
    `${SOURCES}?limit=1&cursor=${(await ask('GET', `${SOURCES}?limit=1`)).body.next_cursor}`,
  )
  assert.deepEqual([next.body.items[0].id, next.body.next_cursor], [second.body.id, null])

  assert.equal((await ask('DELETE', `${SOURCES}/${source.id}`)).status, 204)
  assertProblem(await ask('GET', `${SOURCES}/${source.id}`), 404, 'not-found')
  assertProblem(await ask('DELETE', `${SOURCES}/${source.id}`), 404, 'not-found')
})

test('a secret is shown once, given or made, and never again', async () => {
  const given = `whsec_${btoa('x'.repeat(32))}`
  const source = (await create({ scheme: 'standard-webhooks', secret: given })).body
  assert.equal(source.secret, given)
  const rotated = await ask('POST', `${SOURCES}/${source.id}/rotate`, { keep_previous_seconds: 60 })
  assert.match(rotated.body.secret, /^whsec_/)
  assert.notEqual(rotated.body.secret, given)
  const left = Date.parse(rotated.body.previous_expires_at) - Date.now()
  assert.ok(left > 30_000 && left <= 61_000, `${left} ms`)
  const answers = await Promise.all([
    ask('GET', SOURCES),
    ask('GET', `${SOURCES}/${source.id}`),
    ask('PATCH', `${SOURCES}/${source.id}`, { name: 'x' }),
    ask('GET', '/orgs/me/audit?limit=200'),
  ])
  for (const { status, text } of answers) {
    assert.equal(status, 200)
    for (const secret of [given, rotated.body.secret])
      assert.ok(!text.includes(secret.slice('whsec_'.length)))
  }
  const rotate = (json: object) => ask('POST', `${SOURCES}/${source.id}/rotate`, json)
  assertProblem(await rotate({ secret: rotated.body.secret }), 422, 'invalid-request', '#/secret')
  assertProblem(await rotate({ secret: 'whsec_short' }), 422, 'invalid-request', '#/secret')
  assertProblem(
    await rotate({ keep_previous_seconds: 2_592_001 }),
    422,
    'invalid-request',
    '#/keep_previous_seconds',
  )
  assert.equal((await rotate({ keep_previous_seconds: 0 })).body.previous_expires_at, null)
  assertProblem(await ask('POST', `${SOURCES}/${randomUUID()}/rotate`), 404, 'not-found')
})

test('the scheme hmac says how it verifies, with its defaults', async () => {
  const { verification } = (await create({})).body
  assert.deepEqual(
    [verification.signature_header, verification.prefix, verification.content, verification.id_header],
    ['x-signature', 'sha256=', '{body}', 'x-event-id'],
  )
  const settings = {
    signature_header: 'X-Mac',
    algorithm: 'sha512',
    timestamp_header: 'X-Time',
    id_path: '$.id',
  }
  const source = (await create({ verification: settings })).body
  assert.deepEqual(
    [source.verification.signature_header, source.verification.prefix, source.verification.content],
    ['x-mac', 'sha512=', '{timestamp}.{body}'],
  )
  assert.deepEqual(
    [
      source.verification.timestamp_header,
      source.verification.tolerance_seconds,
      source.verification.id_path,
    ],
    ['x-time', 300, '$.id'],
  )
  const short = { verification: { timestamp_header: 'x-time', tolerance_seconds: 30 } }
  const shortened = await ask('PATCH', `${SOURCES}/${source.id}`, short)
  assert.equal(shortened.body.verification.tolerance_seconds, 30)
  const changed = await ask('PATCH', `${SOURCES}/${source.id}`, { verification: {} })
  assert.equal(changed.body.verification.signature_header, 'x-signature')
})

test('what cannot be read is refused with the place, when it is saved', async () => {
  const job = ANY_JOB
  const bad: [Record<string, unknown>, string][] = [
    [{ name: '' }, '#/name'],
    [{ scheme: 'md5' }, '#/scheme'],
    [{ secret: 'short' }, '#/secret'],
    [{ secret: 'x'.repeat(501) }, '#/secret'],
    [{ scheme: 'standard-webhooks', secret: 'not base64!' }, '#/secret'],
    [{ template: undefined }, '#/template'],
    [{ template: 'x' }, '#/template'],
    [{ template: [] }, '#/template'],
    [{ template: { ...job, name: '$.a costs' } }, '#/template/name'],
    [{ template: { ...job, name: '$env.HOME' } }, '#/template/name'],
    [{ template: { ...job, payload: { a: ['{{ nothing'] } } }, '#/template/payload/a/0'],
    [{ template: { ...job, payload: { a: 'x'.repeat(70_000) } } }, '#/template'],
    [{ filter: 'x' }, '#/filter'],
    [{ filter: {} }, '#/filter/path'],
    [{ filter: { path: '$.a', is: 1 } }, '#/filter/is'],
    [{ filter: { all: [{ path: '$body.a', eq: 1 }] } }, '#/filter/all/0/path'],
    [{ verification: { signature_header: 'a b' } }, '#/verification/signature_header'],
    [{ verification: { algorithm: 'md5' } }, '#/verification/algorithm'],
    [{ verification: { id_path: '$headers.a' } }, '#/verification/id_path'],
    [{ verification: { id_path: '$.a', id_header: 'x-id' } }, '#/verification/id_path'],
    [{ verification: { content: 'no body' } }, '#/verification/content'],
    [{ verification: { content: '{body}{secret}' } }, '#/verification/content'],
    [{ verification: { content: '{timestamp}{body}' } }, '#/verification/content'],
    [{ verification: { content: '{body}', timestamp_header: 'x-time' } }, '#/verification/content'],
    [{ verification: { content: '{id}{body}', id_path: '$.id' } }, '#/verification/content'],
    [{ verification: { tolerance_seconds: 60 } }, '#/verification/tolerance_seconds'],
    [
      { verification: { timestamp_header: 'x-time', tolerance_seconds: 0 } },
      '#/verification/tolerance_seconds',
    ],
    [
      { verification: { timestamp_header: 'x-time', tolerance_seconds: 3601 } },
      '#/verification/tolerance_seconds',
    ],
    [{ scheme: 'github', verification: { id_header: 'x-id' } }, '#/verification'],
    [{ colour: 'red' }, '#/colour'],
  ]
  for (const [source, pointer] of bad) assertProblem(await create(source), 422, 'invalid-request', pointer)
  const source = await hooks.make({ scheme: 'stripe' })
  const change = (json: object) => ask('PATCH', `${SOURCES}/${source.id}`, json)
  assertProblem(await change({}), 422, 'invalid-request')
  assertProblem(await change({ secret: 'x'.repeat(20) }), 422, 'invalid-request', '#/secret')
  assertProblem(await change({ scheme: 'hmac' }), 422, 'invalid-request', '#/scheme')
  assertProblem(await change({ verification: {} }), 422, 'invalid-request', '#/verification')
  assertProblem(await change({ template: { name: '$.a costs' } }), 422, 'invalid-request', '#/template/name')
})

test('a template whose jobs would be quarantined is saved, and told what will not fit', async () => {
  const misfits: [Record<string, unknown>, string][] = [
    [{}, '#/template/name'],
    [{ ...ANY_JOB, colour: 'red' }, '#/template/colour'],
    [{ ...ANY_JOB, payload: 'text' }, '#/template/payload'],
    [{ ...ANY_JOB, priority: 'urgent' }, '#/template/priority'],
    [{ ...ANY_JOB, priority: '$.p ?? "urgent"' }, '#/template/priority'],
    [{ ...ANY_JOB, retry: { max_attempts: 0 } }, '#/template/retry/max_attempts'],
    [{ ...ANY_JOB, run_in_seconds: -1 }, '#/template/run_in_seconds'],
  ]
  for (const [template, pointer] of misfits) {
    const { status, body } = await create({ template })
    assert.deepEqual([status, body.warnings[0].pointer], [201, pointer])
  }
  const payload_schema = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] }
  await database.run(registerJobTypes([{ type: 'strict', payload_schema }]))
  const unknown = { ...ANY_JOB, type: 'strct', payload: { url: '$.url' } }
  const { body } = await create({ template: unknown })
  assert.equal(body.warnings[0].pointer, '#/template/type')
  assert.match(body.warnings[0].detail, /"strct" is not a type that workers handle/)
  const incomplete = { ...ANY_JOB, type: 'strict', payload: { ur: 'https://a.example/' } }
  const [warning] = (await create({ template: incomplete })).body.warnings
  assert.deepEqual(warning, { pointer: '#/template/payload/url', detail: 'is required' })
  const source = await hooks.make({ template: { ...ANY_JOB, type: '$.type', payload: '$.payload' } })
  assert.deepEqual(source.warnings, [])
  const changed = await ask('PATCH', `${SOURCES}/${source.id}`, { template: unknown })
  assert.equal(changed.body.warnings.length, 1)
})

test('an organisation has up to a hundred sources', async () => {
  const { token, orgId } = await registerUser(edge)
  await database.sql(
    `insert into webhook_sources (org_id, id, name, scheme, secret, template)
    select $1, gen_random_uuid(), 'n', 'hmac', 'x', '{}' from generate_series(1, 99)`,
    [orgId],
  )
  const json = { name: 'n', scheme: 'hmac', template: ANY_JOB }
  assert.equal((await edge.request('POST', SOURCES, { token, json })).status, 201)
  assertProblem(await edge.request('POST', SOURCES, { token, json }), 409, 'limit-reached')
})

test('to another organisation nothing of it exists', async () => {
  const source = await hooks.make()
  const { delivery_id } = (await send(edge, source, {})).body
  const attempts: [string, string, unknown?][] = [
    ['GET', `${SOURCES}/${source.id}`],
    ['PATCH', `${SOURCES}/${source.id}`, { name: 'mine' }],
    ['DELETE', `${SOURCES}/${source.id}`],
    ['POST', `${SOURCES}/${source.id}/rotate`],
    ['GET', `${SOURCES}/${source.id}/deliveries`],
    ['GET', `/webhooks/deliveries/${delivery_id}`],
    ['POST', `/webhooks/deliveries/${delivery_id}/replay`],
    ['POST', `${SOURCES}/deliveries/${delivery_id}/replay`],
    ['POST', `${SOURCES}/${source.id}/deliveries/${delivery_id}/replay`],
  ]
  for (const [method, path, json] of attempts) {
    assertProblem(await ask(method, path, json, bob), 404, 'not-found')
  }
  assert.deepEqual((await ask('GET', SOURCES, undefined, bob)).body.items, [])
  assertProblem(
    await edge.request('POST', `/webhooks/deliveries/${delivery_id}/replay`),
    401,
    'unauthenticated',
  )
})

test('a user looks, and only an org_admin changes and replays, on each of its paths', async () => {
  const source = await hooks.make()
  const { delivery_id } = (await send(edge, source, {})).body
  const member = await join(edge, ada, await registerUser(edge))
  for (const path of [SOURCES, `${SOURCES}/${source.id}`, `/webhooks/deliveries/${delivery_id}`]) {
    assert.equal((await ask('GET', path, undefined, member)).status, 200, path)
  }
  for (const path of [
    `/webhooks/deliveries/${delivery_id}/replay`,
    `${SOURCES}/deliveries/${delivery_id}/replay`,
    `${SOURCES}/${source.id}/deliveries/${delivery_id}/replay`,
  ]) {
    assertProblem(await ask('POST', path, { dry_run: true }, member), 403, 'forbidden')
    assert.equal((await ask('POST', path, { dry_run: true })).status, 200, path)
  }
  const other = await hooks.make()
  assertProblem(
    await ask('POST', `${SOURCES}/${other.id}/deliveries/${delivery_id}/replay`),
    404,
    'not-found',
  )
})

test('the journal is listed newest first, by status and in pages, and outlives the source', async () => {
  const source = await hooks.make({ filter: { path: '$.n', lt: 3 } })
  for (const n of [0, 1, 2, 3]) await send(edge, source, { n }, { id: n === 1 ? '0' : String(n) })
  await deliver(edge, source, { body: '{}', headers: {} })
  const list = async (query = '') => (await ask('GET', `${SOURCES}/${source.id}/deliveries${query}`)).body
  const statuses = ['rejected', 'filtered', 'accepted', 'duplicate', 'accepted']
  assert.deepEqual(
    (await list()).items.map(({ status }: { status: string }) => status),
    statuses,
  )
  const page = await list('?limit=2')
  const rest = await list(`?limit=5&cursor=${page.next_cursor}`)
  assert.deepEqual(
    [...page.items, ...rest.items].map(({ status }) => status),
    statuses,
  )
  assert.equal((await list('?status=accepted')).items.length, 2)
  assertProblem(await ask('GET', `${SOURCES}/${source.id}/deliveries?status=lost`), 422, 'invalid-request')
  const [newest] = page.items
  assert.ok(!('body' in newest) && !('headers' in newest))
  await ask('DELETE', `${SOURCES}/${source.id}`)
  assertProblem(await ask('GET', `${SOURCES}/${source.id}/deliveries`), 404, 'not-found')
  assert.equal((await hooks.delivery(newest.id)).status, 'rejected')
  assertProblem(await hooks.replay(newest.id), 404, 'not-found')
})

test('a delivery that has made a job makes another when it is replayed', async () => {
  const source = await hooks.make({ template: { ...ANY_JOB, idempotency_key: 'once' } })
  const first = await send(edge, source, { n: 1 }, { id: 'e' })
  const replayed = await hooks.replay(first.body.delivery_id)
  assert.equal(replayed.status, 202, replayed.text)
  assert.equal(replayed.body.status, 'accepted')
  assert.equal(replayed.headers.get('location'), `/jobs/${replayed.body.job_id}`)
  assert.notEqual(replayed.body.job_id, first.body.job_id)
  const row = await hooks.delivery(replayed.body.delivery_id)
  assert.deepEqual(
    [row.replay_of, row.event_id, row.job_id, row.body],
    [first.body.delivery_id, 'e', replayed.body.job_id, { n: 1 }],
  )
  const again = await hooks.replay(replayed.body.delivery_id)
  assert.equal(again.body.status, 'accepted')
  assert.equal((await hooks.delivery(again.body.delivery_id)).replay_of, first.body.delivery_id)
  assert.equal(await jobsOf(source), 3)
  assert.equal((await send(edge, source, { n: 1 }, { id: 'e' })).body.job_id, first.body.job_id)
})

test('one that was quarantined or filtered becomes the first job of its event, and only one', async () => {
  const template = { ...ANY_JOB, name: '$.title' }
  for (const id of ['known', undefined]) {
    const source = await hooks.make({ template, filter: { path: '$.skip', ne: true } })
    const signed = await SIGNERS.hmac(source.secret, '{"name":"x","skip":false}', { id: id ?? '' })
    const quarantined = (await deliver(edge, source, signed)).body.delivery_id
    assert.equal((await hooks.replay(quarantined)).body.status, 'quarantined', 'nothing has changed')
    await hooks.change(source, { template: { ...template, name: '$.name' } })
    const replayed = await Promise.all(Array.from({ length: 5 }, () => hooks.replay(quarantined)))
    const statuses = replayed.map(({ body }) => body.status).sort()
    assert.deepEqual(statuses, ['accepted', ...Array.from({ length: 4 }, () => 'duplicate')])
    assert.equal(await jobsOf(source), 1)
    if (id) assert.equal((await deliver(edge, source, signed)).body.status, 'duplicate')
    await hooks.change(source, { filter: { path: '$.name', eq: 'y' } })
    const filtered = (await send(edge, source, { name: 'z' })).body
    assert.equal(filtered.status, 'filtered')
    assert.equal((await hooks.replay(filtered.delivery_id)).body.status, 'filtered')
    await hooks.change(source, { filter: null })
    assert.equal((await hooks.replay(filtered.delivery_id)).body.status, 'accepted')
  }
})

test('a dry run shows the job that it would make, also of a draft, and stores nothing', async () => {
  const source = await hooks.make({ template: { ...ANY_JOB, name: '$.title' } })
  const quarantined = (await send(edge, source, { name: 'x', secret: 's' })).body.delivery_id
  const before = [await jobsOf(source), await journalOf(source)]
  const plain = (await hooks.replay(quarantined, { dry_run: true })).body
  assert.deepEqual(
    [plain.dry_run, plain.status, plain.job, plain.delivery_id],
    [true, 'quarantined', null, null],
  )
  assert.deepEqual(plain.errors, [{ pointer: '#/name', detail: 'needs $.title, which is not there' }])
  const template = { name: '$.name', type: 'test', payload: { kept: '$.secret' }, run_in_seconds: 60 }
  for (const json of [{ template }, { template, dry_run: true }]) {
    const { status, body } = await hooks.replay(quarantined, json)
    assert.deepEqual([status, body.dry_run, body.status, body.reason], [200, true, 'accepted', null])
    assert.deepEqual(
      [body.job.name, body.job.payload, body.job.priority, body.job.retry.max_attempts],
      ['x', { kept: '[redacted]' }, 'normal', 3],
    )
    assert.ok(Date.parse(body.job.run_at) > Date.now() + 30_000)
    assert.ok(body.prediction.p50_ms > 0)
  }
  const skipped = await hooks.replay(quarantined, { filter: { path: '$.name', eq: 'y' } })
  assert.deepEqual([skipped.body.status, skipped.body.job], ['filtered', null])
  const misfit = (await hooks.replay(quarantined, { template: { ...template, colour: 1 } })).body
  assert.deepEqual([misfit.status, misfit.errors[0].pointer], ['quarantined', '#/colour'])
  assertProblem(
    await hooks.replay(quarantined, { template, dry_run: false }),
    422,
    'invalid-request',
    '#/dry_run',
  )
  assert.deepEqual([await jobsOf(source), await journalOf(source)], before)
  await hooks.change(source, { template })
  const { job_id } = (await hooks.replay(quarantined)).body
  const known = (await hooks.replay(quarantined, { dry_run: true })).body
  assert.deepEqual([known.status, known.job_id, known.job.name], ['duplicate', job_id, 'x'])
})

test('what was rejected is not replayed, not even to try', async () => {
  const source = await hooks.make()
  await deliver(edge, source, { body: '{}', headers: {} })
  const [rejected] = await hooks.deliveries(source)
  assertProblem(await hooks.replay(String(rejected?.id)), 409, 'not-replayable')
  assertProblem(await hooks.replay(String(rejected?.id), { dry_run: true }), 409, 'not-replayable')
  assertProblem(await hooks.replay(randomUUID()), 404, 'not-found')
})

test('a replay needs no body, whatever its headers say of one', async () => {
  const source = await hooks.make()
  const { delivery_id } = (await send(edge, source, {})).body
  const path = `/webhooks/deliveries/${delivery_id}/replay`
  const { token } = ada
  const headers = { 'content-type': 'application/json' }
  assert.equal((await edge.request('POST', path, { token, headers })).status, 202)
  assert.equal((await edge.request('POST', path, { token, body: '' })).status, 202)
  assertProblem(await edge.request('POST', path, { token, body: '{' }), 400, 'malformed-body')
  const plain = { token, body: '{}', headers: { 'content-type': 'text/plain' } }
  assertProblem(await edge.request('POST', path, plain), 415, 'unsupported-media-type')
  const large = { token, body: ' '.repeat(300_000) }
  assertProblem(await edge.request('POST', path, large), 413, 'body-too-large')
})

test('a body that was no JSON stays in quarantine when it is replayed', async () => {
  const source = await hooks.make()
  const { delivery_id, reason } = (await send(edge, source, 'not json')).body
  const { body } = await hooks.replay(delivery_id)
  assert.deepEqual([body.status, body.reason], ['quarantined', reason])
})

test('each change is in the audit log, with who and without secrets', async () => {
  const eve = await registerUser(edge)
  const theirs = webhooksOf(edge, eve)
  const source = await theirs.make({ name: 'audited' })
  await theirs.change(source, { name: 'audited too', enabled: true })
  await ask('POST', `${SOURCES}/${source.id}/rotate`, { keep_previous_seconds: 5 }, eve)
  const { delivery_id } = (await send(edge, source, {})).body
  const { body: replayed } = await theirs.replay(delivery_id)
  await theirs.replay(delivery_id, { dry_run: true })
  await ask('DELETE', `${SOURCES}/${source.id}`, undefined, eve)
  const { items } = (await ask('GET', '/orgs/me/audit', undefined, eve)).body
  const told = items.filter(({ action }: { action: string }) => action.startsWith('webhook_')).reverse()
  const named = { source_id: source.id, name: 'audited too', scheme: 'hmac' }
  assert.deepEqual(
    told.map(({ action, target, actor_id }: Record<string, unknown>) => [
      action,
      target,
      actor_id === eve.userId,
    ]),
    [
      ['webhook_source.created', { ...named, name: 'audited' }, true],
      ['webhook_source.changed', { ...named, fields: ['name', 'enabled'] }, true],
      ['webhook_source.rotated', { ...named, keep_previous_seconds: 5 }, true],
      [
        'webhook_delivery.replayed',
        {
          delivery_id,
          source_id: source.id,
          as: replayed.delivery_id,
          status: replayed.status,
          job_id: replayed.job_id,
        },
        true,
      ],
      ['webhook_source.deleted', named, true],
    ],
  )
})

test('an API key with the scope manages sources', async () => {
  const key = await ask('POST', '/auth/keys', { name: 'ci', scopes: ['webhooks:read', 'webhooks:manage'] })
  const json = { name: 'by key', scheme: 'hmac', template: ANY_JOB }
  const made = await edge.request('POST', SOURCES, { token: key.body.key, json })
  assert.equal(made.status, 201, made.text)
  assert.equal(
    (await edge.request('DELETE', `${SOURCES}/${made.body.id}`, { token: key.body.key })).status,
    204,
  )
})

const isMissing = (command: string): boolean => spawnSync(command, ['--help']).error !== undefined
const missing = ['curl', 'openssl', 'base64', 'od'].find(isMissing)

test('what docs/webhooks.md says works when pasted into a shell', {
  skip: missing && `${missing} is missing`,
}, async () => {
  const text = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
  const commands = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block).join('\n')
  const { stdout } = await promisify(execFile)('sh', [
    '-euc',
    commands.replace('http://127.0.0.1:8787', edge.url),
  ])
  const statuses = [...stdout.matchAll(/"status":("?\w+"?)/g)].map(([, status]) => status)
  assert.deepEqual(statuses, [
    // GitHub, Stripe, Standard Webhooks, hmac.
    ...['"accepted"', '"accepted"', '"accepted"', '"accepted"'],
    // A forged one, and the journal of it.
    ...['401', '"rejected"'],
    // One that does not fit, the journal of it, a draft for it, and its replay.
    ...['"quarantined"', '"quarantined"', '"accepted"', '"accepted"'],
  ])
  assert.match(stdout, /[0-9a-f]{64}\s*$/, 'and the next secret')
})
