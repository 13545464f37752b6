import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { MAX_SCHEDULES } from '../../db/queries/schedules.ts'
import { nextTicks } from '../../db/rules/cron.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { reportLive } from '../support/live-worker.ts'
import { assertProblem } from '../support/problem.ts'
import { seedSchedule } from '../support/schedules.ts'

const PAYLOAD_SCHEMA = {
  type: 'object',
  properties: { url: { type: 'string' } },
  required: ['url'],
  additionalProperties: false,
}

let database: TestDatabase
let edge: Edge
let ada: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  await database.run(registerJobTypes([{ type: 'call', payload_schema: PAYLOAD_SCHEMA }]))
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const JOB = { type: 'call', payload: { url: 'https://example.com/' } }
const NIGHTLY = { name: 'nightly', cron: '30 2 * * *', timezone: 'Europe/Berlin', job: JOB }

const send = (method: string, path: string, json?: unknown, account = ada): Promise<Answer> =>
  edge.request(method, path, { token: account.token, ...(json !== undefined && { json }) })

const make = async (overrides: object = {}) => {
  const answer = await send('POST', '/schedules', { ...NIGHTLY, ...overrides })
  assert.equal(answer.status, 201, answer.text)
  return answer.body
}

/** By the same rule, in this process: that it knows clocks is tested elsewhere, that workerd does here. */
const nextFive = (cron: string, timezone: string): string[] =>
  nextTicks(cron, timezone, new Date(), 5).map((tick) => tick.toISOString())

test('a schedule is made with all defaults, and says when it ticks next', async () => {
  const answer = await send('POST', '/schedules', NIGHTLY)
  assert.equal(answer.status, 201, answer.text)
  const { id, created_at, updated_at, ...made } = answer.body
  assert.equal(answer.headers.get('location'), `/schedules/${id}`)
  const next_runs = nextFive(NIGHTLY.cron, NIGHTLY.timezone)
  assert.deepEqual(made, {
    name: 'nightly',
    cron: '30 2 * * *',
    timezone: 'Europe/Berlin',
    catch_up: 'one',
    paused: false,
    job: {
      ...JOB,
      name: 'nightly',
      priority: 'normal',
      resources: { cpu_units: 1, memory_mb: 64 },
      retry: { max_attempts: 3, initial_delay_seconds: 5, backoff_multiplier: 2 },
      tags: [],
      timeout_seconds: null,
      callback_url: null,
      fairness_key: null,
      deadline_seconds: null,
    },
    next_run_at: next_runs[0],
    next_runs,
    last_tick: null,
    skipped_ticks: 0,
  })
  assert.deepEqual((await send('GET', `/schedules/${id}`)).body, answer.body)
  assert.ok(created_at && updated_at)
})

test('all of it can be said, and what is left out of the zone means UTC', async () => {
  const job = {
    ...JOB,
    name: 'report',
    priority: 'high',
    resources: { cpu_units: 0.5, memory_mb: 10 },
    retry: { max_attempts: 1, initial_delay_seconds: 1, backoff_multiplier: 3 },
    tags: ['a', 'b'],
    timeout_seconds: 30,
    callback_url: 'https://example.com/told',
    fairness_key: 'customer-42',
    deadline_seconds: 3600,
  }
  const made = await make({ timezone: undefined, catch_up: 'all', paused: true, job })
  assert.deepEqual(made.job, job)
  const { timezone, catch_up, paused, next_run_at, next_runs } = made
  assert.deepEqual(
    { timezone, catch_up, paused, next_run_at, next_runs },
    { timezone: 'UTC', catch_up: 'all', paused: true, next_run_at: null, next_runs: [] },
  )
})

