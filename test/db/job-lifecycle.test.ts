import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { releaseJobs, renewLeases } from '../../db/queue/leases.ts'
import { reclaimExpiredLeases, wakeDueJobs } from '../../db/queue/upkeep.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  exchange,
  FAILURE,
  failed,
  lead,
  misplacedJobs,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  snoozed,
  submitAll,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'

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
const claimOne = async () => {
  const [job] = await claim(database.run, 'worker-1', 1)
  assert.ok(job, 'there was a job to claim')
  return job
}
const wakeAll = async () => {
  await database.sql('update waiting_jobs set wake_at = now()')
  return database.run(wakeDueJobs(term, 10))
}

test('a job runs through ready, running and completed, with one event for each', async () => {
  const [id] = await submit({})
  assert.equal(await jobs.statusOf(id), 'ready')
  const job = await claimOne()
  const running = await jobs.look(id)
  assert.deepEqual([running.status, running.worker_id, job.attempt], ['running', 'worker-1', 1])
  await end(database.run, completed(job, { answer: 42 }, 120))
  const done = await jobs.look(id)
  assert.deepEqual(
    [done.status, done.attempts, done.result, done.runtime_ms],
    ['completed', 1, { answer: 42 }, 120],
  )
  assert.ok(done.started_at && done.finished_at && done.finished_at >= done.started_at)
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'completed'])
})

test('a delayed job is pending until its time', async () => {
  const [id] = await submit({ run_at: new Date(Date.now() + 3_600_000).toISOString() })
  assert.equal(await jobs.statusOf(id), 'pending')
  assert.deepEqual(await claim(database.run), [])
  assert.deepEqual(await database.run(wakeDueJobs(term, 10)), [], 'it is not due')
  assert.deepEqual((await wakeAll())[0], { job_id: id, type: 'test' })
  assert.equal((await claimOne()).job_id, id)
  assert.deepEqual(await jobs.eventsOf(id), ['pending', 'ready', 'running'])
})

test('a run_at of the past is now', async () => {
  const [id] = await submit({ run_at: '2020-01-01T00:00:00Z' })
  assert.equal(await jobs.statusOf(id), 'ready')
})

test('a failed attempt waits for its backoff, and is ready when it is over', async () => {
  const [id] = await submit({})
  await end(database.run, retrying(await claimOne(), 60_000))
  const waiting = await jobs.look(id)
  assert.deepEqual([waiting.status, waiting.attempts, waiting.error], ['retrying', 1, FAILURE])
  const [wait] = await database.sql<{ seconds: number }>(
    'select extract(epoch from wake_at - now())::float as seconds from waiting_jobs',
  )
  assert.ok(wait && wait.seconds > 55 && wait.seconds <= 60, `${wait?.seconds} s`)
  assert.deepEqual(await database.run(wakeDueJobs(term, 10)), [])
  await wakeAll()
  assert.equal((await claimOne()).attempt, 2)
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'retrying: broken', 'ready', 'running'])
  const attempts = await database.sql('select attempt, outcome, error, worker_id from attempts')
  assert.deepEqual(attempts, [{ attempt: 1, outcome: 'failed', error: FAILURE, worker_id: 'worker-1' }])
})

test('a snoozed job is pending and the attempt does not count', async () => {
  const [id] = await submit({ max_attempts: 1 })
  await end(database.run, snoozed(await claimOne(), 60_000))
  const asleep = await jobs.look(id)
  assert.deepEqual([asleep.status, asleep.attempts, asleep.error], ['pending', 0, null])
  await wakeAll()
  assert.equal((await claimOne()).attempt, 1)
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'pending: snoozed', 'ready', 'running'])
  const [attempt] = await database.sql('select attempt, outcome from attempts where job_id = $1', [id])
  assert.deepEqual(attempt, { attempt: 1, outcome: 'snoozed' })
})

test('a job that failed for good is a dead letter with its error', async () => {
  const [id] = await submit({})
  await end(database.run, failed(await claimOne()))
  const dead = await jobs.look(id)
  assert.deepEqual([dead.status, dead.attempts, dead.error, dead.result], ['failed', 1, FAILURE, null])
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'failed: broken'])
})

