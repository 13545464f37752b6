import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Answer, type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let account: TestAccount
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url })
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const JOB = { name: 'n', type: 'test', payload: { b: 1, a: { d: 2, c: 3 } } }

const submit = (json: object, key?: string, as = account): Promise<Answer> =>
  edge.request('POST', '/jobs', {
    json,
    token: as.token,
    ...(key !== undefined && { headers: { 'idempotency-key': key } }),
  })

const submitBatch = (jobs: object[], key?: string): Promise<Answer> =>
  edge.request('POST', '/jobs/batch', {
    json: { jobs },
    token: account.token,
    ...(key !== undefined && { headers: { 'idempotency-key': key } }),
  })

const countJobs = async (): Promise<number> =>
  (await database.sql('select from jobs where org_id = $1', [account.orgId])).length

test('100 submissions with one key at the same time are one job and 100 equal answers', async () => {
  account = await registerUser(edge)
  const answers = await Promise.all(Array.from({ length: 100 }, () => submit(JOB, 'one')))
  const statuses = answers.map(({ status }) => status).sort()
  assert.deepEqual([statuses.at(0), statuses.at(-2), statuses.at(-1)], [200, 200, 201])
  for (const { body } of answers) assert.deepEqual(body, answers[0]?.body)
  assert.equal(await countJobs(), 1)
})

test('the first job is answered as it was, whatever became of it', async () => {
  account = await registerUser(edge)
  const first = await submit({ ...JOB, run_at: '2999-01-01T00:00:00Z' }, 'again')
  assert.deepEqual([first.status, first.body.status], [201, 'pending'])
  await database.run(cancelJobs(account.orgId, [first.body.id]))
  const second = await submit({ ...JOB, run_at: '2999-01-01T00:00:00Z' }, 'again')
  assert.deepEqual([second.status, second.headers.get('idempotent-replayed')], [200, 'true'])
  assert.deepEqual(second.body, first.body)
})

test('the key may be in the header or in the body, and the same body may be written in another order', async () => {
  account = await registerUser(edge)
  const first = await submit(JOB, 'place')
  const payload = { a: { c: 3, d: 2 }, b: 1 }
  const second = await submit({
    idempotency_key: 'place',
    priority: 'normal',
    type: 'test',
    payload,
    name: 'n',
  })
  assert.deepEqual([second.status, second.body.id], [200, first.body.id])
  assertProblem(
    await submit({ ...JOB, idempotency_key: 'other' }, 'place'),
    422,
    'invalid-request',
    '#/idempotency_key',
  )
})

test('the same key with another body is refused, and keeps the first', async () => {
  account = await registerUser(edge)
  const first = await submit(JOB, 'reused')
  assertProblem(
    await submit({ ...JOB, payload: {} }, 'reused'),
    422,
    'idempotency-key-reused',
    '#/idempotency-key',
  )
  assertProblem(
    await submit({ ...JOB, name: 'm', idempotency_key: 'reused' }),
    422,
    'idempotency-key-reused',
    '#/idempotency_key',
  )
  assert.equal((await submit(JOB, 'reused')).body.id, first.body.id)
  assert.equal(await countJobs(), 1)
})

test('another organisation has keys of its own', async () => {
  account = await registerUser(edge)
  const other = await registerUser(edge)
  const [one, two] = [await submit(JOB, 'shared'), await submit(JOB, 'shared', other)]
  assert.deepEqual([one.status, two.status], [201, 201])
  assert.notEqual(one.body.id, two.body.id)
})

test('a key is good for 24 hours', async () => {
  account = await registerUser(edge)
  const first = await submit(JOB, 'daily')
  const age = (hours: number) =>
    database.sql(
      `update idempotency_keys set expires_at = expires_at - $2 * interval '1 hour' where org_id = $1`,
      [account.orgId, hours],
    )
  await age(23.9)
  assert.equal((await submit(JOB, 'daily')).body.id, first.body.id)
  await age(0.2)
  const next = await submit({ ...JOB, name: 'another' }, 'daily')
  assert.equal(next.status, 201)
  assert.equal((await submit({ ...JOB, name: 'another' }, 'daily')).body.id, next.body.id)
})

test('what was refused has used no key', async () => {
  account = await registerUser(edge)
  const [parent] = [await jobInState(database.run, account, 'failed')]
  const refused = await submit({ ...JOB, depends_on: [parent] }, 'later')
  assertProblem(refused, 422, 'failed-dependency')
  for (const fairness_key of ['', 'x'.repeat(201)]) {
    const invalid = { ...JOB, fairness_key }
    assertProblem(await submit(invalid, 'later'), 422, 'invalid-request', '#/fairness_key')
    const batch = await submitBatch([JOB, { ...invalid, idempotency_key: 'own' }], 'later')
    assertProblem(batch, 422, 'invalid-request', '#/jobs/1/fairness_key')
  }
  assert.deepEqual(
    await database.sql('select key from idempotency_keys where org_id = $1', [account.orgId]),
    [],
  )
  assert.equal(await countJobs(), 1, 'the parent')
  assert.equal((await submit(JOB, 'later')).status, 201)
})

test('a job whose parent has failed since is answered, not refused', async () => {
  account = await registerUser(edge)
  const parent = await jobInState(database.run, account, 'pending')
  const child = { ...JOB, depends_on: [parent] }
  const first = await submit(child, 'child')
  assert.equal(first.status, 201, first.text)
  await database.run(cancelJobs(account.orgId, [parent]))
  const second = await submit(child, 'child')
  assert.deepEqual([second.status, second.body.id], [200, first.body.id])
})

