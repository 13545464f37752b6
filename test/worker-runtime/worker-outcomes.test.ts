import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { JOBS_CANCELLED, JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { type JobContext, JobError, snooze } from '../../worker-runtime/handler-api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { closeOrg, settleDeletion } from '../support/deletion.ts'
import { HOSTILE } from '../support/hostile-values.ts'
import {
  cancelHeldJob,
  clearJobs,
  newJob,
  passLeaseOn,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker, untilListening } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>
let worker: ReturnType<typeof prepareWorker>
let attempts: JobContext[]
let behave: (payload: Record<string, unknown>, context: JobContext) => unknown

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  attempts = []
  worker = prepareWorker(
    database.url,
    [
      handle((payload, context) => {
        attempts.push(context)
        return behave(payload, context)
      }),
    ],
    { SMARTQUEUE_DRAIN_SECONDS: '0' },
  )
  await worker.start()
})
afterEach(() => worker.stop())

const submit = async (overrides: Parameters<typeof newJob>[0] = {}): Promise<string> => {
  const [id] = await seedJobs(database.run, tenant, [newJob(overrides)])
  await database.run(notify(JOBS_READY, ['test']))
  assert.ok(id)
  return id
}
/** Whatever waits for its backoff or its time need not. */
const wakeUp = () => database.sql('update waiting_jobs set wake_at = now()')
const said = (text: string, id: string) =>
  worker.log.filter(({ message, job_id }) => job_id === id && String(message).startsWith(text))

test('an attempt that fails is tried again until it succeeds', async () => {
  behave = (_, { attempt }) => {
    if (attempt < 3) throw new Error('not yet')
    return 'third time lucky'
  }
  const job = await jobs.untilStatus(await submit(), 'completed')
  assert.deepEqual([job.attempts, job.result], [3, 'third time lucky'])
  assert.deepEqual(await jobs.eventsOf(job.id), [
    ...['ready', 'running', 'retrying: handler_error'],
    ...['ready', 'running', 'retrying: handler_error'],
    ...['ready', 'running', 'completed'],
  ])
})

test('a job that throws, logs or reports unreadable values fails alone, and its worker keeps running', async () => {
  behave = ({ throws }, context) => {
    const { make } = HOSTILE[String(throws)] ?? {}
    if (!make) return 'fine'
    context.log.info(make() as string)
    context.progress(make() as number, make() as string)
    throw make()
  }
  const ids = await seedJobs(
    database.run,
    tenant,
    [...Object.keys(HOSTILE), 'nothing'].map((throws) => newJob({ payload: { throws }, max_attempts: 1 })),
  )
  await database.run(notify(JOBS_READY, ['test']))
  const fine = ids.pop()
  await jobs.untilStatus(fine, 'completed')
  for (const [n, { code }] of Object.values(HOSTILE).entries()) {
    const job = await jobs.untilStatus(ids[n], 'failed')
    assert.equal(job.error?.code, code)
  }
})

test('a permanent failure is not tried again', async () => {
  behave = () => {
    throw new JobError('gone', 'It is gone.', { permanent: true })
  }
  const job = await jobs.untilStatus(await submit(), 'failed')
  assert.deepEqual([job.attempts, job.error], [1, { code: 'gone', message: 'It is gone.' }])
})

test('a handler that is told to come again later waits that long, besides its backoff', async () => {
  behave = (_, { attempt }) => {
    if (attempt === 1) throw new JobError('http_status', '503', { retryAfterSeconds: 600 })
    return 'open again'
  }
  const id = await submit({ initial_delay_seconds: 60 })
  await jobs.untilStatus(id, 'retrying')
  const [{ seconds } = { seconds: 0 }] = await database.sql<{ seconds: number }>(
    'select extract(epoch from wake_at - now())::float8 as seconds from waiting_jobs where job_id = $1',
    [id],
  )
  assert.ok(seconds > 590 && seconds <= 660, `${seconds} s`)
  await wakeUp()
  assert.equal((await jobs.untilStatus(id, 'completed')).result, 'open again')
})

