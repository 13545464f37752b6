import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { after, before, beforeEach, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>
let gate: PromiseWithResolvers<void>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  gate = Promise.withResolvers()
})

const prepare = (env: Record<string, string> = {}) =>
  prepareWorker(
    database.url,
    [
      handle(async ({ quick }, { signal }) => {
        if (quick) return
        await Promise.race([
          gate.promise,
          new Promise((resolve) => signal.addEventListener('abort', resolve)),
        ])
        signal.throwIfAborted()
      }),
    ],
    { SMARTQUEUE_WORKER_SLOTS: '1', ...env },
  )
/** A worker that runs one job and holds another, which it has not started. */
const startHolding = async (env: Record<string, string> = {}) => {
  const [, running, held] = await seedJobs(database.run, tenant, [
    newJob({ payload: { quick: true }, priority: 'critical' }),
    newJob(),
    newJob(),
    newJob(),
  ])
  const worker = prepare(env)
  await worker.start()
  await waitFor('two jobs in hand', async () => (await inHand()) === 2)
  await jobs.untilStatus(running, 'running')
  return { worker, running, held }
}
const inHand = async (): Promise<number> => (await database.sql('select from held_jobs')).length
const registered = async (worker: { id: string }) =>
  (await database.sql('select * from workers where worker_id = $1', [worker.id]))[0]

test('a stopping worker gives back at once what it has not started, and finishes what it has', async () => {
  const { worker, running, held } = await startHolding()
  const stopped = worker.stop()
  await waitFor('it to be given back', async () => (await inHand()) === 1, 2_000)
  assert.deepEqual(await jobs.statuses([String(running), String(held)]), ['running', 'ready'])
  await waitFor('the registry to say so', async () => (await registered(worker))?.status === 'draining')
  gate.resolve()
  await stopped
  const statuses = await jobs.statuses([String(running), String(held)])
  assert.deepEqual(statuses, ['completed', 'ready'], 'it claimed no more')
  const left = await jobs.look(held)
  assert.deepEqual([left.attempts, await jobs.eventsOf(held)], [0, ['ready', 'running', 'ready: shutdown']])
  assert.deepEqual(await database.sql('select * from held_jobs'), [])
  assert.equal((await registered(worker))?.status, 'offline')
})

test('what outlasts the drain time is stopped and given back, and the try does not count', async () => {
  const { worker, running } = await startHolding({ SMARTQUEUE_DRAIN_SECONDS: '0' })
  await worker.stop()
  const job = await jobs.look(running)
  assert.deepEqual([job.status, job.attempts], ['ready', 0])
  assert.deepEqual(await jobs.eventsOf(running), ['ready', 'running', 'ready: shutdown'])
  assert.deepEqual(await database.sql('select * from held_jobs'), [])
})

test('a retiring worker claims no more and finishes what runs, without a limit to the time', async () => {
  const { worker, running, held } = await startHolding({ SMARTQUEUE_DRAIN_SECONDS: '0' })
  const retired = worker.retire()
  await waitFor('it to be given back', async () => (await inHand()) === 1, 2_000)
  await waitFor('the registry to say so', async () => (await registered(worker))?.status === 'draining')
  assert.deepEqual(await jobs.statuses([String(running), String(held)]), ['running', 'ready'])
  gate.resolve()
  await retired
  assert.deepEqual(await jobs.statuses([String(running), String(held)]), ['completed', 'ready'])
})

test('a stop while a worker retires sets the drain time after all', async () => {
  const { worker, running } = await startHolding({ SMARTQUEUE_DRAIN_SECONDS: '0' })
  const retired = worker.retire()
  await waitFor('it to be given back', async () => (await inHand()) === 1, 2_000)
  await Promise.all([retired, worker.stop()])
  assert.deepEqual(await jobs.eventsOf(running), ['ready', 'running', 'ready: shutdown'])
})

test('a worker that is stopped while a claim is on its way gives back what it brings', async () => {
  for (let n = 0; n < 5; n++) {
    await clearJobs(database.sql)
    await seedJobs(
      database.run,
      tenant,
      Array.from({ length: 40 }, () => newJob({ payload: { quick: true } })),
    )
    const worker = prepare({ SMARTQUEUE_DRAIN_SECONDS: '1', SMARTQUEUE_WORKER_SLOTS: '2' })
    await worker.start()
    for (let turns = 0; turns < n * 20; turns++) await turn()
    await worker.stop()
    assert.deepEqual(await database.sql('select * from held_jobs'), [], `after ${n * 20} turns`)
  }
})

test('a worker stands in the registry from its start until it goes', async () => {
  const worker = prepare({ SMARTQUEUE_WORKER_CPU_UNITS: '6', SMARTQUEUE_WORKER_MEMORY_MB: '777' })
  await worker.start()
  const row = await registered(worker)
  assert.deepEqual(
    [row?.hostname, row?.status, row?.types, row?.slots, row?.cpu_units, row?.memory_mb],
    [hostname(), 'online', ['test', 'callback'], 1, 6, 777],
  )
  assert.match(worker.id, /^worker-[0-9a-f]{12}$/, 'organisations see it, so it reveals nothing')
  await seedJobs(database.run, tenant, [newJob()])
  await waitFor('the heartbeat', async () => (await registered(worker))?.running === 1)
  gate.resolve()
  await worker.stop()
  await worker.stop()
  const gone = await registered(worker)
  assert.deepEqual([gone?.status, gone?.running, gone?.jobs_processed], ['offline', 0, '1'])
})
