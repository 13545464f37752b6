import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { appendJobLogs } from '../../db/queries/job-logs.ts'
import { getJob, submitJobs } from '../../db/queries/jobs.ts'
import { type ClaimedJob, claimJobs, endAttempts, releaseJobs, renewLeases } from '../../db/queries/leases.ts'
import { reclaimExpiredLeases, wakeDueJobs } from '../../db/queries/upkeep.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { claim, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => database.sql('truncate jobs, waiting_jobs, ready_jobs, leases, job_events cascade'))

const submit = (...jobs: Parameters<typeof newJob>[0][]) => seedJobs(database.run, tenant, jobs.map(newJob))
const claimOne = async (): Promise<ClaimedJob> => {
  const [job] = await claim(database.run, 'worker-1', 1)
  assert.ok(job, 'there was a job to claim')
  return job
}
const look = async (jobId: string | undefined) => {
  const [row] = await database.run(getJob(tenant.orgId, jobId ?? ''))
  assert.ok(row)
  return row
}
const end = (...ended: object[]) => database.run(endAttempts(JSON.stringify(ended)))
const eventsOf = async (jobId: string | undefined) => {
  const rows = await database.sql<{ state: string }>(
    'select state from job_events where job_id = $1 order by id',
    [jobId],
  )
  return rows.map(({ state }) => state)
}
const failure = { code: 'broken', message: 'It broke.' }

test('a job runs through ready, running and completed, with one event for each', async () => {
  const [id] = await submit({})
  assert.equal((await look(id)).status, 'ready')
  const job = await claimOne()
  assert.deepEqual(
    [(await look(id)).status, (await look(id)).worker_id, job.attempt],
    ['running', 'worker-1', 1],
  )
  await end({ ...job, state: 'completed', result: { answer: 42 } })
  const done = await look(id)
  assert.deepEqual([done.status, done.attempts, done.result], ['completed', 1, { answer: 42 }])
  assert.ok(done.started_at && done.finished_at && done.finished_at >= done.started_at)
  assert.deepEqual(await eventsOf(id), ['ready', 'running', 'completed'])
})

test('concurrent claims never take a job twice', async () => {
  await submit(...Array.from({ length: 100 }, () => ({})))
  const batches = await Promise.all(
    Array.from({ length: 10 }, (_, n) => claim(database.run, `worker-${n}`, 20)),
  )
  const ids = batches.flat().map(({ job_id }) => job_id)
  assert.equal(ids.length, 100)
  assert.equal(new Set(ids).size, 100)
})

test('a claim skips jobs that another transaction is taking, and does not wait for it', async () => {
  await submit({ name: 'first' }, { name: 'second' })
  const other = new pg.Client({ connectionString: database.url })
  await other.connect()
  await other.query('begin; select job_id from ready_jobs order by rank, job_id limit 1 for update')
  assert.deepEqual(
    (await claim(database.run)).map(({ name }) => name),
    ['second'],
  )
  await other.query('rollback')
  await other.end()
})

test('a claim takes only types the worker handles', async () => {
  await submit({ type: 'test' })
  assert.deepEqual(
    await database.run(claimJobs({ workerId: 'w', types: ['other'], limit: 5, leaseSeconds: 30 })),
    [],
  )
})

test('higher classes are claimed first, and within a class the older job', async () => {
  await submit(
    { name: 'n1' },
    { name: 'l', priority: 'low' },
    { name: 'n2' },
    { name: 'c', priority: 'critical' },
    { name: 'h', priority: 'high' },
  )
  assert.deepEqual(
    (await claim(database.run)).map(({ name }) => name),
    ['c', 'h', 'n1', 'n2', 'l'],
  )
})

test('a worker that lost its lease cannot complete, renew, release or log', async () => {
  const [id] = await submit({})
  const stale = await claimOne()
  await database.sql('update leases set expires_at = now()')
  await database.run(reclaimExpiredLeases(10))
  const fresh = await claimOne()
  assert.notEqual(fresh.token, stale.token)

  assert.deepEqual(await end({ ...stale, state: 'completed', result: 'stale' }), [])
  assert.deepEqual(await database.run(renewLeases([stale], 30)), [])
  assert.deepEqual(await database.run(releaseJobs([stale], 'shutdown')), [])
  await database.run(
    appendJobLogs(JSON.stringify([{ ...stale, at: new Date(), level: 'info', message: 'stale' }])),
  )
  assert.deepEqual(
    await database.sql('select * from job_logs where job_id = $1 and message = $2', [id, 'stale']),
    [],
  )
  const job = await look(id)
  assert.deepEqual([job.status, job.attempts, job.result], ['running', 2, null])
})

test('an expired lease makes the job ready again and counts the attempt', async () => {
  const [id] = await submit({})
  await claimOne()
  assert.deepEqual(await database.run(reclaimExpiredLeases(10)), [], 'a live lease is left alone')
  await database.sql('update leases set expires_at = now()')
  const [reclaimed] = await database.run(reclaimExpiredLeases(10))
  assert.deepEqual([reclaimed?.job_id, reclaimed?.state], [id, 'ready'])
  assert.deepEqual([(await look(id)).status, (await look(id)).attempts], ['ready', 1])
  const [attempt] = await database.sql('select outcome, error from attempts where job_id = $1', [id])
  assert.equal(attempt?.outcome, 'lost')
  const [line] = await database.sql('select message from job_logs where job_id = $1', [id])
  assert.match(String(line?.message), /^Worker worker-1 stopped answering during attempt 1/)
})

