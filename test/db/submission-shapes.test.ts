import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { type Submission, type SubmissionRow, type SubmittedJob, submitJobs } from '../../db/queue/submit.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  clearJobs,
  misplacedJobs,
  newJob,
  seedTenant,
  submitAll,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const LATER = '2999-01-01T00:00:00.000Z'

/** Thirty jobs; every third has `other`, so that the kinds are mixed up. */
const mixed = (other: Partial<NewJob>): NewJob[] =>
  Array.from({ length: 30 }, (_, n) => newJob({ payload: { n }, ...(n % 3 === 0 && other) }))

const parent = newJob({ name: 'parent' })
const SHAPES: { name: string; jobs: NewJob[]; states: string[] }[] = [
  { name: 'submit-alike-jobs', jobs: mixed({}), states: ['ready', 'ready', 'ready'] },
  { name: 'submit-jobs', jobs: mixed({ name: 'other' }), states: ['ready', 'ready', 'ready'] },
  {
    name: 'submit-delayed-alike-jobs',
    jobs: mixed({}).map((job) => ({ ...job, run_at: LATER })),
    states: ['pending', 'pending', 'pending'],
  },
  { name: 'submit-delayed-jobs', jobs: mixed({ run_at: LATER }), states: ['pending', 'ready', 'ready'] },
  {
    name: 'submit-dependent-jobs',
    jobs: [parent, ...mixed({ depends_on: [parent.id] })],
    states: ['ready', 'blocked', 'ready'],
  },
  {
    name: 'submit-dependent-delayed-jobs',
    jobs: [{ ...parent, run_at: LATER }, ...mixed({ depends_on: [parent.id], run_at: LATER })],
    states: ['pending', 'blocked', 'ready'],
  },
]

const predict = (overrides: Partial<JobPrediction> = {}): JobPrediction => ({
  p50Log: Math.log(200),
  p90Log: Math.log(400),
  p99Log: Math.log(800),
  source: 'lstm',
  modelVersion: 7,
  spreadLog: 0.5,
  residualLog: -0.5,
  sample: btoa('what it saw'),
  promisedWaitMs: 1234.5,
  ...overrides,
})

/** The same with predictions. */
const PREDICTED = SHAPES.map(({ name, jobs, states }) => ({
  name: name.replace('submit-', 'submit-predicted-'),
  jobs: jobs.map((job, n) => ({ ...job, id: newJob().id, prediction: predict({ promisedWaitMs: n }) })),
  states,
})).filter(({ name }) => !name.includes('dependent'))

/** And with callbacks, of which every third job has another. */
const LINKED = SHAPES.map(({ name, jobs, states }) => ({
  name: name.replace('submit-', 'submit-linked-').replace('alike-', ''),
  jobs: jobs.map((job, n) => ({
    ...job,
    id: newJob().id,
    callback_url: n % 3 === 0 ? 'https://example.com/a' : 'https://example.com/b',
  })),
  states,
})).filter(({ name }) => !name.includes('dependent'))

const TRACES = [1, 2].map((n) => `00-${String(n).repeat(32)}-${String(n).repeat(16)}-01`)

/** And of several traces, and of none: they do not make more kinds. */
const TRACED = [...SHAPES, ...PREDICTED]
  .map(({ name, jobs, states }) => ({
    name: name.replace(/submit-(predicted-)?/, 'submit-$1traced-'),
    jobs: jobs.map((job, n) => ({
      ...job,
      id: newJob().id,
      depends_on: [],
      traceparent: TRACES[n % 3] ?? null,
    })),
    states,
  }))
  .filter(({ name }) => !name.includes('dependent'))

