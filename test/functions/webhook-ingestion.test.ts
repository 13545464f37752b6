import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { setQuotas } from '../../db/queries/quotas.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { type CountingGateway, startCountingGateway } from '../support/counting-gateway.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
import { assertProblem } from '../support/problem.ts'
import { waitFor } from '../support/wait-for.ts'
import { ANY_JOB, deliver, nowS, SIGNERS, send, webhooksOf } from '../support/webhooks.ts'

let database: TestDatabase
let gateway: CountingGateway
let edge: Edge
let ada: TestAccount
let hooks: ReturnType<typeof webhooksOf>
before(async () => {
  database = await createTestDatabase()
  const strict = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
  await database.run(
    registerJobTypes([
      { type: 'test', payload_schema: {} },
      { type: 'strict', payload_schema: strict },
    ]),
  )
  gateway = await startCountingGateway(asLogin(database.url, 'functions'))
  edge = await startEdge({ databaseUrl: database.url, bindings: gateway.bindings })
  ada = await registerUser(edge)
  hooks = webhooksOf(edge, ada)
})
after(async () => {
  await edge?.stop()
  await gateway?.stop()
  await database?.drop()
})

const jobOf = async ({ body }: Answer, account = ada): Promise<Answer['body']> => {
  const answer = await edge.request('GET', `/jobs/${body.job_id}`, { token: account.token })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

const jobsOf = async (sourceId: string): Promise<number> => {
  const [row] = await database.sql<{ n: number }>(
    `select count(*)::int as n from jobs where triggered_by ->> 'source_id' = $1`,
    [sourceId],
  )
  return row?.n ?? -1
}

const assertStatus = (answer: Answer, status: number, outcome: string): void => {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.status, outcome, answer.text)
}

const EVENT = { id: 'evt_1', type: 'invoice.paid', customer: { name: 'Grüße' }, lines: [1, 2] }

test('what each provider signs becomes a job, and what was changed on the way does not', async () => {
  for (const scheme of ['github', 'stripe', 'standard-webhooks', 'hmac'] as const) {
    const source = await hooks.make({ scheme })
    const body = JSON.stringify(EVENT)
    const signed = await SIGNERS[scheme](source.secret, body)
    const accepted = await deliver(edge, source, signed)
    assertStatus(accepted, 202, 'accepted')
    assert.equal(accepted.headers.get('location'), `/jobs/${accepted.body.job_id}`)
    const job = await jobOf(accepted)
    assert.deepEqual(
      [job.status, job.payload, job.created_by, job.triggered_by],
      [
        'ready',
        { event: EVENT },
        null,
        { kind: 'webhook', source_id: source.id, delivery_id: accepted.body.delivery_id },
      ],
    )
    const altered = { ...signed, body: body.replace('Grüße', 'Gruße') }
    const rejected = await deliver(edge, source, altered)
    assertProblem(rejected, 401, 'webhook-rejected')
    assert.equal(rejected.body.detail, 'The signature does not match.')
    assertProblem(await deliver(edge, source, { body, headers: {} }), 401, 'webhook-rejected')
    const wrong = await SIGNERS[scheme](
      scheme === 'standard-webhooks' ? `whsec_${btoa('x'.repeat(32))}` : 'other',
      body,
    )
    assertProblem(await deliver(edge, source, wrong), 401, 'webhook-rejected')
    assert.equal(await jobsOf(source.id), 1)
  }
})

test('a delivery that is too old, or from the future, is rejected although it is signed', async () => {
  for (const scheme of ['stripe', 'standard-webhooks'] as const) {
    const source = await hooks.make({ scheme })
    const body = JSON.stringify(EVENT)
    for (const at of [nowS() - 301, nowS() + 320]) {
      const stale = await deliver(edge, source, await SIGNERS[scheme](source.secret, body, { at }))
      assertProblem(stale, 401, 'webhook-rejected')
      assert.match(stale.body.detail, /more than 300 seconds/)
    }
    const fresh = await SIGNERS[scheme](source.secret, body, { at: nowS() - 290 })
    assertStatus(await deliver(edge, source, fresh), 202, 'accepted')
  }
})

