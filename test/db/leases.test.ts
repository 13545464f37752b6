import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { ClaimedJob } from '../../db/queries/exchange-news.ts'
import { appendJobLogs } from '../../db/queries/job-logs.ts'
import { releaseJobs, renewLeases } from '../../db/queries/leases.ts'
import { saveProgress } from '../../db/queries/progress.ts'
import { reclaimExpiredLeases, wakeDueJobs } from '../../db/queries/upkeep.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  cancelHeldJob,
  claim,
  clearJobs,
  completed,
  end,
  exchange,
  expireLeases,
  lead,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>
let term: string

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  term = await lead(database.run)
})

const submit = (...overrides: Parameters<typeof newJob>[0][]) =>
  seedJobs(database.run, tenant, overrides.map(newJob))
const claimOne = async (workerId = 'worker-1') => {
  const [job] = await claim(database.run, workerId, 1)
  assert.ok(job, 'there was a job to claim')
  return job
}
const holdOne = async () => {
  const { claimed } = await exchange(database.run, { claim: { limit: 1, starts: false } })
  assert.ok(claimed[0])
  return claimed[0]
}
const expireAll = () => expireLeases(database.sql)
const reclaim = () => database.run(reclaimExpiredLeases(term, 10))
const log = (key: { job_id: string; token: string }, message: string) =>
  database.run(appendJobLogs(JSON.stringify([{ ...key, at: new Date(), level: 'info', message }])))
const report = (key: { job_id: string; token: string }, progress: number, checkpoint?: unknown) =>
  database.run(
    saveProgress(
      JSON.stringify([{ ...key, progress, note: 'n', checkpoint, has_checkpoint: checkpoint !== undefined }]),
    ),
  )

test('a renewal keeps the lease for as long as it says, and answers what is still held', async () => {
  await submit({}, {})
  const [kept, lost] = await claim(database.run)
  assert.ok(kept && lost)
  await database.sql(`update leases set expires_at = now() + interval '1 second'`)
  await cancelHeldJob(database.sql, lost.job_id)
  assert.deepEqual(await database.run(renewLeases([kept.token, '999999'], 30)), [
    { token: kept.token, job_ids: [kept.job_id] },
  ])
  const [lease] = await database.sql<{ seconds: number }>(
    'select extract(epoch from expires_at - now())::float as seconds from leases',
  )
  assert.ok(lease && lease.seconds > 28, `${lease?.seconds}`)
})

test('a renewed lease is not taken away', async () => {
  await submit({})
  const job = await claimOne()
  await expireAll()
  await database.run(renewLeases([job.token], 30))
  assert.deepEqual(await reclaim(), [])
})

test('tokens grow from lease to lease', async () => {
  await submit({})
  const first = await claimOne()
  await database.run(releaseJobs([first], 'shutdown'))
  assert.ok(BigInt((await claimOne()).token) > BigInt(first.token))
})

test('a former holder cannot complete, fail, announce, renew, release, log, or report progress', async () => {
  const [id] = await submit({})
  const stale = await claimOne()
  await log(stale, 'while held')
  await report(stale, 0.5)
  await expireAll()
  await reclaim()
  const fresh = await holdOne()
  assert.notEqual(fresh.token, stale.token)
  const before = await database.sql('select * from leases')
  const events = await jobs.eventsOf(id)

  assert.deepEqual((await end(database.run, completed(stale, 'stale'))).lost, [id])
  assert.deepEqual((await end(database.run, retrying(stale))).lost, [id])
  await exchange(database.run, { started: [{ ...stale, ranMs: 5 }] })
  assert.deepEqual(await database.run(renewLeases([stale.token], 3_000)), [])
  assert.deepEqual(await database.run(releaseJobs([stale], 'shutdown')), [])
  await log(stale, 'stale')
  await report(stale, 0.9, 'stale')

  assert.deepEqual(await database.sql('select * from leases'), before)
  assert.deepEqual(await jobs.eventsOf(id), events)
  const lines = await database.sql<{ message: string }>(`select message from job_logs where level = 'info'`)
  assert.deepEqual(lines, [{ message: 'while held' }])
  const [kept] = await database.sql('select progress, checkpoint from job_progress')
  assert.deepEqual(kept, { progress: 0.5, checkpoint: null })
})

test('the watchdog leaves a live lease alone', async () => {
  const [id] = await submit({})
  await claimOne()
  assert.deepEqual(await reclaim(), [])
  assert.equal(await jobs.statusOf(id), 'running')
})

test('an expired lease makes the job ready again and counts the attempt', async () => {
  const [id] = await submit({})
  await claimOne()
  await expireAll()
  const [reclaimed] = await reclaim()
  assert.deepEqual(
    [reclaimed?.job_id, reclaimed?.type, reclaimed?.worker_id, reclaimed?.state],
    [id, 'test', 'worker-1', 'ready'],
  )
  const job = await jobs.look(id)
  assert.deepEqual([job.status, job.attempts], ['ready', 1])
  const [attempt] = await database.sql('select attempt, outcome from attempts where job_id = $1', [id])
  assert.deepEqual(attempt, { attempt: 1, outcome: 'lost' })
  const [line] = await database.sql('select message from job_logs where job_id = $1', [id])
  assert.match(String(line?.message), /^Worker worker-1 stopped answering during attempt 1/)
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'ready: worker_lost'])
})