for (const { name, jobs, states } of [...SHAPES, ...PREDICTED, ...LINKED, ...TRACED]) {
  test(`${name} stores each job once, in the order given`, async () => {
    const submissions = [{ ...tenant, jobs }]
    const rows = (await submitAll(database.run, submissions)) as SubmittedJob[]
    assert.deepEqual(
      rows.map(({ id }) => id),
      jobs.map(({ id }) => id),
    )
    assert.deepEqual(
      rows.slice(0, 3).map(({ status }) => status),
      states,
    )
    const { statuses, eventsOf } = watchJobs(database.sql)
    assert.deepEqual(
      await statuses(jobs.map(({ id }) => id)),
      rows.map(({ status }) => status),
    )
    for (const { id, status } of rows.slice(0, 3)) assert.deepEqual(await eventsOf(id), [status])
    assert.deepEqual(await misplacedJobs(database.sql), [])
    const stored = await database.sql<{ id: string; n: number; traceparent: string | null }>(
      `select id, (payload ->> 'n')::int as n, traceparent from jobs where name <> 'parent'`,
    )
    const byId = new Map(stored.map((row) => [row.id, row]))
    assert.ok(jobs.every(({ id, payload }) => byId.get(id)?.n === payload.n))
    const own = jobs.filter((job) => job.name !== 'parent')
    assert.ok(own.every(({ id, traceparent }) => byId.get(id)?.traceparent === traceparent))
    const ready = await database.sql<{ job_id: string }>('select job_id from ready_jobs order by key')
    const expected = rows.filter(({ status }) => status === 'ready').map(({ id }) => id)
    assert.deepEqual(
      ready.map(({ job_id }) => job_id),
      expected,
    )
  })
}

type Stored = {
  predicted_ms: number
  predicted_p90_ms: number
  predicted_p99_ms: number | null
  prediction_source: string
  model_version: number | null
  residual_log: number
  promised_wait_ms: number | null
  sample: string | null
}

const storedOf = async (id: string): Promise<Stored | undefined> =>
  (
    await database.sql<Stored>(
      `select round(predicted_ms) as predicted_ms, round(predicted_p90_ms) as predicted_p90_ms,
        round(predicted_p99_ms) as predicted_p99_ms, prediction_source, model_version, residual_log, promised_wait_ms,
        convert_from(sample, 'utf8') as sample
      from jobs where id = $1`,
      [id],
    )
  )[0]

const AS_PREDICTED: Stored = {
  predicted_ms: 200,
  predicted_p90_ms: 400,
  predicted_p99_ms: 800,
  prediction_source: 'lstm',
  model_version: 7,
  residual_log: -0.5,
  promised_wait_ms: 1234.5,
  sample: 'what it saw',
}

test('a job is stored and answered with the prediction that it came with, alone and among others', async () => {
  const [alone, among, other] = Array.from({ length: 3 }, () => newJob({ prediction: predict() }))
  assert.ok(alone && among && other)
  const answers = await submitAll(database.run, [{ ...tenant, jobs: [alone] }])
  const mixed = [among, { ...other, name: 'other' }]
  answers.push(...(await submitAll(database.run, [{ ...tenant, jobs: mixed }])))
  for (const { id } of [alone, among, other]) assert.deepEqual(await storedOf(id), AS_PREDICTED)
  for (const answer of answers as SubmittedJob[]) {
    assert.deepEqual(
      [answer.model_version, answer.prediction_source, answer.promised_wait_ms],
      [7, 'lstm', 1234.5],
    )
    assert.ok(Math.abs(answer.predicted_ms - 200) < 1e-6)
  }
  const lanes = await database.sql('select distinct lane from ready_jobs')
  assert.deepEqual(lanes, [{ lane: Math.floor(Math.log(200) * 10) }])
})