test('a snooze does not use an attempt up', async () => {
  behave = () => (attempts.length < 3 ? snooze(3_600) : 'awake')
  const id = await submit({ max_attempts: 1 })
  for (const asleep of [1, 2]) {
    await waitFor('an attempt', () => attempts.length === asleep)
    await jobs.untilStatus(id, 'pending')
    await wakeUp()
  }
  const job = await jobs.untilStatus(id, 'completed')
  assert.deepEqual([job.attempts, attempts.map(({ attempt }) => attempt)], [1, [1, 1, 1]])
})

test('an attempt that runs too long is ended', async () => {
  behave = (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject))
  const job = await jobs.untilStatus(await submit({ timeout_seconds: 1, max_attempts: 1 }), 'failed')
  assert.equal(job.error?.code, 'timeout')
  const [execution] = await database.sql<{ outcome: string; ran_ms: number[] }>('select * from executions')
  assert.equal(execution?.outcome, 'timed_out')
  // Timers may go off a little before their time.
  assert.ok((execution?.ran_ms[0] ?? 0) >= 990)
})

test('the next attempt goes on from the checkpoint of the one before, and progress is shown', async () => {
  behave = async (_, context) => {
    if (context.lastCheckpoint) return context.lastCheckpoint
    context.progress(0.5, 'half way')
    await context.checkpoint({ page: 7 })
    throw new Error('and then it broke')
  }
  const id = await submit({ initial_delay_seconds: 1_000 })
  const halfway = await jobs.untilStatus(id, 'retrying')
  assert.deepEqual([halfway.progress, halfway.progress_note], [0.5, 'half way'])
  await wakeUp()
  assert.deepEqual((await jobs.untilStatus(id, 'completed')).result, { page: 7 })
  const tokens = attempts.map(({ fencingToken }) => BigInt(fencingToken))
  assert.ok(tokens[0] !== undefined && tokens[1] !== undefined && tokens[1] > tokens[0])
})

test('a result that Postgres refuses fails its job and no other', async (t) => {
  behave = ({ result }) => result
  await database.sql(
    `alter table finished_jobs add constraint refused check (result is distinct from '"refused"')`,
  )
  t.after(() => database.sql('alter table finished_jobs drop constraint refused'))
  const results = ['fine', 'refused', 'fine']
  const ids = await seedJobs(
    database.run,
    tenant,
    results.map((result) => newJob({ payload: { result } })),
  )
  await database.run(notify(JOBS_READY, ['test']))
  await waitFor('all ends', async () => (await database.sql('select from finished_jobs')).length === 3)
  assert.deepEqual(await jobs.statuses(ids), ['completed', 'failed', 'completed'])
  const job = await jobs.look(ids[1])
  assert.deepEqual(job.error, {
    code: 'unstorable_result',
    message: 'The result of the handler cannot be stored as JSON.',
  })
})

test('an error that jsonb would refuse is stored, with what it refuses replaced', async () => {
  const messages = ['NUL \0.', `${'x'.repeat(3_999)}😀`]
  behave = ({ n }) => {
    throw new JobError('bro\0ken', messages[Number(n)] ?? '', { permanent: true })
  }
  for (const [n, stored] of ['NUL \ufffd.', `${'x'.repeat(3_999)}\ufffd`].entries()) {
    const id = await submit({ payload: { n } })
    await jobs.untilStatus(id, 'failed')
    assert.deepEqual((await jobs.look(id)).error, { code: 'bro\ufffdken', message: stored })
  }
})

test('an error that Postgres refuses is replaced, and retried or not as it was', async (t) => {
  behave = ({ permanent }) => {
    throw new JobError('refused', 'It broke.', { permanent: permanent === true })
  }
  for (const table of ['finished_jobs', 'waiting_jobs', 'attempts']) {
    await database.sql(`alter table ${table} add constraint refused check (error ->> 'code' <> 'refused')`)
    t.after(() => database.sql(`alter table ${table} drop constraint refused`))
  }
  const ids = [await submit({ payload: { permanent: true } }), await submit({ initial_delay_seconds: 3_600 })]
  await Promise.all([jobs.untilStatus(ids[0], 'failed'), jobs.untilStatus(ids[1], 'retrying')])
  const error = { code: 'unstorable_error', message: 'The handler failed, and its error cannot be stored.' }
  assert.deepEqual((await jobs.look(ids[0])).error, error)
})

