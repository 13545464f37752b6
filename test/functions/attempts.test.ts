import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { releaseJobs } from '../../db/queue/leases.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { COMPLETED, claimJob, end, FAILED, FAILURE, jobInState } from '../support/job-in-state.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const read = (id: string, query = '', account = ada) =>
  edge.request('GET', `/jobs/${id}/attempts${query}`, { token: account.token })
const outcomes = async (id: string) =>
  (await read(id)).body.items.map((item: { attempt: number; outcome: string }) => [
    item.attempt,
    item.outcome,
  ])

test('each attempt is told with how it ended', async () => {
  const [id] = await seedJobs(database.run, ada, [newJob({ type: 'story' })])
  assert.ok(id)
  const start = () => claimJob(database.run, id, 'story')
  const wake = () =>
    database.sql(`
      with woken as (delete from waiting_jobs where job_id = '${id}' returning job_id, attempts)
      insert into ready_jobs (job_id, org_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms)
      select q.job_id, q.org_id, q.series_id, q.type, q.flow, q.lane, w.attempts, q.cpu_units, q.memory_mb, q.predicted_ms
      from woken w join queue_entries q using (job_id)`)
  assert.deepEqual((await read(id)).body, { items: [], next_cursor: null })
  await end(database.run, await start(), { outcome: 'failed', error: FAILURE, permanent: false })
  await wake()
  await end(database.run, await start(), { outcome: 'snoozed', delayMs: 0 })
  await wake()
  const last = await start()
  const running = (await read(id)).body.items.at(-1)
  assert.deepEqual(
    [running.attempt, running.outcome, running.finished_at, running.runtime_ms, running.worker_id],
    [2, 'running', null, null, 'worker-1'],
  )
  await end(database.run, last, FAILED)
  const told = [
    [1, 'failed'],
    [2, 'snoozed'],
    [2, 'failed'],
  ]
  assert.deepEqual(await outcomes(id), told)
  await database.run(retryJobs(ada.orgId, [id]))
  assert.deepEqual(await outcomes(id), told, 'a retry keeps the history')
  await end(database.run, await start(), COMPLETED, 1234.4)
  assert.deepEqual(await outcomes(id), [...told, [1, 'completed']])
  const { items } = (await read(id)).body
  assert.deepEqual([items[0].error, items[3].error, items[3].runtime_ms], [FAILURE, null, 1234])
  const page = (await read(id, '?limit=3')).body
  const next = (await read(id, `?limit=3&cursor=${page.next_cursor}`)).body
  assert.deepEqual([page.items.length, next.items, next.next_cursor], [3, items.slice(3), null])
})

test('an attempt that was cancelled, or lost with its worker, says so', async () => {
  const cancelled = await jobInState(database.run, ada, 'running')
  await database.run(cancelJobs(ada.orgId, [cancelled]))
  assert.deepEqual(await outcomes(cancelled), [[1, 'cancelled']])
  await database.run(retryJobs(ada.orgId, [cancelled]))
  assert.deepEqual(await outcomes(cancelled), [[1, 'cancelled']])
  const lost = await jobInState(database.run, ada, 'failed')
  await database.sql(
    `update finished_jobs set error = '{"code":"worker_lost","message":"Gone."}' where job_id = $1`,
    [lost],
  )
  assert.deepEqual(await outcomes(lost), [[1, 'lost']])
  await database.run(retryJobs(ada.orgId, [lost]))
  assert.deepEqual(await outcomes(lost), [[1, 'lost']])
})

test('an attempt that a stopping worker gave back is told, and does not count', async () => {
  const [id] = await seedJobs(database.run, ada, [newJob({ type: 'given-back' })])
  assert.ok(id)
  await database.run(releaseJobs([await claimJob(database.run, id, 'given-back')], 'shutdown'))
  assert.deepEqual(await outcomes(id), [[1, 'given_back']])
  await claimJob(database.run, id, 'given-back')
  assert.deepEqual(await outcomes(id), [
    [1, 'given_back'],
    [1, 'running'],
  ])
})

test('a job that was never started has no attempts, and one of others does not exist', async () => {
  const id = await jobInState(database.run, ada, 'cancelled')
  assert.deepEqual(await outcomes(id), [])
  assertProblem(await read(id, '', bob), 404, 'not-found')
  const tooGreat = Buffer.from('9999999999999999999').toString('base64url')
  for (const cursor of ['x', tooGreat]) {
    assertProblem(await read(id, `?cursor=${cursor}`), 422, 'invalid-request', '#/cursor')
  }
})