test('dead letters whose errors differ in numbers, ids and quoted values share a fingerprint', async () => {
  await submit({}, {}, {}, {}, {})
  const claimed = await claim(database.run)
  const errors = [
    { code: 'http', message: 'Job 1234 got 500 from "https://a.example/x" for 0xdeadbeef' },
    { code: 'http', message: 'Job 98 got 502 from "https://b.example/yy" for 0x12' },
    { code: 'http', message: `Job ${crypto.randomUUID()} got 7 from 'c' for abcdef0123456789` },
    { code: 'dns', message: 'Job 1234 got 500 from "https://a.example/x" for 0xdeadbeef' },
    { code: 'http', message: 'Quite another error' },
  ]
  await end(database.run, ...claimed.map((job, n) => failed(job, errors[n])))
  const rows = await database.sql<{ fingerprint: string }>(
    `select fingerprint from finished_jobs f join unnest($1::uuid[]) with ordinality as w (id, n) on w.id = f.job_id
    order by n`,
    [claimed.map(({ job_id }) => job_id)],
  )
  const [one, two, three, otherCode, otherText] = rows.map(({ fingerprint }) => fingerprint)
  assert.deepEqual([two, three], [one, one])
  assert.equal(new Set([one, otherCode, otherText]).size, 3)
})

test('a status at the beginning of an error tells dead letters apart', async () => {
  const messages = [
    '404 from "a" after 12 ms',
    '404 from "b" after 7 ms',
    '503 from "a" after 12 ms',
    '4040 retries',
  ]
  const rows = await database.sql<{ fingerprint: string }>(
    `select error_fingerprint(jsonb_build_object('code', 'http', 'message', m)) as fingerprint
    from unnest($1::text[]) with ordinality as w (m, n)
    order by n`,
    [messages],
  )
  const [one, again, unavailable, noStatus] = rows.map(({ fingerprint }) => fingerprint)
  assert.equal(again, one)
  assert.equal(new Set([one, unavailable, noStatus]).size, 3)
})

test('a released job is ready again, at the end of its lane, and the try does not count', async () => {
  const [id, other] = await submit({}, {})
  const job = await claimOne()
  assert.deepEqual(await database.run(releaseJobs([job], 'shutdown')), [{ job_id: id, type: 'test' }])
  const released = await jobs.look(id)
  assert.deepEqual([released.status, released.attempts], ['ready', 0])
  const [first, second] = [await claimOne(), await claimOne()]
  assert.deepEqual([first.job_id, second.job_id, second.attempt], [other, id, 1])
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'ready: shutdown', 'running'])
})

test('one statement stores outcomes and brings the next jobs', async () => {
  await submit({ name: 'first' }, { name: 'second' })
  const job = await claimOne()
  const { news, claimed } = await exchange(database.run, {
    ended: [completed(job)],
    claim: { limit: 1 },
  })
  assert.deepEqual([news.lost ?? [], claimed.map(({ name }) => name)], [[], ['second']])
  assert.equal(await jobs.statusOf(job.job_id), 'completed')
})

test('many ends are recorded by one statement, each for itself', async () => {
  const ids = await submit({}, {}, {}, {}, {})
  const [done, dead, retried, asleep] = await claim(database.run, 'worker-1', 4)
  const [foreign] = await claim(database.run, 'worker-2', 1)
  assert.ok(done && dead && retried && asleep && foreign)
  const news = await end(
    database.run,
    completed(done, 1),
    failed(dead),
    retrying(retried, 1_000),
    snoozed(asleep, 1_000),
    completed({ ...foreign, token: done.token }, 1),
  )
  assert.deepEqual(news.lost, [foreign.job_id])
  assert.deepEqual(await jobs.statuses(ids), ['completed', 'failed', 'retrying', 'pending', 'running'])
})

test('the same end sent twice counts once', async () => {
  const [id] = await submit({})
  const job = await claimOne()
  await end(database.run, completed(job, 'first'))
  // The lease may outlive the job; then its end is there already, and says so.
  await end(database.run, completed(job, 'second')).then(
    ({ lost }) => assert.deepEqual(lost, [id]),
    ({ code }) => assert.equal(code, '23505'),
  )
  assert.equal((await jobs.look(id)).result, 'first')
  assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'completed'])
})

