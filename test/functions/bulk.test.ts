import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { DatabaseUnavailable } from '../../functions/database-errors.ts'
import { sweepJobs } from '../../functions/jobs/sweep.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
import { newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  bob = await registerUser(edge)
})
beforeEach(async () => {
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const act = (action: 'cancel' | 'retry', json: unknown, account = ada) =>
  edge.request('POST', `/jobs/bulk/${action}`, { json, token: account.token })
const statusOf = async (id: string, account = ada) =>
  (await edge.request('GET', `/jobs/${id}`, { token: account.token })).body.status
const states = async (account: TestAccount) => {
  const rows = await database.sql<{ status: string; n: number }>(
    'select status, count(*)::int as n from job_overview where org_id = $1 group by status',
    [account.orgId],
  )
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
}

test('all jobs that fit are cancelled, whatever their state, and no others', async () => {
  const fit = { tags: ['doomed'] }
  const ids = []
  for (const state of ['pending', 'ready', 'running', 'retrying', 'blocked'] as const) {
    ids.push(await jobInState(database.run, ada, state, fit))
  }
  const done = await jobInState(database.run, ada, 'completed', fit)
  const other = await jobInState(database.run, ada, 'ready')
  const foreign = await jobInState(database.run, bob, 'ready', fit)
  const dry = await act('cancel', { filter: { tag: 'doomed' }, dry_run: true })
  assert.deepEqual(dry.body, { matched: 5, changed: 0, done: true })
  assert.equal(await statusOf(ids[0] ?? ''), 'pending', 'nothing was changed')
  const answer = await act('cancel', { filter: { tag: 'doomed' } })
  assert.deepEqual([answer.status, answer.body], [200, { matched: 5, changed: 5, done: true }])
  assert.deepEqual([...new Set(await Promise.all(ids.map((id) => statusOf(id))))], ['cancelled'])
  assert.deepEqual(
    [await statusOf(done), await statusOf(other), await statusOf(foreign, bob)],
    ['completed', 'ready', 'ready'],
  )
})

test('a text fits in bulk, too, together with the other fields', async () => {
  const named = await jobInState(database.run, ada, 'ready', { name: 'Import of orders', priority: 'high' })
  const tagged = await jobInState(database.run, ada, 'pending', { tags: ['orders'], priority: 'high' })
  const normal = await jobInState(database.run, ada, 'ready', { name: 'orders again' })
  const other = await jobInState(database.run, ada, 'ready', { priority: 'high' })
  const filter = { text: 'orders', priority: 'high' }
  const dry = await act('cancel', { filter, dry_run: true })
  assert.deepEqual(dry.body, { matched: 2, changed: 0, done: true })
  assert.deepEqual((await act('cancel', { filter })).body, { matched: 2, changed: 2, done: true })
  const all = [named, tagged, normal, other]
  const expected = ['cancelled', 'cancelled', 'ready', 'ready']
  assert.deepEqual(await Promise.all(all.map((id) => statusOf(id))), expected)
  const retried = await act('retry', { filter: { text: named } })
  assert.deepEqual(retried.body, { matched: 1, changed: 1, done: true })
})

test('failed and cancelled jobs that fit are retried', async () => {
  const failed = await jobInState(database.run, ada, 'failed', { type: 'flaky' })
  const cancelled = await jobInState(database.run, ada, 'cancelled', { type: 'flaky' })
  const other = await jobInState(database.run, ada, 'failed')
  await jobInState(database.run, bob, 'failed', { type: 'flaky' })
  const one = await act('retry', { filter: { type: 'flaky', status: 'cancelled' } })
  assert.deepEqual(one.body, { matched: 1, changed: 1, done: true })
  assert.deepEqual([await statusOf(failed), await statusOf(cancelled)], ['failed', 'ready'])
  const rest = await act('retry', { filter: { type: 'flaky' } })
  assert.deepEqual(rest.body, { matched: 1, changed: 1, done: true })
  assert.deepEqual([await statusOf(failed), await statusOf(other)], ['ready', 'failed'])
})

test('thousands of jobs take several statements, and none is left', async () => {
  await seedJobs(
    database.run,
    ada,
    Array.from({ length: 2500 }, () => newJob({ name: 'many' })),
  )
  const cancelled = await act('cancel', { filter: { name: 'many' } })
  assert.deepEqual(cancelled.body, { matched: 2500, changed: 2500, done: true })
  assert.deepEqual(await states(ada), { cancelled: 2500 })
  const retried = await act('retry', { filter: { name: 'many', created_after: '2020-01-01T00:00:00Z' } })
  assert.deepEqual(retried.body, { matched: 2500, changed: 2500, done: true })
  assert.deepEqual(await states(ada), { ready: 2500 })
})

test('a sweep passes over jobs that it cannot change', async () => {
  const jobs = Array.from({ length: 1200 }, () => newJob({ name: 'stubborn' }))
  await seedJobs(database.run, ada, jobs)
  const seen = new Set<string>()
  const sweep = await sweepJobs(
    database.run,
    { orgId: ada.orgId, filter: { name: 'stubborn' } },
    async (ids) => {
      for (const id of ids) seen.add(id)
      return { changed: 0, full: false }
    },
  )
  assert.deepEqual([sweep, seen.size], [{ matched: 1200, changed: 0, done: true }, 1200])
})

test('a sweep that the database interrupts returns what it has committed', async () => {
  const jobs = Array.from({ length: 1001 }, () => newJob({ name: 'stopped' }))
  await seedJobs(database.run, ada, jobs)
  const stopIn = async (step: number, rolledBack: boolean) => {
    let steps = 0
    const change = async (ids: string[]) => {
      if (++steps === step) throw new DatabaseUnavailable('The database took too long.', { rolledBack })
      return { changed: ids.length, full: false }
    }
    return sweepJobs(database.run, { orgId: ada.orgId, filter: { name: 'stopped' } }, change)
  }
  assert.deepEqual(await stopIn(2, true), { matched: 1000, changed: 1000, done: false })
  await assert.rejects(stopIn(1, true), DatabaseUnavailable, 'nothing was committed')
  await assert.rejects(stopIn(2, false), DatabaseUnavailable, 'the outcome is unknown')
})

test('a filter that says nothing, or asks for the impossible, is refused', async () => {
  assertProblem(await act('cancel', { filter: {} }), 422, 'invalid-request', '#/filter')
  assertProblem(await act('cancel', {}), 422, 'invalid-request', '#/filter')
  assertProblem(
    await act('cancel', { filter: { status: 'completed' } }),
    422,
    'invalid-request',
    '#/filter/status',
  )
  assertProblem(
    await act('retry', { filter: { status: 'running' } }),
    422,
    'invalid-request',
    '#/filter/status',
  )
  const fingerprint = 'a'.repeat(32)
  assertProblem(
    await act('cancel', { filter: { fingerprint } }),
    422,
    'invalid-request',
    '#/filter/fingerprint',
  )
  const cancelled = await act('retry', { filter: { fingerprint, status: 'cancelled' } })
  assertProblem(cancelled, 422, 'invalid-request', '#/filter/status')
  assertProblem(await act('retry', { filter: { colour: 'red' } }), 422, 'invalid-request', '#/filter/colour')
  assertProblem(await edge.request('POST', '/jobs/bulk/cancel', { json: {} }), 401, 'unauthenticated')
})
