import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { appendJobLogs } from '../../db/queries/job-logs.ts'
import { saveProgress } from '../../db/queries/progress.ts'
import { type ClaimedJob, claimSuspect, readSuspect } from '../../db/queue/exchange.ts'
import { releaseJobs, renewLeases } from '../../db/queue/leases.ts'
import {
  askToIsolate,
  endIsolation,
  moveHeldBackJobs,
  reclaimExpiredLeases,
  SWEEP_START,
  wakeDueJobs,
} from '../../db/queue/upkeep.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  cancelHeldJob,
  claim,
  clearJobs,
  completed,
  end,
  expireLeases,
  lead,
  loseReadyJobs,
  makeSuspects,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
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
const expireAll = () => expireLeases(database.sql)
const reclaim = () => database.run(reclaimExpiredLeases(term, 10))
const suspectOf = async (workerId: string) =>
  readSuspect(
    await database.run(
      claimSuspect({ workerId, leaseSeconds: 30, types: ['test'], cpuUnits: 2, memoryMb: 512 }),
    ),
  )
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

test('a former holder cannot complete, fail, renew, release, log, or report progress', async () => {
  const [id] = await submit({})
  const stale = await claimOne()
  await log(stale, 'while held')
  await report(stale, 0.5)
  await expireAll()
  await reclaim()
  const fresh = await claimOne()
  assert.notEqual(fresh.token, stale.token)
  const before = await database.sql('select * from leases')
  const events = await jobs.eventsOf(id)

  assert.deepEqual((await end(database.run, completed(stale, 'stale'))).lost, [id])
  assert.deepEqual((await end(database.run, retrying(stale))).lost, [id])
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

test('jobs that shared a lost worker are not charged, even if their leases expire one after the other', async () => {
  await reportLive(database.run, { workerId: 'worker-1' })
  const ids = await submit(...Array.from({ length: 4 }, () => ({ max_attempts: 1 })))
  await claim(database.run, 'worker-1', 2)
  for (let n = 0; n < 2; n++) await claimOne()
  const reclaimed: unknown[] = []
  for (const { token } of await database.sql('select token from leases order by token')) {
    await database.sql('update leases set expires_at = now() where token = $1', [token])
    for (const { job_id, counts, state } of await reclaim()) reclaimed.push([job_id, counts, state])
  }
  assert.deepEqual(
    reclaimed.sort(),
    ids.map((id) => [id, false, 'ready']).sort(),
    'although each has only one attempt',
  )
  for (const id of ids) {
    assert.equal((await jobs.look(id)).attempts, 0)
    assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'ready: worker_lost'])
  }
  const rows = await database.sql<{ attempt: number; outcome: string; error: { message: string } }>(
    'select attempt, outcome, error from attempts',
  )
  assert.equal(rows.length, 4)
  for (const { attempt, outcome, error } of rows) {
    assert.deepEqual([attempt, outcome], [1, 'lost'])
    assert.match(error.message, /The worker also held other jobs, so the attempt does not count\.$/)
  }
})

test('a job that a worker claims after losing others can be its only one', async () => {
  await reportLive(database.run, { workerId: 'worker-1' })
  await submit({}, {})
  await claim(database.run)
  await expireAll()
  await reclaim()
  const [id] = await submit({ priority: 'critical' })
  await claimOne()
  await expireAll()
  const [alone] = await reclaim()
  assert.deepEqual([alone?.job_id, alone?.counts], [id, true])
})

test('a lost worker costs its jobs a second run; those that are lost again run alone', async () => {
  const [first, second] = await submit({}, {})
  for (const { counts, suspect } of await loseReadyJobs(database, 'lost-1'))
    assert.deepEqual([counts, suspect], [false, false])
  const innocent = (await claim(database.run)).find(({ job_id }) => job_id === first)
  assert.ok(innocent)
  // It finishes its second run, so its next loss is not the second in a row.
  await end(database.run, retrying(innocent))
  await expireAll()
  const [lost] = await reclaim()
  assert.deepEqual([lost?.job_id, lost?.suspect], [second, true])
  await database.sql('update waiting_jobs set wake_at = now()')
  await database.run(wakeDueJobs(term, 10))
  const [other] = await submit({})
  const again = await loseReadyJobs(database, 'lost-3')
  assert.deepEqual(
    again.map(({ job_id, suspect }) => [job_id, suspect]).sort(),
    [first, other].map((id) => [id, false]).sort(),
    'and no worker claimed the suspect',
  )
})

test('a suspect is claimed alone, stays a suspect when given back, and is cleared by any outcome', async () => {
  const ids = await submit({}, {})
  await makeSuspects(database)
  assert.deepEqual(await claim(database.run), [])
  assert.equal((await jobs.look(ids[0])).status, 'ready')
  // The leader brings back only jobs that are parked for another reason.
  await reportLive(database.run)
  await database.run(moveHeldBackJobs({ term, parked: true, after: SWEEP_START, limit: 10 }))
  assert.deepEqual(await claim(database.run), [])

  const suspect = await suspectOf('worker-1')
  assert.ok(suspect)
  assert.equal(suspect.attempt, 1, 'nothing has counted so far')
  await database.run(releaseJobs([suspect], 'shutdown'))
  assert.deepEqual(await claim(database.run), [])
  const both = [await suspectOf('worker-1'), await suspectOf('worker-2')].flatMap((job) => job ?? [])
  assert.deepEqual(both.map(({ job_id }) => job_id).sort(), [...ids].sort())
  for (const job of both) await end(database.run, retrying(job))
  await database.sql('update waiting_jobs set wake_at = now()')
  await database.run(wakeDueJobs(term, 10))
  assert.equal((await claim(database.run)).length, 2)
})