const REFUSED: Record<string, [change: object, pointer: string, detail: RegExp, slug?: string]> = {
  'no name': [{ name: undefined }, '#/name', /is required/],
  'an expression of four fields': [{ cron: '* * * *' }, '#/cron', /must have 5 fields/],
  'a minute that there is not': [{ cron: '60 * * * *' }, '#/cron', /minute/],
  'a day that never comes': [{ cron: '0 0 30 2 *' }, '#/cron', /never comes/],
  'every second': [{ cron: '* * * * * *' }, '#/cron', /must leave 10 seconds/],
  'a zone that there is not': [{ timezone: 'Mars/Olympus' }, '#/timezone', /name of a time zone/],
  'an offset for a zone': [{ timezone: '+02:00' }, '#/timezone', /name of a time zone/],
  'another name for the zone': [{ time_zone: 'UTC' }, '#/time_zone', /not a known field/],
  'a rule that there is not': [{ catch_up: 'some' }, '#/catch_up', /"skip"/],
  'no job': [{ job: undefined }, '#/job', /is required/],
  'a job without a type': [{ job: { payload: {} } }, '#/job/type', /is required/],
  'a type that no worker handles': [
    { job: { ...JOB, type: 'nothing' } },
    '#/job/type',
    /not a known type/,
    'unknown-job-type',
  ],
  'a payload that does not fit': [{ job: { type: 'call', payload: {} } }, '#/job/payload/url', /./],
  'a time to run at': [
    { job: { ...JOB, run_at: '2030-01-01T00:00:00Z' } },
    '#/job/run_at',
    /ticks determine when/,
  ],
  'a deadline': [{ job: { ...JOB, deadline: '2030-01-01T00:00:00Z' } }, '#/job/deadline', /deadline_seconds/],
  'jobs to wait for': [
    { job: { ...JOB, depends_on: [] } },
    '#/job/depends_on',
    /is not allowed in a schedule/,
  ],
  'a key': [{ job: { ...JOB, idempotency_key: 'k' } }, '#/job/idempotency_key', /submitted only once/],
  'an empty fairness key': [{ job: { ...JOB, fairness_key: '' } }, '#/job/fairness_key', /at least 1|>=1/],
  'a field that there is not': [{ job: { ...JOB, color: 'red' } }, '#/job/color', /not a known field/],
}

for (const [what, [change, pointer, detail, slug = 'invalid-request']] of Object.entries(REFUSED)) {
  test(`a schedule with ${what} is refused, and the field is named`, async () => {
    const answer = await send('POST', '/schedules', { ...NIGHTLY, ...change })
    assertProblem(answer, 422, slug, pointer)
    assert.match(answer.body.errors[0].detail, detail)
  })
}

test('a refused change says the same, and changes nothing', async () => {
  const made = await make()
  const path = `/schedules/${made.id}`
  assertProblem(await send('PATCH', path, { cron: 'x' }), 422, 'invalid-request', '#/cron')
  assertProblem(await send('PATCH', path, { timezone: 'x' }), 422, 'invalid-request', '#/timezone')
  const job = { type: 'call', payload: {} }
  assertProblem(await send('PATCH', path, { job, name: 'x' }), 422, 'invalid-request', '#/job/payload/url')
  assert.deepEqual((await send('GET', path)).body, made)
})

test('any field can be changed; the others stay, and so does the next tick unless the clock changes', async () => {
  const made = await make()
  const path = `/schedules/${made.id}`
  const renamed = (await send('PATCH', path, { name: 'monthly', catch_up: 'skip' })).body
  assert.deepEqual(
    { ...renamed, updated_at: made.updated_at },
    { ...made, name: 'monthly', catch_up: 'skip' },
    'and its jobs keep their name',
  )
  const moved = (await send('PATCH', path, { cron: '0 0 1 * *', timezone: 'Asia/Kathmandu' })).body
  assert.deepEqual(moved.next_runs, nextFive('0 0 1 * *', 'Asia/Kathmandu'))
  const job = { ...JOB, priority: 'low' }
  const other = (await send('PATCH', path, { job })).body
  assert.deepEqual(other.job, { ...made.job, priority: 'low', name: 'monthly' }, 'as a whole')
  assert.deepEqual(other.next_runs, moved.next_runs)
  assert.deepEqual((await send('PATCH', path, {})).body, other, 'nothing is changed by nothing')
})

test('paused, by any of its names, it has no next tick; resumed, it ticks from then on', async () => {
  const made = await make()
  const path = `/schedules/${made.id}`
  for (const [pause, resume] of [
    [() => send('POST', `${path}/pause`), () => send('POST', `${path}/resume`)],
    [() => send('PATCH', path, { paused: true }), () => send('PATCH', path, { paused: false })],
  ] as const) {
    const paused = (await pause()).body
    assert.deepEqual([paused.paused, paused.next_run_at, paused.next_runs], [true, null, []])
    assert.deepEqual((await pause()).body, paused, 'twice is once')
    await database.sql(`update schedules set created_at = now() - interval '1 year' where id = $1`, [made.id])
    const resumed = (await resume()).body
    assert.deepEqual([resumed.paused, resumed.next_runs], [false, nextFive(made.cron, made.timezone)])
    assert.deepEqual((await resume()).body, resumed)
  }
})