test('log lines are there when the outcome is', async () => {
  behave = (_, { log }) => {
    for (let n = 0; n < 20; n++) log.info(`line ${n}`)
    throw new JobError('broken', 'It broke.', { permanent: true })
  }
  const id = await submit()
  await jobs.untilStatus(id, 'failed')
  const lines = await database.sql('select message from job_logs order by id')
  assert.deepEqual([lines.length, lines.at(-1)?.message], [21, 'broken: It broke.'])
})

test('a cancelled job reaches the handler within a second, and its late result changes nothing', async () => {
  await untilListening(database, worker)
  behave = () => 'warm up'
  await jobs.untilStatus(await submit(), 'completed')
  const aborted = Promise.withResolvers<unknown>()
  const late = Promise.withResolvers<string>()
  behave = (_, { signal }) => {
    signal.addEventListener('abort', () => aborted.resolve(signal.reason))
    return late.promise
  }
  const id = await submit()
  await jobs.untilStatus(id, 'running')
  const cancelledAt = performance.now()
  await cancelHeldJob(database.sql, id)
  await database.run(notify(JOBS_CANCELLED, [worker.id]))
  const reason = (await aborted.promise) as { why?: string }
  assert.equal(reason.why, 'cancelled')
  assert.ok(performance.now() - cancelledAt < 1_000)
  late.resolve('too late')
  await waitFor('it to be let go', () => said('job cancelled', id).length > 0)
  const job = await jobs.look(id)
  assert.deepEqual([job.status, job.result], ['cancelled', null])
})

test('the leader removes a deleted organisation and stops its running job', async () => {
  const gone = await seedTenant(database.run)
  const aborted = Promise.withResolvers<unknown>()
  behave = (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        aborted.resolve(signal.reason)
        reject(signal.reason)
      })
    })
  const [id] = await seedJobs(database.run, gone, [newJob(), newJob({ run_at: '2999-01-01T00:00:00Z' })])
  await jobs.untilStatus(id, 'running')
  await closeOrg(database, gone)
  await settleDeletion(database, gone)
  assert.equal(((await aborted.promise) as { why?: string }).why, 'cancelled')
  await waitFor('the organisation to be removed', async () => {
    const [row] = await database.sql('select removed_at from org_deletions where id = $1', [gone.orgId])
    return row?.removed_at
  })
  assert.deepEqual(await database.sql('select from jobs where org_id = $1', [gone.orgId]), [])
})

test('a worker that finishes after it lost its lease changes nothing, and says so once', async () => {
  const finish = Promise.withResolvers<string>()
  behave = () => finish.promise
  const id = await submit()
  await jobs.untilStatus(id, 'running')
  await passLeaseOn(database.sql, id)
  finish.resolve('too late')
  await waitFor('the loss to be said', () => said('lease lost', id).length > 0)
  assert.equal(await jobs.statusOf(id), 'running', "someone else's")
  assert.deepEqual(await database.sql('select * from attempts'), [])
  await worker.stop()
  assert.equal(said('lease lost', id).length, 1)
})

test('every outcome is in the registry by the next heartbeat', async () => {
  behave = () => 1
  await jobs.untilStatus(await submit(), 'completed')
  const row = await waitFor('the heartbeat', async () => {
    const [mine] = await database.sql('select * from workers where worker_id = $1', [worker.id])
    return mine?.jobs_processed === '1' && mine
  })
  assert.deepEqual(
    [row.status, row.types, row.slots, row.cpu_units, row.running],
    ['online', ['test', 'callback'], 10, 10, 0],
  )
  assert.ok(Number(row.memory_mb) > 100)
})