const VARIED: [string, Partial<NewJob>][] = [
  ['an ordinary job', {}],
  ['a job with a prediction', { prediction: predict() }],
  [
    'a job with little of a prediction',
    { prediction: predict({ p99Log: null, sample: null, promisedWaitMs: null }) },
  ],
  ['a job whose prediction the database rejects', { prediction: predict({ p50Log: 1000 }) }],
  [
    'a job that would miss its deadline only by a prediction that the queue rejects',
    {
      prediction: predict({ p50Log: 90, p90Log: Math.log(1e12) }),
      deadline: new Date(Date.now() + 3_600_000).toISOString(),
    },
  ],
  ['a job of a new series', { name: 'never seen before' }],
  ['a delayed job', { run_at: LATER, deadline: LATER }],
  ['a job that will miss its deadline', { deadline: '2001-01-01T00:00:00.000Z' }],
  [
    'a job with everything else',
    {
      ...{
        priority: 'critical',
        tags: ['a', 'b'],
        timeout_seconds: 9,
        max_attempts: 2,
        initial_delay_seconds: 3,
      },
      ...{ backoff_multiplier: 4, cpu_units: 2, memory_mb: 500, on_parent_failure: 'wait', rank_base: 3 },
      ...{
        callback_url: 'https://example.com/',
        traceparent: TRACES[0] ?? null,
        fairness_key: 'customer-42',
      },
      triggered_by: { kind: 'schedule', schedule_id: newJob().id, tick_at: null },
    },
  ],
  ['a job with an invalid name', { name: '' }],
  ['a job with an invalid fairness key', { fairness_key: '' }],
]

/** All that a submission stores of a job, apart from ids, times and its place among others. */
const everythingOf = (id: string) =>
  database.sql(
    `select
      to_jsonb(j) - '{id,created_at,series_id}'::text[] as job,
      to_jsonb(r) - '{job_id,key,ready_at,series_id}'::text[] as ready,
      to_jsonb(w) - '{job_id}'::text[] as waiting,
      (select jsonb_agg(jsonb_build_array(e.states[1], e.attempts[1], e.reasons[array_position(e.job_ids, j.id)], e.ats))
       from job_event_groups e where j.id = any (e.job_ids)) as events,
      (select jsonb_build_array(s.type, s.name) from series s where s.id = j.series_id) as series
    from jobs j
    left join ready_jobs r on r.job_id = j.id
    left join waiting_jobs w on w.job_id = j.id
    where j.id = $1`,
    [id],
  )

for (const [what, overrides] of VARIED) {
  test(`${what} is stored and answered alone as with another`, async () => {
    const [alone, together, other] = [newJob(overrides), newJob(overrides), newJob()]
    const [single] = await submitAll(database.run, [{ ...tenant, jobs: [alone] }])
    // Another submission, so that each has a verdict of its own.
    const rows = await submitAll(
      database.run,
      [together, other].map((job) => ({ ...tenant, jobs: [job] })),
    )
    const grouped = rows.find(({ submission }) => submission === 1)
    const { id: _id, created_at: _at, announced: _announced, ...answer } = single as SubmittedJob
    assert.deepEqual({ ...grouped, ...answer }, grouped)
    assert.deepEqual(await everythingOf(alone.id), await everythingOf(together.id))
    assert.deepEqual(await misplacedJobs(database.sql), [])
  })
}

test('a job alone is refused with the same verdicts', async () => {
  const alone = async (submission: Submission): Promise<unknown[]> =>
    refusalsOf(await submitAll(database.run, [submission]))
  const stranger = { ...tenant, sessionId: crypto.randomUUID(), jobs: [newJob({ name: 'of a stranger' })] }
  assert.deepEqual(await alone(stranger), [[1, 'not_member']])
  const keyed = newJob()
  const keys = [{ key: 'a key', bodyHash: 'aa', jobIds: [keyed.id] }]
  assert.deepEqual(await alone({ ...tenant, jobs: [keyed], keys }), [])
  assert.deepEqual(await alone({ ...tenant, jobs: [newJob()], keys }), [[1, 'used_key']])
  assert.deepEqual(await alone({ ...tenant, jobs: [keyed] }), [[1, 'invalid']], 'an id that is taken')
  const poor = await seedTenant(database.run)
  await database.sql('insert into smartqueue.quotas (org_id, submissions_per_minute) values ($1, 1)', [
    poor.orgId,
  ])
  assert.deepEqual(
    await alone({ ...poor, jobs: [newJob({ name: '' })] }),
    [[1, 'invalid']],
    'and not charged',
  )
  assert.deepEqual(await alone({ ...poor, jobs: [newJob()] }), [])
  assert.deepEqual(await alone({ ...poor, jobs: [newJob()] }), [[1, 'quota']])
  assert.equal((await database.sql('select from smartqueue.jobs')).length, 2)
  assert.deepEqual(await database.sql(`select from smartqueue.series where name = 'of a stranger'`), [])
})