test('changed by two at the same time, it has the changes of both', async () => {
  const { id } = await make()
  const changes = [{ name: 'b' }, { catch_up: 'all' }, { cron: '0 5 * * *' }, { paused: true }]
  await Promise.all(changes.map((change) => send('PATCH', `/schedules/${id}`, change)))
  const { name, catch_up, cron, paused, next_run_at } = (await send('GET', `/schedules/${id}`)).body
  assert.deepEqual(
    { name, catch_up, cron, paused, next_run_at },
    { name: 'b', catch_up: 'all', cron: '0 5 * * *', paused: true, next_run_at: null },
  )
})

test('a tick that is due when the schedule is changed still comes, unless the new plan does not have it', async () => {
  const due = new Date(Math.floor(Date.now() / 60_000) * 60_000).toISOString()
  const id = await seedSchedule(database.run, ada, { next_at: due, cron: '* * * * *' })
  const nextAt = async (change: object) => (await send('PATCH', `/schedules/${id}`, change)).body.next_run_at
  assert.equal(await nextAt({ name: 'other' }), due)
  assert.equal(await nextAt({ cron: '*/1 * * * *' }), due)
  assert.equal(await nextAt({ cron: '0 0 1 1 *' }), nextFive('0 0 1 1 *', 'UTC')[0])
})

test('run now submits its job like any other, also while it is paused', async () => {
  await reportLive(database.run, { types: ['call'] })
  const { id } = await make({ paused: true, job: { ...JOB, deadline_seconds: 60, tags: ['t'] } })
  const answer = await send('POST', `/schedules/${id}/run`)
  assert.equal(answer.status, 201, answer.text)
  const { body } = answer
  assert.equal(answer.headers.get('location'), `/jobs/${body.id}`)
  assert.deepEqual(body.triggered_by, { kind: 'schedule', schedule_id: id, tick_at: null })
  assert.equal(body.created_by, ada.userId)
  assert.deepEqual([body.status, body.name, body.type, body.tags], ['ready', 'nightly', 'call', ['t']])
  assert.ok(body.prediction.p50_ms > 0 && body.eta.start_at, answer.text)
  const untilDeadline = Date.parse(body.deadline) - Date.parse(body.created_at)
  assert.ok(untilDeadline > 50_000 && untilDeadline < 70_000, body.deadline)
  const { eta: _, deadline_at_risk: __, ...looked } = (await send('GET', `/jobs/${body.id}`)).body
  assert.deepEqual(looked.triggered_by, body.triggered_by)
  assert.equal((await send('GET', `/schedules/${id}`)).body.last_tick, null, 'it is no tick')
})

test('a quota refuses to run it, as it refuses a submission', async () => {
  const bob = await registerUser(edge)
  const made = await send('POST', '/schedules', NIGHTLY, bob)
  await database.sql(`insert into quotas (org_id, queued_jobs) values ($1, 0)`, [bob.orgId])
  assertProblem(await send('POST', `/schedules/${made.body.id}/run`, undefined, bob), 429, 'quota-exceeded')
})

test('the list is paged, and only of the organisation', async () => {
  const bob = await registerUser(edge)
  const ids = []
  for (const name of ['a', 'b', 'c']) {
    ids.push((await send('POST', '/schedules', { ...NIGHTLY, name }, bob)).body.id)
  }
  const first = (await send('GET', '/schedules?limit=2', undefined, bob)).body
  const second = (await send('GET', `/schedules?limit=2&cursor=${first.next_cursor}`, undefined, bob)).body
  assert.deepEqual(
    [...first.items, ...second.items].map(({ id }) => id),
    ids,
  )
  assert.equal(second.next_cursor, null)
  assert.deepEqual(second.items[0], (await send('GET', `/schedules/${ids[2]}`, undefined, bob)).body)
})

test('its ticks are told newest first, page by page, and the newest with the schedule', async () => {
  const { id } = await make()
  const path = `/schedules/${id}/ticks`
  assert.deepEqual((await send('GET', path)).body, { items: [], next_cursor: null })
  await database.sql(
    `insert into schedule_ticks (schedule_id, org_id, tick_at, outcome, reason, fired_at)
    select $1, $2, at, 'refused', 'full', at
    from generate_series('2026-01-01T00:00Z'::timestamptz, '2026-01-03T00:00Z', '1 day') as at`,
    [id, ada.orgId],
  )
  const first = (await send('GET', `${path}?limit=2`)).body
  const second = (await send('GET', `${path}?limit=2&cursor=${first.next_cursor}`)).body
  const ticks = [...first.items, ...second.items]
  assert.deepEqual(
    ticks.map(({ tick_at }) => tick_at.slice(0, 10)),
    ['2026-01-03', '2026-01-02', '2026-01-01'],
  )
  assert.deepEqual(ticks[0], {
    tick_at: '2026-01-03T00:00:00.000Z',
    outcome: 'refused',
    job_id: null,
    reason: 'full',
    fired_at: '2026-01-03T00:00:00.000Z',
  })
  assert.deepEqual((await send('GET', `/schedules/${id}`)).body.last_tick, ticks[0])
  assertProblem(await send('GET', `${path}?cursor=x`), 422, 'invalid-request', '#/cursor')
})

