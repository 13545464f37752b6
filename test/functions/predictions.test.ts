import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { z } from 'zod'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { acceptPredictions, newJob, refusePredictions, seedJobs } from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
import { assertProblem } from '../support/problem.ts'
import { waitFor } from '../support/wait-for.ts'
import { send, webhooksOf } from '../support/webhooks.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
before(async () => {
  database = await createTestDatabase()
  const payload_schema = z.toJSONSchema(z.strictObject({ n: z.int() }))
  await database.run(registerJobTypes([{ type: 'test', payload_schema }]))
  edge = await startEdge({ databaseUrl: database.url })
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

beforeEach(() => reportLive(database.run))

const JOB = { name: 'report', type: 'test', payload: { n: 1 } }
const predict = (json: unknown) => edge.request('POST', '/predictions', { json, token: ada.token })
const submit = (json: unknown) => edge.request('POST', '/jobs', { json, token: ada.token })

test('a dry run answers what a submission would, and stores nothing', async () => {
  await seedJobs(database.run, ada, [newJob({ name: 'known' })])
  await database.sql(
    `update series set runs = 30, mean_log = ln(200), deviation_log = 0.5, drift_log = 0 where name = 'known'`,
  )
  const count = async () =>
    (await database.sql('select count(*)::int as jobs, max(runs)::int from jobs, series'))[0]
  const before = await count()
  const quota = async () => (await edge.request('GET', '/orgs/me/quotas', { token: ada.token })).body
  const used = await quota()
  const { status, body, text } = await predict({ ...JOB, name: 'known', priority: 'high' })
  assert.equal(status, 200, text)
  assert.deepEqual(body.prediction, { p50_ms: 200, p90_ms: 445.1, source: 'series', model_version: null })
  assert.ok(body.eta && Date.parse(body.eta.finish_p90_at) > Date.parse(body.eta.start_at))
  assert.equal(body.deadline_at_risk, false)
  assert.deepEqual(await count(), before)
  assert.deepEqual(await quota(), used)
  const submitted = await submit({ ...JOB, name: 'known', priority: 'high' })
  assert.deepEqual(
    [submitted.body.prediction, submitted.body.priority_score],
    [body.prediction, body.priority_score],
  )
  const [stored] = await database.sql('select round(predicted_p99_ms) as p99 from jobs where id = $1', [
    submitted.body.id,
  ])
  assert.deepEqual(stored, { p99: Math.round(200 * Math.exp(1.8 * 1.6 * 0.5)) })
})

test('a deadline that would be missed is told', async () => {
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  const risk = async (json: object) => (await predict({ ...JOB, ...json })).body.deadline_at_risk
  assert.equal(await risk({ deadline: inSeconds(60) }), false)
  assert.equal(await risk({ deadline: inSeconds(5) }), true)
  assert.equal(await risk({ deadline: inSeconds(60), run_at: inSeconds(55) }), true)
})

test('a dry run is checked like a submission', async () => {
  assertProblem(await predict({ ...JOB, type: 'unheard-of' }), 422, 'unknown-job-type', '#/type')
  assertProblem(await predict({ ...JOB, payload: { n: 'x' } }), 422, 'invalid-request', '#/payload/n')
  assertProblem(await predict({ ...JOB, surprise: 1 }), 422, 'invalid-request', '#/surprise')
})

test('a job is submitted without a prediction of the model when its inputs cannot be had, and that is counted', async () => {
  await database.sql('alter table org_memories rename to hidden')
  try {
    const { status, body, text } = await submit({ ...JOB, name: 'unlucky' })
    assert.equal(status, 201, text)
    assert.deepEqual([body.prediction.source, body.eta], ['default', null])
    const dry = await predict({ ...JOB, name: 'unlucky too' })
    assert.deepEqual([dry.status, dry.body.prediction.source, dry.body.eta], [200, 'default', null])
  } finally {
    await database.sql('alter table hidden rename to org_memories')
  }
  await waitFor('the fault to be counted', async () => {
    const [row] = await database.sql<{ faults: string }>(
      `select faults from prediction_faults where reason = 'inputs-error'`,
    )
    return Number(row?.faults) >= 1
  })
})

test('a champion whose weights cannot be read is passed over, and that is counted', async () => {
  await database.sql(
    `insert into models (version, status, weights, trained_on) values (1, 'champion', '\\x', 1000)`,
  )
  await waitFor('the fault to be counted', async () => {
    assert.equal((await submit(JOB)).status, 201)
    const rows = await database.sql(`select from prediction_faults where reason = 'corrupt-weights'`)
    return rows.length === 1
  })
})

/**
 * Submits it twice on its own, because the second run takes the path of a known series, and once in a batch.
 */
const submitEveryWay = async (name: string): Promise<void> => {
  for (const _ of [1, 2]) {
    const { status, text } = await submit({ ...JOB, name })
    assert.equal(status, 201, `${name}: ${text}`)
  }
  const jobs = [
    { ...JOB, name },
    { ...JOB, name, priority: 'low' },
  ]
  const batch = await edge.request('POST', '/jobs/batch', { json: { jobs }, token: ada.token })
  assert.equal(batch.status, 201, `${name}: ${batch.text}`)
}

test('a series whose mean has almost decayed to zero can be submitted', async () => {
  for (const meanLog of ['1e-60', '-3.9e-153', '5e-324']) {
    const name = `decayed to ${meanLog}`
    await seedJobs(database.run, ada, [newJob({ name })])
    await database.sql(
      `update series set runs = 19000, mean_log = $2::double precision, deviation_log = 0.01 where name = $1`,
      [name, meanLog],
    )
    await submitEveryWay(name)
  }
})

test('a series whose estimate is corrupt can be submitted', async () => {
  for (const [meanLog, deviationLog] of [
    ['NaN', '1'],
    ['Infinity', '1'],
    ['-Infinity', '1'],
    ['1e300', '1'],
    ['-1e300', '1'],
    ['1', 'NaN'],
    ['1', '1e308'],
    ['1', '-1e308'],
  ]) {
    const name = `corrupt ${meanLog} ${deviationLog}`
    await seedJobs(database.run, ada, [newJob({ name })])
    await database.sql(
      `update series set runs = 9, mean_log = $2::double precision, deviation_log = $3::double precision where name = $1`,
      [name, meanLog, deviationLog],
    )
    await submitEveryWay(name)
  }
})

test('jobs that the database rejects with a prediction are stored without it and counted, and do not affect others', async () => {
  await refusePredictions(database.sql, 'poisoned')
  const names = Array.from({ length: 30 }, (_, n) => (n % 10 === 3 ? 'poisoned' : `healthy ${n}`))
  const webhooks = webhooksOf(edge, ada)
  const source = await webhooks.make({ template: { name: 'poisoned', type: 'test', payload: { n: 1 } } })
  try {
    const answers = await Promise.all(names.map((name) => submit({ ...JOB, name })))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201])
    const keyed = { ...JOB, name: 'poisoned', idempotency_key: 'poisoned once' }
    const [first, again] = [await submit(keyed), await submit(keyed)]
    assert.deepEqual([first.status, again.status, again.body.id], [201, 200, first.body.id])
    const delivered = await send(edge, source, { n: 1 })
    assert.deepEqual([delivered.status, delivered.body.status], [202, 'accepted'], delivered.text)
    // On a busy machine the inputs of a prediction may arrive too late.
    await waitFor('a healthy job to be stored with its prediction', async () => {
      assert.equal((await submit({ ...JOB, name: 'another healthy one' })).status, 201)
      const rows = await database.sql(`select from jobs where name like '%healthy%' and sample is not null`)
      return rows.length > 0
    })
  } finally {
    await acceptPredictions(database.sql)
  }
  const stored = await database.sql<{ name: string; predicted: boolean }>(
    `select name, sample is not null as predicted from jobs where name = 'poisoned' or name like 'healthy %'`,
  )
  const [poisoned = [], healthy = []] = [true, false].map((is) =>
    stored.filter(({ name }) => (name === 'poisoned') === is),
  )
  assert.deepEqual([poisoned.length, healthy.length], [5, 27])
  assert.ok(poisoned.every(({ predicted }) => !predicted))
  await waitFor('the fault to be counted', async () => {
    const rows = await database.sql(`select from prediction_faults where reason = 'refused'`)
    return rows.length === 1
  })
})

test('the jobs of a large batch are predicted once for each look, and stored as few kinds', async () => {
  const jobs = Array.from({ length: 600 }, (_, n) => ({
    ...JOB,
    name: `batch ${n % 3}`,
    payload: { n: n % 7 },
  }))
  const answer = await edge.request('POST', '/jobs/batch', { json: { jobs }, token: ada.token })
  assert.equal(answer.status, 201, answer.text)
  const etas = answer.body.jobs.map(({ eta }: { eta: { start_at: string } }) => Date.parse(eta.start_at))
  assert.ok(etas.every((at: number, n: number) => n === 0 || at >= etas[n - 1]))
  assert.ok(etas.at(-1) - etas[0] > 500_000, 'on one slot they stand behind each other')
})