test('what is not known of a prediction stays empty, and a job without one among others goes by its estimate', async () => {
  const bare = newJob({ prediction: predict({ p99Log: null, sample: null, promisedWaitMs: null }) })
  const none = newJob({ name: 'none' })
  await submitAll(database.run, [{ ...tenant, jobs: [bare, none] }])
  const stored = await storedOf(bare.id)
  assert.deepEqual([stored?.predicted_p99_ms, stored?.sample, stored?.promised_wait_ms], [null, null, null])
  assert.deepEqual(await storedOf(none.id), {
    predicted_ms: 1000,
    predicted_p90_ms: 10014,
    predicted_p99_ms: null,
    prediction_source: 'default',
    model_version: null,
    residual_log: 0,
    promised_wait_ms: null,
    sample: null,
  })
})

test('of jobs that look alike only the first eight carry what the predictor saw', async () => {
  const jobs = Array.from({ length: 40 }, (_, n) =>
    newJob({
      prediction: predict({
        promisedWaitMs: n,
        sample: btoa(`${n}`),
        p50Log: n % 2 === 0 ? 5 : 6,
        p90Log: 7,
      }),
    }),
  )
  await submitAll(database.run, [{ ...tenant, jobs }])
  const rows = await database.sql<{ n: number; sample: string }>(
    `select promised_wait_ms as n, convert_from(sample, 'utf8') as sample from jobs where sample is not null order by 1`,
  )
  assert.deepEqual(
    rows.map(({ n, sample }) => [n, sample]),
    Array.from({ length: 16 }, (_, n) => [n, `${n}`]),
  )
})

test('without a prediction the organisation is believed before the type, and the type before the default', async () => {
  const sources: unknown[] = []
  const look = async (name: string): Promise<void> => {
    const jobs = [newJob({ name }), newJob({ name })]
    await submitAll(database.run, [{ ...tenant, jobs: jobs.slice(0, 1) }])
    await submitAll(database.run, [{ ...tenant, jobs: jobs.slice(1) }])
    const [one, other] = await Promise.all(jobs.map(({ id }) => storedOf(id)))
    assert.deepEqual(one, other)
    sources.push([one?.predicted_ms, one?.prediction_source])
  }
  await look('a')
  await database.sql(
    `insert into type_estimates (type, runs, mean_log, deviation_log, median_log) values ('test', 9, ln(20), 1, ln(20))`,
  )
  await look('c')
  await database.sql(
    `insert into org_type_estimates (org_id, type, runs, mean_log, deviation_log, median_log) values ($1, 'test', 9, ln(30), 1, ln(30))`,
    [tenant.orgId],
  )
  await look('d')
  await database.sql(`update series set runs = 1, mean_log = ln(40), deviation_log = 1 where name = 'd'`)
  await look('d')
  await database.sql('truncate org_type_estimates')
  assert.deepEqual(sources, [
    [1000, 'default'],
    [20, 'type'],
    [30, 'type'],
    [40, 'series'],
  ])
})

test('jobs that miss their deadline are named in the events, the others are not', async () => {
  const late = newJob({ deadline: '2020-01-01T00:00:00Z' })
  const fine = newJob()
  await submitAll(database.run, [{ ...tenant, jobs: [fine, late] }])
  const { eventsOf } = watchJobs(database.sql)
  assert.deepEqual(await eventsOf(late.id), ['ready: deadline_at_risk'])
  assert.deepEqual(await eventsOf(fine.id), ['ready'])
})

