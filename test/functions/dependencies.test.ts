import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { COMPLETED, claimJob, claimTypes, end, FAILED } from '../support/job-in-state.ts'
import { assertProblem } from '../support/problem.ts'

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

const minimal = { name: 'report', type: 'test', payload: {} }
const submit = (json: object, account = ada) =>
  edge.request('POST', '/jobs', { json: { ...minimal, ...json }, token: account.token })
const submitBatch = (jobs: object[], account = ada) =>
  edge.request('POST', '/jobs/batch', {
    json: { jobs: jobs.map((job) => ({ ...minimal, ...job })) },
    token: account.token,
  })
const statusOf = async (id: string) =>
  (await edge.request('GET', `/jobs/${id}`, { token: ada.token })).body.status
const countJobs = async () => (await database.sql<{ n: number }>('select count(*)::int as n from jobs'))[0]?.n

/** Starts the job and ends it. */
const finish = async (id: string, state: 'completed' | 'failed'): Promise<void> =>
  end(database.run, await claimJob(database.run, id), state === 'completed' ? COMPLETED : FAILED)

test('a job waits for the jobs that it depends on', async () => {
  const parent = (await submit({})).body
  const answer = await submit({ depends_on: [parent.id.toUpperCase(), parent.id] })
  assert.equal(answer.status, 201, answer.text)
  const child = answer.body
  assert.deepEqual([child.status, child.depends_on], ['blocked', [parent.id]])
  const read = await edge.request('GET', `/jobs/${child.id}`, { token: ada.token })
  assert.deepEqual(read.body, child)
  await finish(parent.id, 'completed')
  assert.equal(await statusOf(child.id), 'ready')
  assert.equal(
    (await submit({ depends_on: [parent.id] })).body.status,
    'ready',
    'a completed parent is no obstacle',
  )
  await claimTypes(database.run, ['test'])
})

test('a parent that is unknown, or of another organisation, is refused by its place', async () => {
  const own = (await submit({})).body
  const foreign = (await submit({}, bob)).body
  const before = await countJobs()
  const unknown = await submit({ depends_on: [own.id, crypto.randomUUID()] })
  assertProblem(unknown, 422, 'unknown-dependency', '#/depends_on/1')
  assertProblem(await submit({ depends_on: [foreign.id] }), 422, 'unknown-dependency', '#/depends_on/0')
  assertProblem(await submit({ depends_on: ['ref:a'] }), 422, 'invalid-request', '#/depends_on/0')
  const batch = await submitBatch([{}, {}, { depends_on: [own.id, foreign.id] }])
  assertProblem(batch, 422, 'unknown-dependency', '#/jobs/2/depends_on/1')
  assert.equal(await countJobs(), before, 'nothing of it was kept')
  await claimTypes(database.run, ['test'])
})

test('a parent that has failed is refused, unless the job would wait for it', async () => {
  const parent = (await submit({})).body
  await finish(parent.id, 'failed')
  assertProblem(await submit({ depends_on: [parent.id] }), 422, 'failed-dependency', '#/depends_on/0')
  const patient = await submit({ depends_on: [parent.id], on_parent_failure: 'wait' })
  assert.deepEqual([patient.status, patient.body.status], [201, 'blocked'])
})

test('a batch is answered in order, and its jobs may depend on each other', async () => {
  const outside = (await submit({})).body
  const answer = await submitBatch([
    { name: 'load', ref: 'load', depends_on: ['ref:extract', 'ref:clean'] },
    { name: 'clean', ref: 'clean', depends_on: ['ref:extract', 'ref:extract'] },
    { name: 'extract', ref: 'extract', depends_on: [outside.id] },
    { name: 'free' },
  ])
  assert.equal(answer.status, 201, answer.text)
  const [load, clean, extract, free] = answer.body.jobs
  assert.deepEqual([load.name, clean.name, extract.name, free.name], ['load', 'clean', 'extract', 'free'])
  assert.deepEqual(load.depends_on, [clean.id, extract.id].sort())
  assert.deepEqual([clean.depends_on, extract.depends_on, free.depends_on], [[extract.id], [outside.id], []])
  assert.deepEqual(
    [load.status, clean.status, extract.status, free.status],
    ['blocked', 'blocked', 'blocked', 'ready'],
  )
  for (const job of [outside, extract, clean, load]) await finish(job.id, 'completed')
  assert.equal(await statusOf(load.id), 'completed')
})

test('references that go in a circle, to nowhere or to two jobs are refused by their places', async () => {
  const before = await countJobs()
  const circle = await submitBatch([
    { ref: 'a', depends_on: ['ref:c'] },
    { ref: 'b', depends_on: ['ref:a'] },
    { ref: 'c', depends_on: ['ref:b'] },
    { depends_on: ['ref:a'] },
  ])
  assertProblem(circle, 422, 'dependency-cycle', '#/jobs/0/depends_on/0')
  assertProblem(circle, 422, 'dependency-cycle', '#/jobs/1/depends_on/0')
  assert.match(circle.body.detail, /a → c → b → a/)
  const self = await submitBatch([{}, { ref: 'me', depends_on: ['ref:me'] }])
  assertProblem(self, 422, 'dependency-cycle', '#/jobs/1/depends_on/0')
  const nowhere = await submitBatch([{ ref: 'a' }, { depends_on: ['ref:a', 'ref:b'] }])
  assertProblem(nowhere, 422, 'unknown-dependency', '#/jobs/1/depends_on/1')
  const twice = await submitBatch([{ ref: 'a' }, { ref: 'a' }])
  assertProblem(twice, 422, 'invalid-request', '#/jobs/1/ref')
  assert.equal(await countJobs(), before)
})

test('a chain of a thousand jobs is one batch', async () => {
  const jobs = Array.from({ length: 1000 }, (_, n) => ({
    ref: `${n}`,
    depends_on: n > 0 ? [`ref:${n - 1}`] : [],
  }))
  const answer = await submitBatch(jobs)
  assert.equal(answer.status, 201, answer.text.slice(0, 500))
  assert.equal(answer.body.jobs.filter(({ status }: { status: string }) => status === 'blocked').length, 999)
})
