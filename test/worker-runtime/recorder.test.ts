import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import type { EndedAttempt } from '../../db/queries/leases.ts'
import type { Query, Run } from '../../db/query.ts'
import { createLogWriter } from '../../worker-runtime/log-writer.ts'
import { createRecorder } from '../../worker-runtime/recorder.ts'

/** Answers statements in turn with an error or, if there is none left, as Postgres would. */
const fakeDatabase = (errors: (Error | undefined)[]) => {
  const sent: { name: string; states: string[] }[] = []
  const run: Run = async <Row>(query: Query<Row>): Promise<Row[]> => {
    const rows = JSON.parse(String(query.values[0])) as { job_id: string; state: string }[]
    sent.push({ name: query.name, states: rows.map(({ state }) => state) })
    const error = errors.shift()
    if (error) throw error
    return rows.map(({ job_id }) => ({ job_id })) as Row[]
  }
  const logs = createLogWriter({ run, onError: () => {} })
  return { sent, logs, recorder: createRecorder({ run, logs, onError: () => {} }) }
}

const sqlError = (code: string): Error => Object.assign(new pg.DatabaseError(code, 0, 'error'), { code })
const done = (n: number): EndedAttempt => ({ job_id: String(n), token: 't', state: 'completed', result: n })

test('a passing error of the database does not change the outcome', async () => {
  for (const code of ['57014', '53100', '25006', 'XX000', '08006', '40P01']) {
    const { sent, recorder } = fakeDatabase([sqlError(code)])
    assert.equal(await recorder.record(done(1)), true)
    assert.deepEqual(
      sent.map(({ states }) => states),
      [['completed'], ['completed']],
      code,
    )
  }
})

test('of many outcomes only the one that Postgres refuses is stored as failed', async () => {
  const refused = sqlError('22P05')
  const { sent, recorder } = fakeDatabase([undefined, refused, undefined, refused])
  const first = recorder.record(done(0))
  // These wait for the first and go together.
  const rest = [recorder.record(done(1)), recorder.record(done(2))]
  assert.deepEqual(await Promise.all([first, ...rest]), [true, true, true])
  assert.deepEqual(
    sent.map(({ states }) => states),
    [['completed'], ['completed', 'completed'], ['completed'], ['completed'], ['failed']],
  )
})

test('log lines are stored before the outcome, also when the first try fails', async () => {
  const { sent, logs, recorder } = fakeDatabase([sqlError('57P01')])
  logs.logFor({ job_id: '1', token: 't' }).error('why it failed')
  assert.equal(await recorder.record(done(1)), true)
  assert.deepEqual(
    sent.map(({ name }) => name),
    ['append-job-logs', 'append-job-logs', 'end-attempts'],
  )
})