test('a job that keeps killing its worker ends in failed', async () => {
  const [id] = await submit({ max_attempts: 2 })
  for (const expected of ['ready', 'failed']) {
    await claimOne()
    await expireAll()
    const [reclaimed] = await reclaim()
    assert.equal(reclaimed?.state, expected)
    assert.equal(await jobs.statusOf(id), expected)
  }
  const job = await jobs.look(id)
  assert.deepEqual([job.error?.code, job.attempts], ['worker_lost', 2])
})

test('a job that was held and not started is given back uncounted, and watched closer from then on', async () => {
  const [id] = await submit({ max_attempts: 1 })
  await holdOne()
  await expireAll()
  const [reclaimed] = await reclaim()
  assert.equal(reclaimed?.state, 'ready', 'although it has but one attempt')
  assert.equal((await jobs.look(id)).attempts, 0)
  assert.deepEqual(await jobs.eventsOf(id), ['ready'])
  assert.deepEqual(await database.sql('select * from attempts'), [])

  const again = await holdOne()
  assert.equal(again.started, true, 'counts as started from the claim on')
  assert.equal(await jobs.statusOf(id), 'running')
  await expireAll()
  await reclaim()
  const dead = await jobs.look(id)
  assert.deepEqual([dead.status, dead.attempts], ['failed', 1])
})

test('no token is given twice, also if the server has forgotten which were', async () => {
  await submit({}, {})
  const first = await claimOne()
  // As after a crash: claims do not wait for the disk.
  await database.sql(`select setval('lease_tokens', 1, false)`)
  const second = await claimOne()
  assert.ok(BigInt(second.token) > BigInt(first.token), `${second.token} after ${first.token}`)
})

test('a worker that announced the start in time counts, also if it claimed ahead', async () => {
  const [id] = await submit({})
  const held = await holdOne()
  await exchange(database.run, { started: [{ ...held, ranMs: 5 }] })
  await expireAll()
  await reclaim()
  assert.equal((await jobs.look(id)).attempts, 1)
  const [row] = await database.sql('select suspect from ready_jobs')
  assert.deepEqual(row, { suspect: false })
})

test('progress and checkpoint are kept, and handed to the next attempt', async () => {
  const [id] = await submit({})
  const first = await claimOne()
  assert.equal(first.checkpoint, null)
  await report(first, 0.25, { page: 3 })
  await report(first, 0.5)
  const running = await jobs.look(id)
  assert.deepEqual([running.progress, running.progress_note], [0.5, 'n'])
  await end(database.run, retrying(first))
  await database.sql('update waiting_jobs set wake_at = now()')
  await database.run(wakeDueJobs(term, 10))
  assert.deepEqual((await claimOne()).checkpoint, { page: 3 })
})

test('a worker that was lost leaves its checkpoint to the next', async () => {
  await submit({})
  await report(await claimOne(), 0.25, [1, 2])
  await expireAll()
  await reclaim()
  assert.deepEqual((await claimOne('worker-2')).checkpoint, [1, 2])
})

test('an outcome renews the lease for the jobs that are still held', async () => {
  const [, second] = await submit({}, {})
  const [done] = await claim(database.run, 'worker-1', 2)
  assert.ok(done)
  for (const outcome of [completed(done), retrying(done)]) {
    await expireAll()
    await end(database.run, outcome)
    assert.deepEqual(await reclaim(), [])
  }
  assert.equal(await jobs.statusOf(second), 'running')
})

test('a worker that comes back and ends its jobs while the watchdog takes them: none is both ended and ready', async () => {
  for (let round = 0; round < 6; round++) {
    await submit(...Array.from({ length: 120 }, () => ({})))
    const leases: ClaimedJob[][] = []
    for (let n = 0; n < 30; n++) leases.push(await claim(database.run, 'worker-1', 4))
    await expireAll()
    const ends = (async () => {
      for (const [first, ...others] of leases)
        if (first) await end(database.run, ...others.map((job) => completed(job)))
    })()
    await delay(Math.random() * 40)
    await database.run(reclaimExpiredLeases(term, 100))
    await ends
    const both = await database.sql('select from ready_jobs join finished_jobs using (org_id, job_id)')
    assert.equal(both.length, 0, `in round ${round}`)
    await clearJobs(database.sql)
  }
})

test('a renewal and an exchange of the same leases do not wait crosswise', async () => {
  await submit({}, {}, {}, {})
  const hold = async () => (await exchange(database.run, { claim: { limit: 2, starts: false } })).claimed[0]
  const [first, second] = [await hold(), await hold()]
  assert.ok(first && second)
  const someone = new pg.Client(database.url)
  await someone.connect()
  await someone.query('begin')
  await someone.query('select from leases where token = $1 for update', [first.token])
  const waiting = (count: number) =>
    waitFor(`${count} to wait`, async () => {
      const locks = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
      return (await database.sql(locks)).length === count
    })
  const renewed = database.run(renewLeases([second.token, first.token], 30))
  await waiting(1)
  const started = [{ job_id: first.job_id, token: first.token, ranMs: 5 }]
  const exchanged = exchange(database.run, { ended: [completed(second)], started })
  await waiting(2)
  await someone.query('commit')
  await someone.end()
  assert.equal((await renewed).length, 2)
  assert.equal((await exchanged).news.lost, null)
  assert.deepEqual(await jobs.statuses([first.job_id, second.job_id]), ['running', 'completed'])
})
