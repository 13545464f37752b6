import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claim, completed, end, newJob, seedJobs } from '../support/jobs.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const card = async (account = ada) => {
  const { status, body, text } = await edge.request('GET', '/model', { token: account.token })
  assert.equal(status, 200, text)
  return body
}

test('before anything was learned the card says so', async () => {
  const body = await card()
  assert.deepEqual([body.version, body.trained_on, body.learned], [null, 0, 0])
  assert.deepEqual([body.versions, body.accuracy_over_time, body.faults], [[], [], []])
  assert.deepEqual(body.calibration, { p90_coverage: null, over: 0 })
  assert.deepEqual(body.eta, {
    jobs: 0,
    median_abs_error_s: null,
    mean_abs_error_s: null,
    within_p90: null,
  })
  assert.ok(body.inputs.length > 0 && body.known_limits.length > 0)
})

test('the card shows the versions, how good they were, and never the weights', async () => {
  await database.sql(
    `insert into models (version, parent, status, weights, decided_at, trained_on, evaluation) values
      (1, null, 'retired', '\\x00', now(), 1000, '{"reason": "the first"}'),
      (2, 1, 'champion', '\\x5345435245545f57454947485453', now(), 2000, '{"z": 3.1}'),
      (3, 2, 'rejected', '\\x00', now(), 2100, '{}')`,
  )
  await database.sql(
    `update learning_state set learned = 2500, by_source = '{"lstm": 400, "series": 100}',
      accuracy = '{"errors": {"lstm": 0.21, "series": 0.3}}'`,
  )
  await database.sql(
    `insert into accuracy_points (at, model_version, accuracy)
    select
      now() - n * interval '1 hour', 2,
      '{"errors": {"series": 0.3}, "coverage": 0.9, "mape": 20, "drift": 0}' || jsonb_build_object('executions', 100 + n)
    from generate_series(0, 200) n`,
  )
  const body = await card()
  assert.deepEqual([body.version, body.trained_on, body.learned], [2, 2000, 2500])
  assert.deepEqual(
    body.versions.map(({ version, status }: { version: number; status: string }) => [version, status]),
    [
      [3, 'rejected'],
      [2, 'champion'],
      [1, 'retired'],
    ],
  )
  assert.deepEqual(body.versions[1].evaluation, { z: 3.1 })
  assert.equal(body.accuracy_over_time.length, 168)
  assert.equal(body.accuracy_over_time[0].executions, 100)
  assert.deepEqual(body.calibration, { p90_coverage: 0.9, over: 100 })
  assert.deepEqual(body.mixture.mean_abs_log_error, { lstm: 0.21, series: 0.3 })
  assert.deepEqual(body.sources, { lstm: 400, series: 100 })
  assert.doesNotMatch(JSON.stringify(body), /weights|SECRET/i)
})

test('the champion is on the card, however many have been rejected since', async () => {
  await database.sql(
    `insert into models (version, parent, status, trained_on)
    select n, 2, 'rejected', 2100 from generate_series(100, 160) n`,
  )
  const body = await card()
  assert.equal(body.version, 2)
  assert.equal(body.versions.length, 50)
  assert.equal(body.versions.at(-1).version, 2)
  await database.sql('delete from models where version >= 100')
})

test('the card says how well starts were kept, of jobs of the own organisation', async () => {
  const prediction = {
    p50Log: Math.log(1000),
    p90Log: Math.log(2000),
    p99Log: null,
    source: 'series' as const,
    modelVersion: null,
    spreadLog: 0,
    residualLog: 0,
    sample: null,
    promisedWaitMs: 60_000,
  }
  await seedJobs(database.run, ada, [newJob({ prediction }), newJob()])
  for (const held of await claim(database.run, 'w', 2)) await end(database.run, completed(held))
  const { eta } = await card()
  assert.equal(eta.jobs, 1, 'one of the two was promised a start')
  assert.ok(eta.median_abs_error_s > 50 && eta.median_abs_error_s <= 60, 'it started at once')
  assert.deepEqual([eta.mean_abs_error_s, eta.within_p90], [eta.median_abs_error_s, 1])
  assert.equal((await card(bob)).eta.jobs, 0)
})
