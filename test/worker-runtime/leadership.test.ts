import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { wakeDueJobs } from '../../db/queue/upkeep.ts'
import type { Duty } from '../../worker-runtime/duties.ts'
import { createLeader } from '../../worker-runtime/leader.ts'
import { createLeadership, type Leadership } from '../../worker-runtime/leadership.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { newJob, seedJobs, seedTenant } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { keepLog, startWorker, type TestWorker } from '../support/worker.ts'

let database: TestDatabase
const candidates: Leadership[] = []

before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())
afterEach(() => Promise.all(candidates.splice(0).map((candidate) => candidate.stop())))

const stand = (workerId: string): Leadership => {
  const leadership = createLeadership({
    url: database.url,
    workerId,
    applicationName: workerId,
    logger: keepLog().logger,
    onError: () => {},
  })
  candidates.push(leadership)
  leadership.start()
  return leadership
}
const untilLeads = (candidate: Leadership) => waitFor('a leader', () => candidate.term() !== undefined, 5_000)
const leader = async () => {
  const [row] = await database.sql<{ worker_id: string; term: string; gap_ms: number }>(
    `select worker_id, term, extract(epoch from elected_at - last_seen)::float * 1000 as gap_ms from scheduler_leader`,
  )
  assert.ok(row)
  return row
}

test('one leads at a time; when it stops another takes over at once, in a later term', async () => {
  const first = stand('a')
  await untilLeads(first)
  const second = stand('b')
  const third = stand('c')
  const firstTerm = Number(first.term())
  assert.deepEqual([second.term(), third.term()], [undefined, undefined])
  const stoppedAt = performance.now()
  await first.stop()
  assert.equal(first.term(), undefined)
  await waitFor('a successor', () => second.term() ?? third.term(), 5_000)
  const ms = performance.now() - stoppedAt
  assert.ok(ms < 2_000, `${ms} ms`)
  assert.equal([second, third].filter((candidate) => candidate.term() !== undefined).length, 1)
  assert.equal(Number(second.term() ?? third.term()), firstTerm + 1)
})

test('a leader that loses its session leads no more, and stands again', async () => {
  const first = stand('a')
  await untilLeads(first)
  const term = Number(first.term())
  await database.sql(`select pg_terminate_backend(backend_pid) from scheduler_leader`)
  await waitFor('it to notice', () => Number(first.term() ?? term) !== term, 5_000)
  assert.equal(Number(first.term()), term + 1)
})

test('a leader that finds another on its row leads no more', async () => {
  const first = stand('a')
  await untilLeads(first)
  const term = Number(first.term())
  await database.sql('update scheduler_leader set term = term + 10')
  await waitFor('it to notice', () => first.term() !== String(term), 5_000)
  await waitFor('a new term', () => Number(first.term() ?? 0) > term + 10, 5_000)
})

test('duties run while this worker leads, and under its term', async () => {
  const terms: string[] = []
  let term: string | undefined
  const duty: Duty = {
    name: 'a duty',
    step: async (inTerm) => {
      terms.push(inTerm)
      return 1
    },
  }
  const leads: Leadership = { start: () => {}, term: () => term, stop: async () => {} }
  const errors: string[] = []
  const broken: Duty = { name: 'broken', step: () => Promise.reject(new Error('x')) }
  const parts = createLeader({
    leadership: leads,
    duties: [duty, broken],
    onError: (name) => errors.push(name),
  })
  parts.start()
  await new Promise(setImmediate)
  assert.deepEqual([terms, errors], [[], []], 'a standby does nothing')
  term = '7'
  await waitFor('duties', () => terms.length > 3 && errors.length > 0)
  assert.deepEqual([...new Set(terms)], ['7'])
  assert.deepEqual([...new Set(errors)], ['broken'], 'a broken duty does not disturb the others')
  term = undefined
  const done = terms.length
  await parts.stop()
  assert.ok(terms.length <= done + 1)
})

test('when the leader stands still another leads within two seconds, and it cannot write when it goes on', async (t) => {
  const tenant = await seedTenant(database.run)
  const frozen: TestWorker = await startWorker(database.url)
  t.after(() => frozen.kill())
  await waitFor('the process to lead', async () => (await leader()).worker_id === frozen.id)
  const oldTerm = (await leader()).term
  const standby = stand('standby')
  await waitFor('a standby', async () => {
    const sessions = await database.sql(`select from pg_stat_activity where application_name = 'standby'`)
    return sessions.length > 0
  })
  frozen.freeze()
  const heard = await waitFor('silence', async () => {
    const [row] = await database.sql<{ heard: Date; silent: boolean }>(
      `select state_change as heard, state_change < now() - interval '600 ms' as silent
       from scheduler_leader l
       join pg_stat_activity a on a.pid = l.backend_pid`,
    )
    return row?.silent && row.heard
  })
  await untilLeads(standby)
  const [took] = await database.sql<{ ms: number }>(
    'select extract(epoch from elected_at - $1::timestamptz)::float * 1000 as ms from scheduler_leader',
    [heard.toISOString()],
  )
  t.diagnostic(`another leads ${Math.round(took?.ms ?? 0)} ms after the last sign of life`)
  assert.ok(took && took.ms < 3_000, `${took?.ms} ms`)

  const run_at = new Date(Date.now() + 60_000).toISOString()
  const [due] = await seedJobs(database.run, tenant, [newJob({ run_at })])
  await database.sql('update waiting_jobs set wake_at = now()')
  frozen.unfreeze()
  await waitFor('it to notice', () => frozen.log.some(({ message }) => message === 'leads no more'))
  assert.deepEqual(await database.run(wakeDueJobs(oldTerm, 10)), [], 'what it may have sent meanwhile')
  const after = await leader()
  assert.deepEqual([after.worker_id, Number(after.term)], ['standby', Number(oldTerm) + 1])
  const waiting = await database.sql('select job_id from waiting_jobs')
  assert.deepEqual(waiting, [{ job_id: due }], 'nobody wakes it: the standby of this test has no duties')
})
