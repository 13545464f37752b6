import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { pauseQueue } from '../../db/queries/pauses.ts'
import { setQuotas } from '../../db/queries/quotas.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  failed,
  makeSuspects,
  newJob,
  retrying,
  seedJobs,
} from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
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
beforeEach(async () => {
  await clearJobs(database.sql)
  await reportLive(database.run, { slots: 2 })
})

const seed = async (overrides: Partial<NewJob> = {}, tenant = ada): Promise<string> => {
  const [id] = await seedJobs(database.run, tenant, [newJob(overrides)])
  assert.ok(id)
  return id
}

const explain = async (id: string) => {
  const { status, body, text } = await edge.request('GET', `/jobs/${id}/explain`, { token: ada.token })
  assert.equal(status, 200, text)
  assert.equal(body.job_id, id)
  assert.equal(body.summary, body.reasons[0].message)
  return body
}

const codesOf = ({ reasons }: { reasons: { code: string }[] }): string[] => reasons.map(({ code }) => code)

test('a job in the queue is told what is ahead of it in its organisation', async () => {
  await seed({ name: 'secret plan' }, bob)
  await seed({ priority: 'low' })
  const id = await seed({ timeout_seconds: 60 })
  for (let n = 0; n < 3; n++) await seed()
  const own = await seed()
  const told = await explain(own)
  assert.deepEqual(codesOf(told), ['queue', 'share'])
  assert.equal(told.summary, '3 jobs of its organisation are ahead of it, predicted to take 3 s on 2 slots.')
  assert.deepEqual([told.rank, told.status], [3, 'ready'])
  assert.deepEqual(told.ahead, { jobs: 3, predicted_seconds: 3, counted: true })
  assert.deepEqual([told.lane.jobs, told.lane.share], [4, 0.6667])
  assert.ok(told.eta && told.prediction.p50_ms === 1000)
  assert.doesNotMatch(JSON.stringify(told), /secret/)
  assert.equal((await explain(id)).rank, 4, 'a long timeout speaks for a long job')
})

test("a job is told how much of others' work goes first, and the share and use of its organisation", async () => {
  await seed()
  const [held] = await claim(database.run)
  assert.ok(held)
  await end(database.run, completed(held, null, 6_200))
  for (let n = 0; n < 9; n++) await seed({ name: 'secret plan' }, bob)
  const [theirs] = await claim(database.run, 'worker-1', 1)
  assert.ok(theirs)
  await end(database.run, completed(theirs, null, 3_800))
  await database.run(setQuotas(bob.orgId, { weight: 3 }))
  await seed({ name: 'new' })
  const told = await explain(await seed({ name: 'new' }))
  await database.sql('delete from quotas where org_id = $1', [bob.orgId])
  const [{ name } = { name: '' }] = await database.sql<{ name: string }>(
    'select name from orgs where id = $1',
    [ada.orgId],
  )
  assert.deepEqual(codesOf(told), ['share', 'queue'])
  assert.equal(
    told.summary,
    `${name} used 62 % of the workers in the last minute; its share is 25 %. 3 s of other organisations' work goes first.`,
  )
  const { code, message, ...numbers } = told.reasons[0]
  assert.deepEqual(numbers, { organisation: name, used: 0.62, share: 0.25, others_seconds: 3 })
  assert.doesNotMatch(JSON.stringify(told), /secret/)
})

test('the first in line is told so', async () => {
  const told = await explain(await seed())
  assert.equal(told.summary, 'It is the next of its organisation; 0 of 2 slots are busy.')
  assert.equal(told.rank, 0)
})

test('a blocked job names the jobs that it waits for and their states', async () => {
  const parent = await seed({ name: 'extract', run_at: '2999-01-01T00:00:00Z' })
  const done = await seed({ name: 'done' })
  const [held] = await claim(database.run)
  assert.equal(held?.job_id, done)
  await end(database.run, completed(held))
  const told = await explain(await seed({ depends_on: [parent, done] }))
  assert.deepEqual([told.status, codesOf(told), told.rank], ['blocked', ['dependency'], null])
  assert.equal(told.summary, 'It waits for a job that has not completed: "extract" (pending).')
  assert.deepEqual(told.reasons[0].parents, [{ id: parent, name: 'extract', status: 'pending' }])
})

test('a delayed job says until when', async () => {
  const run_at = new Date(Date.now() + 7_200_000).toISOString()
  const told = await explain(await seed({ run_at }))
  assert.deepEqual([told.status, codesOf(told)], ['pending', ['delayed']])
  assert.equal(told.reasons[0].run_at, run_at)
  assert.match(told.summary, /in 2 h\.$/)
})

test('a job between two attempts says when it is tried again, and what went wrong', async () => {
  const id = await seed()
  const [held] = await claim(database.run)
  assert.ok(held)
  await end(database.run, retrying(held, 60_000))
  const told = await explain(id)
  assert.deepEqual([told.status, codesOf(told)], ['retrying', ['retry_backoff']])
  assert.match(
    told.summary,
    /^Attempt 1 of 3 failed \(broken: It broke\.\); it is tried again in \d+(\.\d)? s\.$/,
  )
  assert.deepEqual(told.reasons[0].error, { code: 'broken', message: 'It broke.' })
  assert.ok(Date.parse(told.eta.start_at) >= Date.parse(told.reasons[0].wake_at))
})