test('deleted, it is gone with its ticks, and its jobs stay', async () => {
  const { id } = await make()
  const job = (await send('POST', `/schedules/${id}/run`)).body
  await database.sql(
    `insert into schedule_ticks (schedule_id, org_id, tick_at, outcome) values ($1, $2, now(), 'fired')`,
    [id, ada.orgId],
  )
  assert.equal((await send('DELETE', `/schedules/${id}`)).status, 204)
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['GET', '/ticks'],
    ['POST', '/run'],
    ['POST', '/pause'],
  ] as const) {
    const body = method === 'PATCH' ? {} : undefined
    assertProblem(await send(method, `/schedules/${id}${path}`, body), 404, 'not-found')
  }
  assert.equal((await send('GET', `/jobs/${job.id}`)).status, 200)
})

test('a preview tells the next five ticks, and stores nothing', async () => {
  const before = (await send('GET', '/schedules?limit=200')).body.items.length
  const plan = { cron: '0 9 * * MON#1', timezone: 'America/New_York' }
  const { status, body } = await send('POST', '/schedules/preview', plan)
  assert.equal(status, 200)
  assert.deepEqual(body, { next_runs: nextFive(plan.cron, plan.timezone) })
  assertProblem(await send('POST', '/schedules/preview', { cron: 'x' }), 422, 'invalid-request', '#/cron')
  assert.equal((await send('GET', '/schedules?limit=200')).body.items.length, before)
})

test('who made, changed, ran and deleted it is in the audit log', async () => {
  const bob = await registerUser(edge)
  const made = (await send('POST', '/schedules', NIGHTLY, bob)).body
  const path = `/schedules/${made.id}`
  await send('PATCH', path, { cron: '0 3 * * *', name: 'later' }, bob)
  await send('PATCH', path, { name: 'later' }, bob)
  await send('POST', `${path}/pause`, undefined, bob)
  const job = (await send('POST', `${path}/run`, undefined, bob)).body
  await send('DELETE', path, undefined, bob)
  const { items } = (await send('GET', '/orgs/me/audit', undefined, bob)).body
  const told = items
    .filter(({ action }: { action: string }) => action.startsWith('schedule.'))
    .map(({ action, target }: { action: string; target: object }) => ({ action, ...target }))
    .reverse()
  const later = { schedule_id: made.id, name: 'later' }
  assert.deepEqual(told, [
    { action: 'schedule.created', schedule_id: made.id, name: 'nightly' },
    { action: 'schedule.changed', ...later, fields: ['name', 'cron'] },
    { action: 'schedule.changed', ...later, fields: ['paused'] },
    { action: 'schedule.run', ...later, job_id: job.id },
    { action: 'schedule.deleted', ...later },
  ])
})

test(`an organisation may have ${MAX_SCHEDULES} schedules`, async () => {
  const bob = await registerUser(edge)
  await database.sql(
    `insert into schedules (org_id, id, name, cron, timezone, catch_up, job)
    select $1, gen_random_uuid(), 'n', '0 0 * * *', 'UTC', 'one', '{}'
    from generate_series(1, $2)`,
    [bob.orgId, MAX_SCHEDULES],
  )
  assertProblem(await send('POST', '/schedules', NIGHTLY, bob), 409, 'limit-reached')
})

test('an API key needs the scope schedules:manage, and to look only jobs:read', async () => {
  const keyWith = async (scopes: string[]): Promise<TestAccount> => {
    const { body } = await send('POST', '/auth/keys', { name: 'k', scopes })
    return { ...ada, token: body.key }
  }
  const reader = await keyWith(['jobs:read'])
  const manager = await keyWith(['schedules:manage'])
  assert.equal((await send('GET', '/schedules', undefined, reader)).status, 200)
  assertProblem(await send('POST', '/schedules', NIGHTLY, reader), 403, 'forbidden')
  assert.equal((await send('POST', '/schedules', NIGHTLY, manager)).status, 201)
})