test('submission is all or nothing', async () => {
  const submission = { ...tenant, jobs: [newJob({ name: 'good' }), newJob({ name: '' })] }
  const [verdict, ...others] = await submitAll(database.run, [submission])
  assert.ok(verdict && 'refusal' in verdict && verdict.refusal === 'invalid')
  assert.match(verdict.detail.message, /job_name_length/)
  assert.deepEqual(others, [])
  assert.deepEqual(await database.sql('select id from jobs'), [])
  assert.deepEqual(await database.sql('select job_id from ready_jobs'), [])
})

test('who is not a member of the organisation submits nothing, and disturbs no other submission', async () => {
  const stranger = await seedTenant(database.run)
  const good = newJob()
  const rows = await submitAll(database.run, [
    { orgId: tenant.orgId, userId: stranger.userId, jobs: [newJob()] },
    { ...tenant, jobs: [good] },
  ])
  assert.deepEqual(
    rows.map((row) => [row.submission, 'refusal' in row ? row.refusal : row.id]),
    [
      [2, good.id],
      [1, 'not_member'],
    ],
  )
  assert.deepEqual(await database.sql('select id from jobs'), [{ id: good.id }])
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
  await other.query('begin; select job_id from ready_jobs order by key limit 1 for update')
  assert.deepEqual(
    (await claim(database.run)).map(({ name }) => name),
    ['second'],
  )
  await other.query('rollback')
  await other.end()
})

test('after any concurrent mix of transitions each job stands in one place, with one event for each step', async () => {
  const parents = await submit(...Array.from({ length: 60 }, () => ({ max_attempts: 2 })))
  await submit(...parents.map((parent) => ({ depends_on: [parent], max_attempts: 2 })))
  const turn = async (n: number): Promise<unknown> => {
    const workerId = `worker-${n}`
    const { claimed } = await exchange(database.run, { workerId, claim: { limit: 7 } })
    const ended = claimed.map((job, i) => {
      if ((i + n) % 4 === 0) return completed(job)
      if ((i + n) % 4 === 1 && job.attempt >= 2) return failed(job)
      return (i + n) % 4 === 2 ? snoozed(job) : retrying(job)
    })
    if (n % 5 === 0) return database.run(releaseJobs(claimed, 'shutdown'))
    if (n % 7 === 0) {
      return database.sql('update leases set expires_at = now() where worker_id = $1', [workerId])
    }
    return Promise.all([
      exchange(database.run, { workerId, ended, claim: { limit: n % 3 } }),
      database.run(renewLeases([...new Set(claimed.map(({ token }) => token))], 30)),
      database.run(wakeDueJobs(term, 50)),
      database.run(reclaimExpiredLeases(term, 50)),
    ])
  }
  for (let round = 0; round < 6; round++) {
    await Promise.all(Array.from({ length: 8 }, (_, n) => turn(round * 8 + n)))
  }
  assert.deepEqual(await misplacedJobs(database.sql), [])
  assert.deepEqual(await database.sql(ILLEGAL_STEPS), [])
  const [counts] = await database.sql<{ states: number; finished: number }>(
    `select count(distinct status)::int as states, count(*) filter (where finished_at is not null)::int as finished
    from job_overview`,
  )
  assert.ok(counts && counts.states >= 4 && counts.finished > 10, JSON.stringify(counts))
})

/**
 * Steps in `job_events` that no job may take, and jobs whose last event is not where they stand. Events of one
 * statement share their time, so the order is that of ids and positions.
 */
const ILLEGAL_STEPS = `
  with step as (
    select
      job_id, state::text,
      lag(state::text) over (partition by job_id order by id, position) as before,
      lead(state) over (partition by job_id order by id, position) is null as last
    from job_events
  )
  select job_id, before, state, status
  from step
  join job_overview o on o.id = job_id
  where (coalesce(before, 'submitted'), state) not in (
      ('submitted', 'ready'), ('submitted', 'pending'), ('submitted', 'blocked'), ('pending', 'ready'),
      ('blocked', 'ready'), ('blocked', 'pending'), ('blocked', 'failed'), ('ready', 'running'), ('running', 'completed'),
      ('running', 'retrying'), ('running', 'failed'), ('running', 'pending'), ('running', 'ready'), ('retrying', 'ready')
    )
    or last and state <> status::text`
