import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { after, before, beforeEach, test } from 'node:test'
import { JOBS_CANCELLED, notify } from '../../db/queries/notifications.ts'
import { parseConfig } from '../../worker-runtime/config.ts'
import type { JobContext } from '../../worker-runtime/handler-api.ts'
import { createLearningDuty } from '../../worker-runtime/learning/duty.ts'
import { createWorker } from '../../worker-runtime/worker.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { predictionWith, sampleWith } from '../support/lessons.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, keepLog } from '../support/worker.ts'

const SPINNING = new URL('../support/spinning-thread.ts', import.meta.url)
const CRASHING = new URL('../support/crashing-thread.ts', import.meta.url)

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const prepare = (learningThread?: URL) => {
  const { log, logger } = keepLog()
  const config = {
    ...parseConfig({ SMARTQUEUE_DRAIN_SECONDS: '0' }),
    DATABASE_URL: asLogin(database.url, 'workers'),
  }
  const untilAborted = ({ signal }: JobContext) =>
    new Promise((done) => signal.addEventListener('abort', done))
  const handlers = [handle((payload, context) => (payload.endless ? untilAborted(context) : null))]
  const worker = createWorker({ config, handlers, logger, ...(learningThread && { learningThread }) })
  return { ...worker, log }
}
const lastSeen = async (workerId: string): Promise<number> => {
  const [row] = await database.sql<{ at: Date }>('select last_seen as at from workers where worker_id = $1', [
    workerId,
  ])
  return row?.at.getTime() ?? 0
}
const sessionsOf = (workerId: string) =>
  database.sql(`select from pg_stat_activity where application_name = $1`, [`smartqueue ${workerId} learner`])
/** Of the threads of this process: the 19th field of what Linux says of each, the 2nd of which is in brackets. */
const nicenesses = (): number[] =>
  readdirSync('/proc/self/task').map((thread) => {
    const [, fields] = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')
    return Number(fields?.split(' ')[16])
  })

test('a worker that leads learns from what it runs, at low priority, and lets go when it stops', async () => {
  const worker = prepare()
  await worker.start()
  const jobs = Array.from({ length: 5 }, () => newJob({ prediction: predictionWith(sampleWith()) }))
  await seedJobs(database.run, tenant, jobs)
  await waitFor('what was learned', async () => {
    const [row] = await database.sql<{ learned: number }>('select learned::int from learning_state')
    return row?.learned === 5
  })
  assert.equal((await database.sql(`select from models where status = 'champion'`)).length, 1)
  await waitFor('a word of the load forecast', async () => {
    const [row] = await database.sql<{ reason: string }>(
      'select unusable_because as reason from load_forecasts',
    )
    return row?.reason.startsWith('There are 0 hours of history')
  })
  assert.equal(getPriority(process.pid), 0, 'that of this thread')
  if (process.platform === 'linux') assert.ok(nicenesses().includes(10), 'that of the learner')
  await worker.stop()
  assert.deepEqual(await sessionsOf(worker.id), [])
  assert.deepEqual(
    worker.log.filter(({ level }) => level === 'error'),
    [],
  )
})

test('a training round, however long, delays neither heartbeats nor renewals nor jobs nor the end of the worker', async () => {
  const worker = prepare(SPINNING)
  await worker.start()
  await waitFor('the learner to be busy', () => worker.log.some(({ message }) => message === 'spins'))
  const seenAt = await lastSeen(worker.id)
  const [id, endless] = await seedJobs(database.run, tenant, [
    newJob(),
    newJob({ payload: { endless: true } }),
  ])
  const { untilStatus } = watchJobs(database.sql)
  await untilStatus(id, 'completed')
  await untilStatus(endless, 'running')
  await database.sql(`update leases set expires_at = now() + interval '1 second'`)
  // Which makes it look at its leases, and so renew them, at once.
  await database.run(notify(JOBS_CANCELLED, [worker.id]))
  await waitFor('the renewal', async () => {
    const text = `select from leases where expires_at > now() + interval '10 seconds'`
    return (await database.sql(text)).length === 1
  })
  await waitFor('a heartbeat', async () => (await lastSeen(worker.id)) > seenAt)
  await worker.stop()
  assert.deepEqual(
    worker.log.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  )
})

test('a learner that crashes is reported once, and started again after a pause', async () => {
  const { logger } = keepLog()
  const said: Error[] = []
  const duty = createLearningDuty({
    url: database.url,
    applicationName: 'test learner',
    logger,
    onError: (error) => said.push(error),
    sharesEstimates: false,
    leadSeconds: 75,
    thread: CRASHING,
    restartMs: 50,
  })
  const crash = () =>
    waitFor('a crash', async () => {
      const delayMs = await duty.step('1').catch((error: Error) => error.message)
      return typeof delayMs === 'string' && delayMs
    })
  assert.equal(await crash(), 'the learner broke')
  assert.equal(typeof (await duty.step('1')), 'number', 'once')
  assert.equal(await crash(), 'the learner broke', 'it was started again')
  await duty.rest?.()
  await duty.rest?.()
  assert.deepEqual(said, [])
})

test('under a new term a new thread begins, and none is left when the worker leads no more', async () => {
  const { log, logger } = keepLog()
  const duty = createLearningDuty({
    url: asLogin(database.url, 'workers'),
    applicationName: 'smartqueue x learner',
    logger,
    onError: (error) => assert.fail(error),
    sharesEstimates: false,
    leadSeconds: 75,
    thread: SPINNING,
  })
  const spinning = () => log.filter(({ message }) => message === 'spins').length
  for (const [n, term] of ['1', '2'].entries()) {
    await waitFor(`a thread of term ${term}`, async () => {
      await duty.step(term)
      return spinning() === n + 1
    })
  }
  await duty.rest?.()
  assert.equal(spinning(), 2)
})