test('a suspect that kills a worker it had to itself is charged, and the others are cleared', async () => {
  await submit({ max_attempts: 2 }, {}, {})
  await makeSuspects(database)
  const [later] = await submit({}, {})
  await loseReadyJobs(database, 'lost-3')
  await loseReadyJobs(database, 'lost-4')
  const culprit = await suspectOf('alone-1')
  assert.ok(culprit)
  await expireAll()
  const [caught] = await reclaim()
  assert.deepEqual(
    [caught?.job_id, caught?.counts, caught?.suspect, caught?.acquitted_types],
    [culprit.job_id, true, true, ['test']],
  )
  const suspects = await database.sql('select job_id from ready_jobs where lane >= 15000')
  assert.equal(suspects.length, 3, 'it remains a suspect, and so do jobs that were lost with other workers')
  assert.ok(suspects.some(({ job_id }) => job_id === later))
  assert.equal((await claim(database.run)).length, 2)
})

test('a suspect that is paused, or whose organisation is at its limit, is not claimed', async () => {
  await submit({}, {})
  await makeSuspects(database)
  await reportLive(database.run)
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  assert.equal(await suspectOf('worker-1'), undefined)
  assert.deepEqual(await database.run(askToIsolate(term)), [])
  await database.sql('delete from pauses')
  await database.sql('insert into quotas (org_id, running_jobs) values ($1, 0)', [tenant.orgId])
  assert.equal(await suspectOf('worker-1'), undefined)
  assert.deepEqual(await database.run(askToIsolate(term)), [])
  await database.sql('delete from quotas where org_id = $1', [tenant.orgId])
  assert.ok(await suspectOf('worker-1'))
})

test('one worker in four isolates at a time, starting with the one that is free first', async () => {
  await submit({}, {}, {})
  await makeSuspects(database)
  const [busy] = await submit({})
  await claim(database.run, 'worker-0', 1)
  assert.ok(busy)
  await reportLive(database.run, { workerId: 'worker-0' })
  const ask = async () => (await database.run(askToIsolate(term))).map(({ worker_id }) => worker_id)
  assert.deepEqual(await ask(), ['worker-0'], 'the only one')
  await database.run(endIsolation('worker-0'))
  for (let n = 1; n < 8; n++) await reportLive(database.run, { workerId: `worker-${n}` })
  assert.deepEqual(await ask(), ['worker-1'])
  assert.deepEqual(
    (await ask()).sort(),
    ['worker-1', 'worker-2'],
    'workers that were asked are notified again',
  )
  assert.deepEqual((await ask()).sort(), ['worker-1', 'worker-2'])
  await suspectOf('worker-1')
  await database.run(endIsolation('worker-1'))
  assert.deepEqual(await ask(), ['worker-2'], 'the first runs a suspect')
  await database.sql('update leases set expires_at = now() where alone')
  await reclaim()
  assert.deepEqual((await ask()).sort(), ['worker-1', 'worker-2'])
  assert.deepEqual(await database.run(askToIsolate('0')), [], 'not for a former leader')
  await database.sql('delete from ready_jobs where lane >= 15000')
  assert.deepEqual(await ask(), [], 'no worker is needed any more')
  assert.deepEqual(await database.sql('select from workers where isolates'), [])
})

test('a worker is not asked to drain for longer than the suspects have waited', async () => {
  await submit({}, {})
  await makeSuspects(database)
  const [long] = await submit({})
  await claim(database.run, 'worker-0', 1)
  await database.sql('update jobs set predicted_ms = 3600000 where id = $1', [long])
  await reportLive(database.run, { workerId: 'worker-0' })
  assert.deepEqual(await database.run(askToIsolate(term)), [])
  await database.sql(`update attempts set finished_at = finished_at - interval '2 hours'`)
  assert.deepEqual(await database.run(askToIsolate(term)), [{ worker_id: 'worker-0', newly: true }])
})

test('no token is given twice, also if the server has forgotten which were', async () => {
  await submit({}, {})
  const first = await claimOne()
  // As after a crash: claims do not wait for the disk.
  await database.sql(`select setval('lease_tokens', 1, false)`)
  const second = await claimOne()
  assert.ok(BigInt(second.token) > BigInt(first.token), `${second.token} after ${first.token}`)
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
  const [first, second] = [await claimOne(), await claimOne()]
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
  const exchanged = end(database.run, completed(second), completed(first))
  await waiting(2)
  await someone.query('commit')
  await someone.end()
  assert.equal((await renewed).length, 2)
  assert.deepEqual((await exchanged).lost, [])
  assert.deepEqual(await jobs.statuses([first.job_id, second.job_id]), ['completed', 'completed'])
})