test('a batch is submitted once under its key, all of it', async () => {
  account = await registerUser(edge)
  const jobs = [{ ...JOB, ref: 'a' }, { ...JOB, depends_on: ['ref:a'] }, JOB]
  const answers = await Promise.all(Array.from({ length: 20 }, () => submitBatch(jobs, 'batch')))
  assert.deepEqual(
    [...new Set(answers.map(({ body }) => JSON.stringify(body.jobs.map(({ id }: { id: string }) => id))))]
      .length,
    1,
  )
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  assert.equal(await countJobs(), 3)
  assertProblem(await submitBatch([JOB], 'batch'), 422, 'idempotency-key-reused', '#/idempotency-key')
})

test('jobs of a batch may have keys of their own: those that are known are not submitted again', async () => {
  account = await registerUser(edge)
  const known = await submit(JOB, 'known')
  const jobs = [
    { ...JOB, ref: 'known', idempotency_key: 'known' },
    { ...JOB, idempotency_key: 'new', depends_on: ['ref:known'] },
    JOB,
  ]
  const first = await submitBatch(jobs)
  assert.equal(first.status, 201, first.text)
  assert.equal(first.body.jobs[0].id, known.body.id)
  assert.deepEqual(first.body.jobs[1].depends_on, [known.body.id])
  assert.equal(await countJobs(), 3)
  const keyed = await submitBatch(jobs.slice(0, 2))
  assert.equal(keyed.status, 200, keyed.text)
  assert.deepEqual(keyed.body.jobs, first.body.jobs.slice(0, 2))
  assert.equal(await countJobs(), 3)
  const wrong = [JOB, { ...JOB, name: 'm', idempotency_key: 'new' }]
  assertProblem(await submitBatch(wrong), 422, 'idempotency-key-reused', '#/jobs/1/idempotency_key')
  assert.equal(await countJobs(), 3, 'none of it')
})

test('a new job that depends on a known one which has failed is refused, at its own place', async () => {
  account = await registerUser(edge)
  const known = await submit(JOB, 'fails')
  await database.run(cancelJobs(account.orgId, [known.body.id]))
  const jobs = [
    { ...JOB, ref: 'known', idempotency_key: 'fails' },
    { ...JOB, depends_on: ['ref:known'] },
  ]
  assertProblem(await submitBatch(jobs), 422, 'failed-dependency', '#/jobs/1/depends_on/0')
  assert.equal(await countJobs(), 1)
})

test('a batch of keyed jobs whose outer parent has failed since is answered', async () => {
  account = await registerUser(edge)
  const parent = await jobInState(database.run, account, 'pending')
  const jobs = [
    { ...JOB, idempotency_key: 'a', depends_on: [parent] },
    { ...JOB, idempotency_key: 'b', depends_on: [parent] },
  ]
  const first = await submitBatch(jobs)
  assert.equal(first.status, 201, first.text)
  await database.run(cancelJobs(account.orgId, [parent]))
  const second = await submitBatch(jobs)
  assert.equal(second.status, 200, second.text)
  assert.deepEqual(
    second.body.jobs.map(({ id }: { id: string }) => id),
    first.body.jobs.map(({ id }: { id: string }) => id),
  )
})

test('a known job is answered with what it waits for, and another parent is another body', async () => {
  account = await registerUser(edge)
  const child = { ...JOB, idempotency_key: 'child', depends_on: ['ref:p'] }
  const first = await submitBatch([{ ...JOB, ref: 'p' }, child])
  const [parent] = first.body.jobs
  const second = await submitBatch([{ ...JOB, ref: 'p' }, child])
  assert.equal(second.status, 201, second.text)
  assert.notEqual(second.body.jobs[0].id, parent.id, 'the parent has no key')
  assert.deepEqual(second.body.jobs[1].depends_on, [parent.id])
  const other = await submitBatch([{ ...JOB, ref: 'p', name: 'another' }, child])
  assertProblem(other, 422, 'idempotency-key-reused', '#/jobs/1/idempotency_key')
})

test('a batch in which all depend on all before takes no longer for having keys', async () => {
  account = await registerUser(edge)
  const jobs = Array.from({ length: 200 }, (_, n) => ({
    ...JOB,
    ref: `${n}`,
    idempotency_key: `deep-${n}`,
    depends_on: Array.from({ length: Math.min(n, 3) }, (_, back) => `ref:${n - 1 - back}`),
  }))
  const first = await submitBatch(jobs)
  assert.equal(first.status, 201, first.text)
  const second = await submitBatch(jobs)
  assert.equal(second.status, 200, second.text)
  assert.deepEqual(second.body, first.body)
})

test('keys that contradict each other are refused', async () => {
  account = await registerUser(edge)
  const keyed = { ...JOB, idempotency_key: 'k' }
  assertProblem(await submitBatch([keyed, keyed]), 422, 'invalid-request', '#/jobs/1/idempotency_key')
  assertProblem(await submitBatch([JOB, keyed], 'whole'), 422, 'invalid-request', '#/jobs/1/idempotency_key')
  assertProblem(await submit(JOB, 'x'.repeat(256)), 422, 'invalid-request', '#/idempotency-key')
  assertProblem(await submit({ ...JOB, idempotency_key: '' }), 422, 'invalid-request', '#/idempotency_key')
})