test('an hmac source with a timestamp header rejects deliveries replayed after the tolerance', async () => {
  const verification = {
    timestamp_header: 'x-time',
    tolerance_seconds: 60,
    content: '{id}.{timestamp}.{body}',
  }
  const source = await hooks.make({ verification })
  const body = JSON.stringify(EVENT)
  const sign = (time: number | string, id = 'recorded') => ({
    body,
    headers: {
      'x-time': String(time),
      'x-event-id': id,
      'x-signature': createHmac('sha256', source.secret).update(`${id}.${time}.${body}`).digest('hex'),
    },
  })
  const recorded = sign(nowS() - 30)
  assertStatus(await deliver(edge, source, recorded), 202, 'accepted')
  assertStatus(await deliver(edge, source, recorded), 200, 'duplicate')
  const { 'x-time': _, ...timeless } = recorded.headers
  const rejected: [typeof recorded | { body: string; headers: typeof timeless }, RegExp][] = [
    [sign(nowS() - 61), /more than 60 seconds/],
    [sign(nowS() + 80), /more than 60 seconds/],
    [sign(Date.now()), /not a Unix timestamp in seconds/],
    [{ body, headers: timeless }, /x-time has no timestamp/],
    [{ body, headers: { ...recorded.headers, 'x-time': String(nowS()) } }, /does not match/],
    [{ body, headers: { ...recorded.headers, 'x-event-id': 'another' } }, /does not match/],
  ]
  for (const [delivery, reason] of rejected) {
    const answer = await deliver(edge, source, delivery)
    assertProblem(answer, 401, 'webhook-rejected')
    assert.match(answer.body.detail, reason)
  }
  assert.equal(await jobsOf(source.id), 1)
  assert.equal((await hooks.deliveries(source, '?status=rejected')).length, rejected.length)
})

test('with warm caches an accepted delivery is one round trip to the database', async () => {
  const source = await hooks.make()
  const counts: number[] = []
  for (let n = 0; n < 5; n++) {
    await send(edge, source, { n })
    await quiet()
    const before = gateway.trips.length
    assertStatus(await send(edge, source, { n }), 202, 'accepted')
    const trips = gateway.trips.slice(before)
    counts.push(trips.length)
    const storing = trips.filter((texts) =>
      texts.some((text) => /insert into smartqueue\.(jobs|webhook_deliveries)/.test(text)),
    )
    assert.equal(storing.length, 1, 'job and journal are one transaction')
    assert.equal(storing[0]?.length, 3, 'with the statement that lets it in')
  }
  // What predictions look at is refreshed beside it now and then, and nobody waits for that.
  assert.equal(Math.min(...counts), 1, counts.join())
})

/** Statements about webhooks so far. Others may run at any time: predictions refresh their inputs in the background. */
const webhookStatements = (): number =>
  gateway.trips.flat().filter((text) => /receiving_source|webhook_/.test(text)).length

/** Nothing is under way any more. */
const quiet = async (): Promise<void> => {
  let [seen, since] = [-1, 0]
  await waitFor('no more round trips', () => {
    if (gateway.trips.length !== seen) [seen, since] = [gateway.trips.length, performance.now()]
    return performance.now() - since > 60
  })
}

test('an event that comes again is answered with the first job, also when fifty come at once', async () => {
  for (const scheme of ['github', 'stripe', 'standard-webhooks', 'hmac'] as const) {
    const source = await hooks.make({ scheme })
    const signed = await SIGNERS[scheme](source.secret, JSON.stringify(EVENT), { id: 'same' })
    const first = await deliver(edge, source, signed)
    const again = await deliver(edge, source, signed)
    assertStatus(again, 200, 'duplicate')
    assert.equal(again.body.job_id, first.body.job_id)
    assert.notEqual(again.body.delivery_id, first.body.delivery_id)
    assert.equal(await jobsOf(source.id), 1)
  }
  const source = await hooks.make()
  const signed = await SIGNERS.hmac(source.secret, JSON.stringify(EVENT), { id: 'at-once' })
  const answers = await Promise.all(Array.from({ length: 50 }, () => deliver(edge, source, signed)))
  const statuses = answers.map(({ status }) => status).sort()
  assert.deepEqual(statuses, [...Array.from({ length: 49 }, () => 200), 202])
  assert.equal(new Set(answers.map(({ body }) => body.job_id)).size, 1)
  assert.equal(await jobsOf(source.id), 1)
  const journal = await hooks.deliveries(source, '?limit=200')
  assert.equal(journal.filter(({ status }) => status === 'duplicate').length, 49)
  assert.equal(journal.filter(({ status }) => status === 'accepted').length, 1)
})