test('a paused job says what is paused, and since when', async () => {
  const id = await seed()
  await database.run(pauseQueue(ada.orgId, null))
  await database.run(pauseQueue(ada.orgId, 'test'))
  const told = await explain(id)
  assert.deepEqual(codesOf(told).slice(0, 2), ['paused', 'paused'])
  assert.match(told.summary, /^The queue of the organisation is paused since 20/)
  assert.deepEqual([told.reasons[0].paused_type, told.reasons[1].paused_type], [null, 'test'])
  assert.equal(told.eta, null)
})

test('a job of a type that no live worker handles says so', async () => {
  await database.sql(`update workers set last_seen = now() - interval '1 minute'`)
  const told = await explain(await seed())
  assert.equal(told.summary, 'No worker that is alive handles jobs of the type "test".')
  assert.deepEqual([codesOf(told)[0], told.eta], ['no_worker', null])
})

test('a job that is too big for every worker says so, and one that has room kept for it, too', async () => {
  const told = await explain(await seed({ cpu_units: 64 }))
  assert.equal(told.summary, 'It needs 64 cpu units and 64 MB, and no live worker of its type is that big.')
  assert.deepEqual(told.reasons[0].largest, { cpu_units: 2, memory_mb: 512 })
  assert.equal(told.eta, null)
  const id = await seed({ cpu_units: 2 })
  await database.sql(
    `insert into reservations (job_id, org_id, worker_id, cpu_units, memory_mb) values ($1, $2, 'worker-1', 2, 64)`,
    [id, ada.orgId],
  )
  const kept = await explain(id)
  assert.deepEqual([kept.reasons[0].code, kept.reasons[0].reserved_by], ['resources', 'worker-1'])
})

test('a job above the number that may run says so', async () => {
  await database.run(setQuotas(ada.orgId, { running_jobs: 1 }))
  await seed()
  await claim(database.run, 'worker-1', 1)
  const told = await explain(await seed())
  await database.run(setQuotas(ada.orgId, { running_jobs: null }))
  assert.deepEqual(codesOf(told), ['running_limit', 'queue'])
  assert.equal(told.summary, 'The organisation runs 1 jobs, and may run 1 at a time.')
})

test('explain says why a job has to run alone', async () => {
  const id = await seed()
  await seed()
  await makeSuspects(database)
  const told = await explain(id)
  assert.deepEqual([told.status, codesOf(told), told.eta], ['ready', ['runs_alone'], null])
  assert.match(
    told.summary,
    /^It has to run alone, because its workers died twice in a row while it ran alongside other jobs/,
  )
})

test('a job with a deadline says by when it must start, or that it will miss it', async () => {
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  const fine = await explain(await seed({ deadline: inSeconds(3600) }))
  assert.deepEqual(codesOf(fine), ['queue', 'deadline'])
  assert.match(
    fine.reasons[1].message,
    /^To make its deadline it must start within 60 min; then it goes first\.$/,
  )
  const late = await explain(await seed({ deadline: inSeconds(2) }))
  assert.equal(late.reasons[1].at_risk, true)
  assert.match(late.reasons[1].message, /^It will probably miss its deadline/)
})

test('a running job says for how long, and beyond its 99th percentile that it is slow', async () => {
  const id = await seed()
  await claim(database.run)
  const told = await explain(id)
  assert.deepEqual([told.status, codesOf(told)], ['running', ['running']])
  assert.match(told.summary, /of 1 s that were predicted\.$/)
  assert.ok(told.eta)
  await database.sql('update jobs set predicted_p99_ms = 5 where id = $1', [id])
  await database.sql(`update leases set claimed_at = now() - interval '10 seconds'`)
  const slow = await explain(id)
  assert.deepEqual(codesOf(slow), ['slow', 'running'])
  assert.match(
    slow.summary,
    /^It is slow: 99 of 100 such attempts take less than 5 ms, and it has been running for 10/,
  )
})

test('a finished job says how it ended', async () => {
  const ids = [await seed(), await seed(), await seed()]
  const [first, second] = await claim(database.run, 'worker-1', 2)
  assert.ok(first && second)
  await end(database.run, completed(first), failed(second))
  await database.run(cancelJobs(ada.orgId, [ids[2] ?? '']))
  const told = await Promise.all(ids.map(explain))
  assert.deepEqual(
    told.map(({ summary }) => summary),
    [
      'It completed with its first attempt.',
      'It failed after its first attempt: broken: It broke.',
      'It was cancelled before it ran.',
    ],
  )
  for (const one of told) assert.deepEqual([one.reasons[0].code, one.eta, one.rank], ['finished', null, null])
})

test('a job of another organisation is not explained', async () => {
  const id = await seed({}, bob)
  assertProblem(await edge.request('GET', `/jobs/${id}/explain`, { token: ada.token }), 404, 'not-found')
})