for (const [field, value] of Object.entries({
  name: '',
  priority: 'urgent',
  timeout_seconds: 0,
  max_attempts: 0,
  initial_delay_seconds: -1,
  backoff_multiplier: 0.5,
  cpu_units: -1,
  memory_mb: -1,
  on_parent_failure: 'shrug',
  payload: [],
})) {
  test(`the database refuses a job with a wrong ${field}, whatever let it through`, async () => {
    const wrong = { ...newJob(), [field]: value } as NewJob
    const fine = newJob()
    const rows = await submitAll(database.run, [
      { ...tenant, jobs: [newJob(), wrong] },
      { ...tenant, jobs: [fine] },
    ])
    assert.deepEqual(
      rows.map((row) => (row.id === null && row.refusal === 'invalid' ? row.detail.code : row.id)),
      [fine.id, '23514'],
    )
    assert.deepEqual(await database.sql('select id from smartqueue.jobs'), [{ id: fine.id }])
  })
}

test('what has triggered a job and whom it tells are stored with it', async () => {
  const triggered_by = { kind: 'callback', job_id: newJob().id, event: 'job.failed' } as const
  const jobs = [newJob(), newJob({ callback_url: 'https://example.com/' }), newJob({ triggered_by })]
  await submitAll(database.run, [{ ...tenant, jobs }])
  const rows = await database.sql('select callback_url, triggered_by from jobs order by id')
  assert.deepEqual(rows, [
    { callback_url: null, triggered_by: null },
    { callback_url: 'https://example.com/', triggered_by: null },
    { callback_url: null, triggered_by },
  ])
})

test('jobs that are nobody’s need no member', async () => {
  const submissions = [{ orgId: tenant.orgId, userId: null, jobs: [newJob(), newJob({ name: 'other' })] }]
  assert.equal((await submitAll(database.run, submissions)).length, 2)
  assert.deepEqual(await database.sql('select distinct created_by from jobs'), [{ created_by: null }])
})

test('a call without submissions does nothing', async () => {
  assert.deepEqual(await submitAll(database.run, []), [])
})

test('what is free is stored although the organisation is over its quota', async () => {
  await database.sql(`insert into quotas (org_id, queued_jobs) values ($1, 0)`, [tenant.orgId])
  const submissions = [{ orgId: tenant.orgId, userId: null, jobs: [newJob()] }]
  const [refused] = await submitAll(database.run, submissions)
  assert.equal(refused?.id, null)
  const submitting = submitJobs(submissions, { charged: false })
  assert.deepEqual(
    submitting.read(await database.run(submitting)).rows.map(({ id }) => id),
    submissions[0]?.jobs.map(({ id }) => id),
  )
  await database.sql(`delete from quotas where org_id = $1`, [tenant.orgId])
})

test('jobs of one request say once which trace they are of, in each of many requests', async () => {
  const [one = '', two = ''] = TRACES
  const ofOne = Array.from({ length: 3 }, () => newJob({ traceparent: one }))
  const query = submitJobs([{ ...tenant, jobs: ofOne }])
  assert.ok(query.values.includes(`{${one}}`), 'once for all three')
  await database.run(query)
  const untraced = newJob()
  const others = [newJob({ traceparent: two }), newJob({ traceparent: one, prediction: predict() })]
  const submissions = [...others, untraced].map((job) => ({ ...tenant, jobs: [job] }))
  await submitAll(database.run, submissions)
  const rows = await database.sql<{ id: string; traceparent: string | null }>(
    'select id, traceparent from jobs',
  )
  const traces = new Map(rows.map(({ id, traceparent }) => [id, traceparent]))
  assert.equal(traces.size, 6)
  for (const { id, traceparent } of [...ofOne, ...others, untraced]) assert.equal(traces.get(id), traceparent)
})

const refusalsOf = (rows: SubmissionRow[]): unknown[] =>
  rows.flatMap((row) => (row.id === null ? [[row.submission, row.refusal]] : []))