test('events are known for eight days, and of one source', async () => {
  const source = await hooks.make()
  const first = await send(edge, source, EVENT, { id: 'kept' })
  const [key] = await database.sql<{ days: number }>(
    `select extract(epoch from expires_at - created_at) / 86400 as days from idempotency_keys where key = $1`,
    [`hook:${source.id}:kept`],
  )
  assert.equal(Number(key?.days).toFixed(3), '8.000')
  const other = await hooks.make()
  assertStatus(await send(edge, other, EVENT, { id: 'kept' }), 202, 'accepted')
  await database.sql(`update idempotency_keys set expires_at = now() where key = $1`, [
    `hook:${source.id}:kept`,
  ])
  const anew = await send(edge, source, EVENT, { id: 'kept' })
  assertStatus(anew, 202, 'accepted')
  assert.notEqual(anew.body.job_id, first.body.job_id)
})

test('an id of any length is one, and without an id nothing is a duplicate', async () => {
  const source = await hooks.make({ verification: { id_path: '$.id' } })
  for (const id of ['x'.repeat(100_000), 42, '9007199254740993']) {
    const event = typeof id === 'string' && /^\d+$/.test(id) ? `{"id":${id}}` : JSON.stringify({ id })
    const first = await send(edge, source, event)
    assertStatus(first, 202, 'accepted')
    const again = await send(edge, source, event)
    assertStatus(again, 200, 'duplicate')
    assert.equal(again.body.job_id, first.body.job_id)
  }
  for (const event of [{}, { id: null }, { id: '' }, { id: {} }]) {
    assertStatus(await send(edge, source, event), 202, 'accepted')
    assertStatus(await send(edge, source, event), 202, 'accepted')
  }
})

test('of what the filter does not take nothing is made', async () => {
  const filter = {
    all: [
      { path: '$event.type', eq: 'push' },
      { path: '$.ref', starts_with: 'refs/heads/' },
      { not: { path: '$headers.x-skip', exists: true } },
    ],
  }
  const source = await hooks.make({ scheme: 'github', filter })
  const push = async (event: object, headers: Record<string, string> = {}) => {
    const signed = await SIGNERS.github(source.secret, JSON.stringify(event))
    return deliver(edge, source, { ...signed, headers: { ...signed.headers, ...headers } })
  }
  assertStatus(await push({ ref: 'refs/heads/main' }), 202, 'accepted')
  for (const answer of [
    await push({ ref: 'refs/tags/v1' }),
    await push({}),
    await push({ ref: 'refs/heads/main' }, { 'x-github-event': 'ping' }),
    await push({ ref: 'refs/heads/main' }, { 'x-skip': '1' }),
  ]) {
    assertStatus(answer, 200, 'filtered')
    assert.deepEqual([answer.body.job_id, answer.body.reason], [null, null])
  }
  assert.equal(await jobsOf(source.id), 1)
  assert.equal((await hooks.deliveries(source, '?status=filtered')).length, 4)
})

test('every field of a job can come from the event', async () => {
  const parent = await jobInState(database.run, ada, 'ready')
  const template = {
    name: 'sync {{ $.customer.name }}',
    type: '$.kind',
    payload: { all: '$', first: '$.lines[0]', missing: '$.none ?? []', literal: '$$.x', by: '$event.source' },
    priority: '$.urgency ?? "low"',
    resources: { cpu_units: '$.cpu', memory_mb: 128 },
    tags: ['$event.type', 'n{{ $.lines[1] }}'],
    timeout_seconds: '$.timeout',
    retry: { max_attempts: '$.tries ?? 7' },
    run_at: '$.when',
    deadline: '$.due',
    on_parent_failure: 'wait',
    callback_url: 'https://example.com/{{ $event.id }}',
    fairness_key: '{{ $.customer.name }}',
    idempotency_key: 'sync-{{ $event.id }}',
    depends_on: ['$.parent'],
  }
  const source = await hooks.make({
    name: 'Billing',
    template,
    verification: { id_path: '$.id', type_path: '$.type' },
  })
  const event = {
    ...EVENT,
    kind: 'test',
    cpu: 0.5,
    timeout: 60,
    parent,
    when: '2999-01-01T00:00:00+01:00',
    due: '2999-01-02T00:00:00Z',
  }
  const accepted = await send(edge, source, event)
  assertStatus(accepted, 202, 'accepted')
  const job = await jobOf(accepted)
  assert.deepEqual(
    {
      name: job.name,
      type: job.type,
      payload: job.payload,
      priority: job.priority,
      resources: job.resources,
      tags: job.tags,
      timeout_seconds: job.timeout_seconds,
      max_attempts: job.retry.max_attempts,
      run_at: job.run_at,
      deadline: job.deadline,
      on_parent_failure: job.on_parent_failure,
      callback_url: job.callback_url,
      fairness_key: job.fairness_key,
      depends_on: job.depends_on,
      status: job.status,
    },
    {
      name: 'sync Grüße',
      type: 'test',
      payload: { all: event, first: 1, missing: [], literal: '$.x', by: 'Billing' },
      priority: 'low',
      resources: { cpu_units: 0.5, memory_mb: 128 },
      tags: ['invoice.paid', 'n2'],
      timeout_seconds: 60,
      max_attempts: 7,
      run_at: '2998-12-31T23:00:00.000Z',
      deadline: '2999-01-02T00:00:00.000Z',
      on_parent_failure: 'wait',
      callback_url: 'https://example.com/evt_1',
      fairness_key: 'Grüße',
      depends_on: [parent],
      status: 'blocked',
    },
  )
})

