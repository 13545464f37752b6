import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { JOB_STATES, type JobState } from '../../db/rules/job-states.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { jobInState } from '../support/job-in-state.ts'
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

/** What each action makes of a job in each state: the new state, or why not. */
const TABLE: Record<JobState, { cancel: string; retry: string }> = {
  pending: { cancel: 'cancelled', retry: 'not-retryable' },
  blocked: { cancel: 'cancelled', retry: 'not-retryable' },
  ready: { cancel: 'cancelled', retry: 'not-retryable' },
  running: { cancel: 'cancelled', retry: 'not-retryable' },
  retrying: { cancel: 'cancelled', retry: 'not-retryable' },
  completed: { cancel: 'already-finished', retry: 'not-retryable' },
  failed: { cancel: 'already-finished', retry: 'ready' },
  cancelled: { cancel: 'cancelled', retry: 'ready' },
}

const act = (action: 'cancel' | 'retry', id: string, account = ada) =>
  edge.request(action === 'cancel' ? 'PATCH' : 'POST', `/jobs/${id}/${action}`, { token: account.token })
const look = async (id: string) => (await edge.request('GET', `/jobs/${id}`, { token: ada.token })).body

for (const state of JOB_STATES) {
  for (const action of ['cancel', 'retry'] as const) {
    const expected = TABLE[state][action]
    test(`${action} of a ${state} job: ${expected}`, async () => {
      const id = await jobInState(database.run, ada, state)
      const before = await look(id)
      assert.equal(before.status, state)
      assertProblem(await act(action, id, bob), 404, 'not-found')
      assert.deepEqual(await look(id), before, 'a stranger changes nothing')
      const answer = await act(action, id)
      if (JOB_STATES.includes(expected as JobState)) {
        assert.equal(answer.status, 200, answer.text)
        assert.equal(answer.body.status, expected)
        assert.deepEqual(await look(id), answer.body)
      } else {
        assertProblem(answer, 409, expected)
        assert.match(answer.body.detail, new RegExp(state))
        assert.deepEqual(await look(id), before)
      }
      assert.equal(await placesOf(id), 1)
    })
  }
}

test('a job that does not exist can be neither cancelled nor retried', async () => {
  assertProblem(await act('cancel', crypto.randomUUID()), 404, 'not-found')
  assertProblem(await act('retry', 'none'), 404, 'not-found')
})

const placesOf = async (id: string): Promise<number> => {
  const tables = ['waiting_jobs', 'ready_jobs', 'held_jobs', 'blocked_jobs', 'finished_jobs']
  const counts = tables.map((table) => `(select count(*) from ${table} where job_id = $1)`).join(' + ')
  const [row] = await database.sql<{ places: number }>(`select (${counts})::int as places`, [id])
  return row?.places ?? 0
}