test('each submission of a call has a verdict of its own', async () => {
  const poor = await seedTenant(database.run)
  await database.sql('insert into smartqueue.quotas (org_id, submissions_per_minute) values ($1, 1)', [
    poor.orgId,
  ])
  const [failed, keyed] = [newJob(), newJob()]
  const keys = [{ key: 'once', bodyHash: 'aa', jobIds: [keyed.id] }]
  await submitAll(database.run, [
    { ...tenant, jobs: [failed] },
    { ...tenant, jobs: [keyed], keys },
  ])
  await database.sql(
    `with gone as (delete from smartqueue.ready_jobs where job_id = $1)
    insert into smartqueue.finished_jobs (org_id, job_id, series_id, state, attempts)
    select org_id, id, series_id, 'cancelled', 0 from smartqueue.jobs where id = $1`,
    [failed.id],
  )
  const submissions: Submission[] = [
    { ...tenant, jobs: [newJob()] },
    {
      ...tenant,
      sessionId: crypto.randomUUID(),
      jobs: [newJob({ name: 'a stranger to this organisation' })],
    },
    { ...tenant, jobs: [newJob({ depends_on: [newJob().id] })] },
    { ...tenant, jobs: [newJob(), newJob({ depends_on: [failed.id] })] },
    { ...tenant, jobs: [newJob()], keys },
    { ...poor, jobs: [newJob(), newJob()] },
    { ...poor, jobs: [newJob()] },
    { ...tenant, jobs: [newJob({ depends_on: [keyed.id] })] },
  ]
  const expected = [
    [2, 'not_member'],
    [3, 'unknown_parent'],
    [4, 'failed_parent'],
    [5, 'used_key'],
    [6, 'quota'],
  ]
  const rows = await submitAll(database.run, submissions)
  assert.deepEqual(refusalsOf(rows).toSorted(), expected)
  const accepted = [1, 7, 8].flatMap((n) => submissions[n - 1]?.jobs.map(({ id }) => id))
  assert.deepEqual(
    rows.flatMap(({ id }) => id ?? []),
    accepted,
  )
  const { statuses } = watchJobs(database.sql)
  assert.deepEqual(await statuses(accepted.flatMap((id) => id ?? [])), ['ready', 'ready', 'blocked'])
  assert.equal((await database.sql('select from smartqueue.jobs')).length, 5)
  assert.deepEqual(await misplacedJobs(database.sql), [])
  assert.deepEqual(await database.sql(`select from smartqueue.series where name like 'a stranger%'`), [])

  const wrong = { ...tenant, jobs: [newJob({ name: '' })] }
  const again = submissions.map((one) => ({
    ...one,
    jobs: one.jobs.map((job) => ({ ...job, id: newJob().id })),
  }))
  const isolated = await submitAll(database.run, [...again, wrong])
  assert.deepEqual(refusalsOf(isolated).toSorted(), [...expected, [7, 'quota'], [9, 'invalid']])
  assert.equal(isolated.filter(({ id }) => id !== null).length, 2)
})

test('a job whose prediction the database rejects is stored with the running estimate', async () => {
  const impossible = newJob({ prediction: predict({ p50Log: 1000 }) })
  const fine = newJob({ prediction: predict() })
  const submitting = submitJobs([impossible, fine].map((job) => ({ ...tenant, jobs: [job] })))
  const submitted = submitting.read(await database.run(submitting))
  assert.equal(submitted.refusedPredictions.length, 1)
  const rows = submitted.rows as SubmittedJob[]
  assert.deepEqual(
    rows.map(({ id, prediction_source }) => [id, prediction_source]),
    [
      [impossible.id, 'default'],
      [fine.id, 'lstm'],
    ],
  )
  assert.deepEqual((await storedOf(fine.id))?.sample, 'what it saw')
  assert.deepEqual((await storedOf(impossible.id))?.sample, null)
})

test('an organisation whose quotas another transaction holds does not delay the others', async () => {
  const held = await seedTenant(database.run)
  const holder = new pg.Client(database.url)
  await holder.connect()
  await holder.query('begin')
  await holder.query('select from smartqueue.quota_states where org_id = $1 for update', [held.orgId])
  const submissions = [held, tenant].map((one) => ({ ...one, jobs: [newJob()] }))
  const rows = await submitAll(database.run, submissions)
  assert.deepEqual(refusalsOf(rows), [[1, 'busy']])
  assert.deepEqual(
    rows.flatMap(({ id }) => id ?? []),
    submissions[1]?.jobs.map(({ id }) => id),
  )
  await holder.end()
})