test('times may count from the receipt, and a field that becomes null is left out', async () => {
  const source = await hooks.make({
    template: {
      ...ANY_JOB,
      run_in_seconds: '$.delay ?? null',
      deadline_in_seconds: 3600,
      timeout_seconds: '$.none ?? null',
    },
  })
  const { received_at } = await hooks.delivery((await send(edge, source, { delay: 60 })).body.delivery_id)
  const job = await jobOf(await send(edge, source, { delay: 90 }))
  const wait = (time: string) => (Date.parse(time) - Date.parse(received_at)) / 1000
  assert.ok(Math.abs(wait(job.run_at) - 90) < 10, job.run_at)
  assert.ok(Math.abs(wait(job.deadline) - 3600) < 10, job.deadline)
  assert.deepEqual([job.status, job.timeout_seconds], ['pending', null])
  assert.equal((await jobOf(await send(edge, source, {}))).status, 'ready')
})

test('what makes no job is kept in quarantine with the reason, and nothing is lost', async () => {
  const template = {
    name: '$.name',
    type: '$.type ?? "strict"',
    payload: { n: '$.n' },
    priority: '$.p ?? "high"',
  }
  const source = await hooks.make({ template })
  const cases: [unknown, RegExp][] = [
    [{ n: 1 }, /^#\/name needs \$\.name, which is not there$/],
    [{ name: '', n: 1 }, /^#\/name /],
    [{ name: 'x', n: 1, p: 'urgent' }, /^#\/priority /],
    [{ name: 'x', n: 'one' }, /^#\/payload\/n must be/],
    [{ name: 'x', n: 1, type: 'nobody' }, /"nobody" is not a type that workers handle \(strict, test\)/],
    [{ name: null, n: 1 }, /^#\/name is required/],
    ['no json', /not JSON in UTF-8/],
    ['payload=%7B%7D', /not JSON in UTF-8/],
    ['"text"', /no JSON object or list/],
    ['', /not JSON in UTF-8/],
    [`${'['.repeat(33)}${']'.repeat(33)}`, /nested deeper than 32 levels/],
    ['{"a":{"b":"\\u0000"}}', /#\/a\/b contains a NUL character/],
  ]
  for (const [event, reason] of cases) {
    const answer = await send(edge, source, event)
    assertStatus(answer, 202, 'quarantined')
    assert.match(answer.body.reason, reason)
    assert.equal(answer.body.job_id, null)
    const kept = await hooks.delivery(answer.body.delivery_id)
    assert.deepEqual([kept.status, kept.reason, kept.body], ['quarantined', answer.body.reason, event])
  }
  assert.equal(await jobsOf(source.id), 0)
  assert.equal((await hooks.deliveries(source, '?status=quarantined')).length, cases.length)
})

test('bytes that are no UTF-8 are quarantined as far as they can be read', async () => {
  const source = await hooks.make()
  const { createHmac } = await import('node:crypto')
  const body = new Uint8Array([0x22, 0xff, 0x00, 0x22])
  const headers = { 'x-signature': createHmac('sha256', source.secret).update(body).digest('hex') }
  const answer = await edge.request('POST', `/hooks/${source.id}`, { body, headers })
  assertStatus(answer, 202, 'quarantined')
  assert.equal((await hooks.delivery(answer.body.delivery_id)).body, '"\ufffd\ufffd"')
})

test('a body of 32 levels and one of 256 KiB pass, and a larger one is refused and told of', async () => {
  const source = await hooks.make({ template: { ...ANY_JOB, payload: { size: '$.size' } } })
  const deep = `{"size":1,"a":${'['.repeat(31)}${']'.repeat(31)}}`
  assertStatus(await send(edge, source, deep), 202, 'accepted')
  const filling = (bytes: number) => `{"size":2,"a":"${'x'.repeat(bytes - 17)}"}`
  assert.equal(filling(262_144).length, 262_144)
  assertStatus(await send(edge, source, filling(262_144)), 202, 'accepted')
  assertProblem(await send(edge, source, filling(262_145)), 413, 'body-too-large')
  const [newest] = await hooks.deliveries(source)
  assert.deepEqual([newest?.status, newest?.reason], ['rejected', 'A body may have 256 KiB.'])
  // The whole of it as payload, and the rest of the job, are more than a job may have.
  const whole = await hooks.make()
  const answer = await send(edge, whole, filling(262_144))
  assertStatus(answer, 202, 'quarantined')
  assert.match(answer.body.reason, /job of more than 256 KiB/)
})

test('numbers that a double would change come through as text', async () => {
  const source = await hooks.make()
  const answer = await send(
    edge,
    source,
    '{"id":9007199254740993,"n":12345678901234567890,"f":0.5,"e":1e999,"ok":1e20}',
  )
  assert.deepEqual((await jobOf(answer)).payload.event, {
    id: '9007199254740993',
    n: '12345678901234567890',
    f: 0.5,
    e: '1e999',
    ok: 1e20,
  })
})

test('over a quota the sender is asked to come again, and is then accepted', async () => {
  const bob = await registerUser(edge)
  const theirs = webhooksOf(edge, bob)
  const source = await theirs.make()
  await database.run(setQuotas(bob.orgId, { queued_jobs: 0 }))
  const signed = await SIGNERS.hmac(source.secret, '{"n":1}', { id: 'patient' })
  const refused = await deliver(edge, source, signed)
  assertProblem(refused, 429, 'quota-exceeded')
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  const [kept] = await theirs.deliveries(source)
  assert.equal(kept?.status, 'quarantined')
  assert.match(String(kept?.reason), /may have 0 jobs queued or running/)
  await database.run(setQuotas(bob.orgId, { queued_jobs: null }))
  assertStatus(await deliver(edge, source, signed), 202, 'accepted')
  const replayed = await theirs.replay(String(kept?.id))
  assertStatus(replayed, 200, 'duplicate')
  assert.equal(await jobsOf(source.id), 1)
})

test('what the journal keeps counts for the bytes of the day; beyond these it keeps no bodies, and nothing is lost', async () => {
  const bob = await registerUser(edge)
  const theirs = webhooksOf(edge, bob)
  const template = { ...ANY_JOB, name: '$.name', payload: {} }
  const source = await theirs.make({ template, filter: { path: '$.skip', ne: true } })
  const used = async () =>
    (await edge.request('GET', '/orgs/me/quotas', { token: bob.token })).body.payload_bytes_per_day.used
  const large = 'x'.repeat(10_000)
  await send(edge, source, { skip: true, large })
  const perDelivery = await used()
  assert.ok(perDelivery > 10_000 && perDelivery < 12_000, `${perDelivery} bytes`)
  await send(edge, source, { large })
  assert.ok((await used()) > 20_000)

  await database.run(setQuotas(bob.orgId, { payload_bytes_per_day: 25_000 }))
  const quarantined = await SIGNERS.hmac(source.secret, JSON.stringify({ large }), { id: 'patient' })
  const refused = await deliver(edge, source, quarantined)
  assertProblem(refused, 429, 'quota-exceeded')
  assert.ok(refused.headers.get('retry-after'))
  assertStatus(await send(edge, source, { skip: true, large }), 200, 'filtered')
  const accepted = await send(edge, source, { name: 'n', large })
  assertStatus(accepted, 202, 'accepted')
  const kept = await theirs.delivery(accepted.body.delivery_id)
  assert.deepEqual([kept.status, kept.headers, kept.body], ['accepted', {}, null])
  assertProblem(await theirs.replay(kept.id), 409, 'not-replayable')
  assert.equal((await theirs.deliveries(source, '?status=quarantined')).length, 1)

  await database.run(setQuotas(bob.orgId, { payload_bytes_per_day: null }))
  assertStatus(await deliver(edge, source, quarantined), 202, 'quarantined')
})

test('a job that it depends on, or a used idempotency key, puts it into quarantine', async () => {
  const template = {
    ...ANY_JOB,
    depends_on: '$.parents ?? []',
    idempotency_key: '$.key ?? null',
    // As it is meant: a moment later it is the same.
    deadline_in_seconds: 3600,
  }
  const source = await hooks.make({ template })
  const [unknown, failed] = [randomUUID(), await jobInState(database.run, ada, 'failed')]
  const orphan = await send(edge, source, { parents: [unknown] })
  assertStatus(orphan, 202, 'quarantined')
  assert.match(orphan.body.reason, /#\/depends_on\/0 names .* which is no job of this organisation/)
  const doomed = await send(edge, source, { parents: [failed] })
  assert.match(doomed.body.reason, /#\/depends_on\/0 names .* has failed or was cancelled/)

  const first = await send(edge, source, { key: 'k1', n: 1 }, { id: 'one' })
  assertStatus(first, 202, 'accepted')
  const other = await send(edge, source, { key: 'k1', n: 2 }, { id: 'two' })
  assertStatus(other, 202, 'quarantined')
  assert.match(other.body.reason, /#\/idempotency_key was used within 24 hours with another body/)
  const same = await send(edge, source, { key: 'k1', n: 1 }, { id: 'three' })
  assertStatus(same, 200, 'duplicate')
  assert.equal(same.body.job_id, first.body.job_id)
  await database.sql(`delete from idempotency_keys where key = 'k1'`)
  const later = await send(edge, source, { key: 'k1', n: 1 }, { id: 'three' })
  assertStatus(later, 200, 'duplicate')
  assert.equal(
    later.body.job_id,
    first.body.job_id,
    'the event stays a duplicate when the key of the job has expired',
  )
})

test('a change, a pause and a deletion hold from the next delivery on, although the source is remembered', async () => {
  const source = await hooks.make()
  assertStatus(await send(edge, source, { n: 1 }), 202, 'accepted')
  await hooks.change(source, { template: { ...ANY_JOB, name: 'renamed' } })
  assert.equal((await jobOf(await send(edge, source, { n: 2 }))).name, 'renamed')
  await hooks.change(source, { filter: { path: '$.n', gt: 3 } })
  assertStatus(await send(edge, source, { n: 3 }), 200, 'filtered')
  await hooks.change(source, { enabled: false })
  assertProblem(await send(edge, source, { n: 4 }), 404, 'not-found')
  await hooks.change(source, { enabled: true })
  assertStatus(await send(edge, source, { n: 5 }), 202, 'accepted')
  await edge.request('DELETE', `/webhooks/sources/${source.id}`, { token: ada.token })
  assertProblem(await send(edge, source, { n: 6 }), 404, 'not-found')
})

test('after a rotation both secrets are good for a while, and at once if it was not to be', async () => {
  for (const scheme of ['stripe', 'standard-webhooks'] as const) {
    const source = await hooks.make({ scheme })
    const rotate = (json?: object) =>
      edge.request('POST', `/webhooks/sources/${source.id}/rotate`, {
        token: ada.token,
        ...(json && { json }),
      })
    const sendWith = async (secret: string) =>
      (await deliver(edge, source, await SIGNERS[scheme](secret, JSON.stringify({ id: randomUUID() }))))
        .status
    assert.equal(await sendWith(source.secret), 202)
    const second = (await rotate()).body.secret
    assert.deepEqual([await sendWith(second), await sendWith(source.secret)], [202, 202], scheme)
    await database.sql(
      'update webhook_sources set previous_expires_at = now(), version = version + 1 where id = $1',
      [source.id],
    )
    assert.deepEqual([await sendWith(second), await sendWith(source.secret)], [202, 401], scheme)
    const third = (await rotate({ keep_previous_seconds: 0 })).body.secret
    assert.deepEqual([await sendWith(second), await sendWith(third)], [401, 202], scheme)
  }
})

test('the journal keeps what came without what is secret', async () => {
  const source = await hooks.make({ template: { ...ANY_JOB, payload: { token: '$.token' } } })
  const event = {
    token: 'tok_123456',
    nested: { deep: [[[[[[[[{ password: 'p', kept: 'yes', says: `it is ${source.secret}` }]]]]]]]] },
  }
  const signed = await SIGNERS.hmac(source.secret, JSON.stringify(event))
  const headers = { ...signed.headers, authorization: 'Bearer abcdefghijk', cookie: 'a=b', 'x-note': 'kept' }
  const answer = await deliver(edge, source, { ...signed, headers })
  assert.equal((await jobOf(answer)).payload.token, 'tok_123456', 'the job has what was sent')
  const kept = await hooks.delivery(answer.body.delivery_id)
  const hidden = '[redacted]'
  assert.deepEqual(kept.body, {
    token: hidden,
    nested: { deep: [[[[[[[[{ password: hidden, kept: 'yes', says: `it is ${hidden}` }]]]]]]]] },
  })
  assert.deepEqual(
    [kept.headers['x-signature'], kept.headers.authorization, kept.headers.cookie, kept.headers['x-note']],
    [hidden, hidden, hidden, 'kept'],
  )
  const text = await send(edge, source, `token=abc&note=kept "api_key": "def", ${source.secret}`)
  assert.equal(
    (await hooks.delivery(text.body.delivery_id)).body,
    `token=${hidden}&note=kept "api_key": ${hidden}, ${hidden}`,
  )
  const rows = JSON.stringify(
    await database.sql('select * from webhook_deliveries where source_id = $1', [source.id]),
  )
  for (const secret of [source.secret, 'tok_123456', 'abcdefghijk', signed.headers['x-signature'] ?? 'none'])
    assert.ok(!rows.includes(secret))
})

test('of what is rejected the journal keeps the beginning, and no more than sixty in a minute', async () => {
  const source = await hooks.make()
  const body = JSON.stringify({ password: 'p', text: 'x'.repeat(10_000) })
  const forged = { body, headers: { 'x-signature': '00', 'x-event-id': 'forged' } }
  assertProblem(await deliver(edge, source, forged), 401, 'webhook-rejected')
  const [first] = await hooks.deliveries(source)
  const kept = await hooks.delivery(String(first?.id))
  assert.deepEqual([kept.status, kept.event_id, kept.job_id], ['rejected', 'forged', null])
  assert.match(kept.body, /^\{"password":"\[redacted\]","text":"x+…$/)
  assert.ok(kept.body.length <= 4_097)
  await database.sql(
    `insert into webhook_deliveries (org_id, id, source_id, status, headers)
    select $1, id, $2, 'rejected', '{}' from unnest($3::uuid[]) id`,
    [ada.orgId, source.id, Array.from({ length: 57 }, () => uuidV7())],
  )
  const answers = await Promise.all(Array.from({ length: 8 }, () => deliver(edge, source, forged)))
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [401])
  assert.equal((await hooks.deliveries(source, '?status=rejected&limit=200')).length, 60)
  // What is remembered of the source may have to be looked up once more.
  for (let n = 0; n < 2; n++) await deliver(edge, source, forged)
  const before = webhookStatements()
  await deliver(edge, source, forged)
  assert.equal(webhookStatements(), before, 'the database is not asked any more')
  assertStatus(await send(edge, source, {}), 202, 'accepted')
  const other = await hooks.make()
  await deliver(edge, other, forged)
  assert.equal((await hooks.deliveries(other)).length, 1)
})

test('an address that is none answers 404, and asks the database once', async () => {
  const id = randomUUID()
  const call = () => edge.request('POST', `/hooks/${id}`, { body: '{}' })
  const before = webhookStatements()
  for (let n = 0; n < 4; n++) assertProblem(await call(), 404, 'not-found')
  assert.equal(webhookStatements(), before + 1)
  assertProblem(await edge.request('POST', '/hooks/none', { body: '{}' }), 404, 'not-found')
  assertProblem(await edge.request('POST', '/hooks/none', { body: 'x'.repeat(300_000) }), 404, 'not-found')
  const source = await hooks.make()
  for (const method of ['GET', 'PUT', 'DELETE']) {
    assertProblem(await edge.request(method, `/hooks/${source.id}`), 404, 'not-found')
  }
  assertStatus(
    await deliver(edge, { ...source, id: `${source.id}/` }, await SIGNERS.hmac(source.secret, '{}')),
    202,
    'accepted',
  )
})
