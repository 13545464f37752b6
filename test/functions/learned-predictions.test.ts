import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { createWeights, type Weights } from '../../functions/prediction/lstm/weights.ts'
import { serializeWeights } from '../../functions/prediction/lstm/weights-format.ts'
import { INPUTS } from '../../functions/prediction/model/encoder.ts'
import { EXPERTS, type Expert } from '../../functions/prediction/model/experts.ts'
import { unpackSample } from '../../functions/prediction/model/sample.ts'
import { emptyMemory, type PastRun, packMemory } from '../../functions/prediction/model/series-memory.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claim, completed, end, newJob, seedJobs } from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

beforeEach(() => reportLive(database.run))

const textOf = (bytes: number) => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) })

const ask = async (path: string, name: string, payload: object = {}) => {
  const { status, body, text } = await edge.request('POST', path, {
    json: { name, type: 'test', payload },
    token: ada.token,
  })
  assert.ok(status === 200 || status === 201, text)
  return body
}
const predict = async (name: string, payload?: object) =>
  (await ask('/predictions', name, payload)).prediction

test('once a job has run, the next of its series is predicted by that', async () => {
  assert.equal((await ask('/jobs', 'ran once')).prediction.source, 'default')
  const [held] = await claim(database.run)
  assert.ok(held)
  await end(database.run, completed(held, null, 250))
  await waitFor('the functions to see it', async () => (await predict('ran once')).source === 'series')
  assert.equal((await predict('ran once')).p50_ms, 250)
})

/** A network whose head says that everything takes longer than the baseline by `p50` in ln. */
const weightsThatSay = (p50: number): Weights => {
  const weights = createWeights({ inputs: INPUTS, hidden: 32, heads: 2 }, 1)
  weights.parameters.by.set([p50, p50 + 0.5])
  return weights
}

const promote = async (version: number, weights: Weights): Promise<void> => {
  await database.sql(`update models set status = 'retired' where status = 'champion'`)
  await database.sql(
    `insert into models (version, status, weights, trained_on, only_org) values ($1, 'champion', $2, 1000, $3)`,
    [version, Buffer.from(serializeWeights(weights)), ada.orgId],
  )
}

const remember = async (name: string, runs: PastRun[], best: Expert): Promise<void> => {
  await seedJobs(database.run, ada, [newJob({ name })])
  await database.sql(`update series set runs = 40, mean_log = 7, deviation_log = 1 where name = $1`, [name])
  const errors = [...EXPERTS.map((expert) => (expert === best ? 1 : 40)), 20]
  const memory = packMemory({ ...emptyMemory(), runs, seen: 40, errors, weight: 40 })
  await database.sql(
    `insert into series_memories (series_id, org_id, memory) select id, org_id, $2 from series where name = $1`,
    [name, Buffer.from(memory)],
  )
}

const run = (bytes: number, ms: number): PastRun => ({
  log: Math.log(ms),
  sizeLog: Math.log1p(bytes),
  timeoutLog: 0,
  cpuLog: Math.log1p(1),
  gapLog: 0,
  hour: 12,
})

test('a job of a large payload is predicted by those that were as large', async () => {
  const runs = Array.from({ length: 20 }, (_, n) => (n % 2 ? run(100, 50) : run(5_000, 20_000)))
  await remember('by size', runs, 'kernel')
  const [small, large] = [await predict('by size', textOf(100)), await predict('by size', textOf(5_000))]
  assert.equal(small.source, 'series')
  assert.ok(Math.abs(Math.log(small.p50_ms / 50)) < 0.2, `${small.p50_ms} ms`)
  assert.ok(Math.abs(Math.log(large.p50_ms / 20_000)) < 0.2, `${large.p50_ms} ms`)
})

test('with a champion, jobs are stored with its version and what it saw, and the next one needs no restart', async () => {
  // The other experts say between 245 and 3,300 ms: the network may say anything between.
  await remember('by the network', [run(5_000, 3_300), run(5_000, 3_300), run(100, 245)], 'lstm')
  for (const [version, p50] of [
    [1, 1],
    [2, -1],
  ] as const) {
    const before = Date.now()
    await promote(version, weightsThatSay(p50))
    const body = await waitFor(`version ${version} to predict`, async () => {
      const answer = await ask('/jobs', 'by the network', textOf(100))
      return answer.prediction.model_version === version && answer
    })
    assert.ok(Date.now() - before < 9_000, 'within seconds')
    assert.equal(body.prediction.source, 'lstm')
    assert.ok(Math.abs(Math.log(body.prediction.p50_ms) - (7 + p50)) < 0.1, `${body.prediction.p50_ms} ms`)
    const [row] = await database.sql<{ model_version: number; sample: Buffer; residual_log: number }>(
      'select model_version, sample, residual_log from jobs where id = $1',
      [body.id],
    )
    const sample = row && unpackSample(row.sample)
    assert.equal(row?.model_version, version)
    assert.ok(Math.abs((row?.residual_log ?? 0) - p50) < 0.1)
    assert.ok(Math.abs((sample?.advice[EXPERTS.indexOf('lstm')] ?? 0) - (7 + p50)) < 0.01)
    assert.ok(Math.abs((sample?.sizeLog ?? 0) - Math.log1p(100)) < 0.01)
  }
})

test('a thousand jobs that all look different are predicted in one request', async () => {
  const jobs = Array.from({ length: 1_000 }, (_, n) => ({
    name: 'by the network',
    type: 'test',
    payload: textOf(100 + n),
  }))
  const { status, body, text } = await edge.request('POST', '/jobs/batch', {
    json: { jobs },
    token: ada.token,
  })
  assert.equal(status, 201, text)
  const versions = body.jobs.map(
    (job: { prediction: { model_version: number } }) => job.prediction.model_version,
  )
  assert.deepEqual(new Set(versions), new Set([2]))
})

test('a network of another shape is passed over, counted, and predictions go on', async () => {
  await promote(3, createWeights({ inputs: INPUTS + 1, hidden: 32, heads: 2 }, 1))
  await waitFor('the fault to be counted', async () => {
    const { prediction } = await ask('/jobs', 'by the network', textOf(100))
    assert.ok(prediction.p50_ms > 0)
    const rows = await database.sql(`select from prediction_faults where reason = 'corrupt-weights'`)
    return rows.length === 1
  })
  assert.deepEqual((await predict('by the network', textOf(100))).model_version, null)
})
