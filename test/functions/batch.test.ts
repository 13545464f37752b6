import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
before(async () => {
  database = await createTestDatabase()
  const schema = z.toJSONSchema(z.strictObject({ url: z.url() }), { io: 'input' })
  await database.run(
    registerJobTypes([
      { type: 'test', payload_schema: {} },
      { type: 'typed', payload_schema: schema },
    ]),
  )
  edge = await startEdge({ databaseUrl: database.url })
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const minimal = { name: 'report', type: 'test', payload: {} }
const send = (json: unknown) => edge.request('POST', '/jobs/batch', { json, token: ada.token })
const written = async () => (await database.sql<{ n: number }>('select count(*)::int as n from jobs'))[0]?.n

test('all jobs of a batch are committed, each as it was sent', async () => {
  const jobs = [
    { ...minimal, name: 'first', priority: 'critical', tags: ['a'] },
    { ...minimal, name: 'second', run_at: '2999-01-01T00:00:00Z' },
    { ...minimal, fairness_key: 'customer-42' },
    { ...minimal, fairness_key: 'customer-43' },
    { ...minimal, type: 'typed', payload: { url: 'https://example.com/' } },
  ]
  const answer = await send({ jobs })
  assert.equal(answer.status, 201, answer.text)
  assert.deepEqual(
    answer.body.jobs.map((job: Record<string, unknown>) => [job.name, job.type, job.priority, job.status]),
    [
      ['first', 'test', 'critical', 'ready'],
      ['second', 'test', 'normal', 'pending'],
      ['report', 'test', 'normal', 'ready'],
      ['report', 'test', 'normal', 'ready'],
      ['report', 'typed', 'normal', 'ready'],
    ],
  )
  const keys = answer.body.jobs.map((job: Record<string, unknown>) => job.fairness_key)
  assert.deepEqual(keys, [null, null, 'customer-42', 'customer-43', null])
  for (const job of answer.body.jobs) {
    const read = await edge.request('GET', `/jobs/${job.id}`, { token: ada.token })
    assert.deepEqual(read.body, job)
  }
})

test('one bad job refuses the batch, and each fault is named by its place', async () => {
  const before = await written()
  const shape = await send({ jobs: [minimal, { ...minimal, name: '' }, { ...minimal, colour: 'red' }] })
  assertProblem(shape, 422, 'invalid-request', '#/jobs/1/name')
  assertProblem(shape, 422, 'invalid-request', '#/jobs/2/colour')
  const type = await send({ jobs: [minimal, { ...minimal, type: 'unheard-of' }] })
  assertProblem(type, 422, 'unknown-job-type', '#/jobs/1/type')
  const payload = await send({ jobs: [minimal, { ...minimal, type: 'typed', payload: { url: 7 } }] })
  assertProblem(payload, 422, 'invalid-request', '#/jobs/1/payload/url')
  assert.equal(await written(), before)
})

test('a thousand faults are told by the first fifty and their number', async () => {
  const bad = Array.from({ length: 1000 }, () => ({ ...minimal, type: 'typed' }))
  const answer = await send({ jobs: bad })
  assertProblem(answer, 422, 'invalid-request', '#/jobs/0/payload/url')
  assert.equal(answer.body.errors.length, 50)
  assert.match(answer.body.detail, /and 999 more/)
})

test('a batch has one to a thousand jobs', async () => {
  assertProblem(await send({ jobs: [] }), 422, 'invalid-request', '#/jobs')
  assertProblem(await send({ jobs: Array(1001).fill(minimal) }), 422, 'invalid-request', '#/jobs')
  assertProblem(await send([minimal]), 422, 'invalid-request')
  const full = await send({ jobs: Array(1000).fill(minimal) })
  assert.equal(full.status, 201)
  assert.equal(new Set(full.body.jobs.map(({ id }: { id: string }) => id)).size, 1000)
})

test('a batch may have 5 MiB, and its jobs as many levels as one sent alone', async () => {
  const large = { ...minimal, payload: { text: 'x'.repeat(230 * 1024) } }
  assert.equal((await send({ jobs: Array(20).fill(large) })).status, 201)
  assertProblem(await send({ jobs: Array(24).fill(large) }), 413, 'body-too-large')
  const nest = (depth: number): object => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
  const deep = { ...minimal, payload: nest(31) }
  assert.equal((await edge.request('POST', '/jobs', { json: deep, token: ada.token })).status, 201)
  assert.equal((await send({ jobs: [deep] })).status, 201)
  assertProblem(await send({ jobs: [{ ...minimal, payload: nest(32) }] }), 400, 'malformed-body')
})