test('a job that keeps killing its worker ends in failed', async () => {
  const [id] = await submit({ max_attempts: 2 })
  for (const expected of ['ready', 'failed']) {
    await claimOne()
    await database.sql('update leases set expires_at = now()')
    await database.run(reclaimExpiredLeases(10))
    assert.equal((await look(id)).status, expected)
  }
  assert.equal((await look(id)).error?.code, 'worker_lost')
})

test('a failed attempt waits for its backoff, and is ready when it is over', async () => {
  const [id] = await submit({})
  await end({ ...(await claimOne()), state: 'retrying', error: failure, delay_ms: 60_000 })
  assert.deepEqual([(await look(id)).status, (await look(id)).error], ['retrying', failure])
  assert.deepEqual(await database.run(wakeDueJobs(10)), [])
  await database.sql('update waiting_jobs set wake_at = now()')
  assert.equal((await database.run(wakeDueJobs(10)))[0]?.job_id, id)
  assert.equal((await claimOne()).attempt, 2)
  assert.deepEqual(await eventsOf(id), ['ready', 'running', 'retrying', 'ready', 'running'])
})

test('a delayed job is pending until its time', async () => {
  const [id] = await submit({ run_at: new Date(Date.now() + 3_600_000).toISOString() })
  assert.equal((await look(id)).status, 'pending')
  assert.deepEqual(await claim(database.run), [])
  await database.sql('update waiting_jobs set wake_at = now()')
  await database.run(wakeDueJobs(10))
  assert.equal((await claimOne()).job_id, id)
})

test('a released job is ready again and the try does not count', async () => {
  const [id] = await submit({})
  const job = await claimOne()
  await database.run(releaseJobs([job], 'shutdown'))
  assert.deepEqual([(await look(id)).status, (await look(id)).attempts], ['ready', 0])
  assert.equal((await claimOne()).attempt, 1)
})

test('many ends are recorded by one statement, each for itself', async () => {
  const ids = await submit({}, {}, {}, {})
  const jobs = await claim(database.run)
  const [done, failed, retried, foreign] = jobs
  assert.ok(done && failed && retried && foreign)
  const recorded = await end(
    { ...done, state: 'completed', result: 1 },
    { ...failed, state: 'failed', error: failure },
    { ...retried, state: 'retrying', error: failure, delay_ms: 1000 },
    { ...foreign, token: crypto.randomUUID(), state: 'completed', result: 1 },
  )
  assert.equal(recorded.length, 3)
  const states = await Promise.all(ids.map(async (id) => (await look(id)).status))
  assert.deepEqual(states, ['completed', 'failed', 'retrying', 'running'])
})

test('submission is all or nothing', async () => {
  const good = newJob({ name: 'good' })
  await assert.rejects(
    database.run(submitJobs({ ...tenant, jobs: [good, newJob({ name: '' })] })),
    /jobs_name_length/,
  )
  assert.deepEqual(await database.sql('select id from jobs'), [])
  assert.deepEqual(await database.sql('select job_id from ready_jobs'), [])
})

test('who is not a member of the organisation submits nothing', async () => {
  const stranger = await seedTenant(database.run)
  const jobs = [newJob()]
  assert.deepEqual(await database.run(submitJobs({ orgId: tenant.orgId, userId: stranger.userId, jobs })), [])
  assert.deepEqual(await database.sql('select id from jobs'), [])
})

test('after any mix of transitions each job stands in exactly one place', async () => {
  await submit(...Array.from({ length: 60 }, () => ({ max_attempts: 2 })))
  const turn = async (n: number): Promise<unknown> => {
    const jobs = await claim(database.run, `worker-${n}`, 7)
    const ended = jobs.map((job, i) => {
      if ((i + n) % 4 === 0) return { ...job, state: 'completed', result: null }
      if ((i + n) % 4 === 1 && job.attempt >= 2) return { ...job, state: 'failed', error: failure }
      return { ...job, state: 'retrying', error: failure, delay_ms: 0 }
    })
    if (n % 5 === 0) return database.run(releaseJobs(jobs, 'shutdown'))
    if (n % 7 === 0)
      return database.sql(`update leases set expires_at = now() where worker_id = $1`, [`worker-${n}`])
    return Promise.all([
      end(...ended),
      database.run(renewLeases(jobs, 30)),
      database.run(wakeDueJobs(50)),
      database.run(reclaimExpiredLeases(50)),
    ])
  }
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 8 }, (_, n) => turn(round * 8 + n)))
  }
  const misplaced = await database.sql(`
    select j.id, count(place.job_id) as places
    from jobs j
    left join (
      select job_id from waiting_jobs
      union all select job_id from ready_jobs
      union all select job_id from leases
      union all select job_id from finished_jobs
    ) place on place.job_id = j.id
    group by j.id
    having count(place.job_id) <> 1`)
  assert.deepEqual(misplaced, [])
})
