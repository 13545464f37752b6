import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { pauseQueue, resumeQueue } from '../../db/queries/pauses.ts'
import type { JobHandler } from '../../worker-runtime/handler-api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker, untilListening } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>
let workers: ReturnType<typeof prepareWorker>[]
/** Jobs whose payload says `wait` end when it opens. */
let gate: PromiseWithResolvers<void>
/** Names of the jobs that were started, in order. */
let started: string[]
let running: number
let most: number

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  gate = Promise.withResolvers()
  ;[workers, started, running, most] = [[], [], 0, 0]
})
afterEach(async () => {
  gate.resolve()
  await Promise.all(workers.map((worker) => worker.stop()))
})

const work = handle(async ({ name, wait, ms }) => {
  started.push(String(name))
  most = Math.max(most, ++running)
  if (wait) await gate.promise
  if (ms) await delay(Number(ms))
  running--
})
const startWorker = async (env: Record<string, string> = {}, handlers: JobHandler[] = [work]) => {
  const worker = prepareWorker(database.url, handlers, env)
  workers.push(worker)
  await worker.start()
  return worker
}
/** `label` tells jobs of one series apart. */
type Overrides = Parameters<typeof newJob>[0] & { label?: string; wait?: boolean; ms?: number }
const submit = async (...overrides: Overrides[]): Promise<string[]> => {
  const ids = await seedJobs(
    database.run,
    tenant,
    overrides.map(({ label, wait, ms, ...job } = {}) =>
      newJob({ ...job, payload: { name: label ?? job.name, wait, ms } }),
    ),
  )
  await database.run(notify(JOBS_READY, ['test']))
  return ids
}
const many = (count: number, job: Overrides): Overrides[] =>
  Array.from({ length: count }, (_, n) => ({ name: `${n}`, ...job }))
const leases = () =>
  database.sql<{ worker_id: string; jobs: number }>(
    'select worker_id, count(*)::int as jobs from held_jobs group by worker_id',
  )
const untilHeld = (worker: { id: string }, expected: number) =>
  waitFor(`${expected} jobs at ${worker.id}`, async () => {
    const mine = (await leases()).find(({ worker_id }) => worker_id === worker.id)
    return mine?.jobs === expected
  })

test('under a deep queue a worker holds as many jobs again as it runs, and no more', async () => {
  const quick = await submit(...many(3, { priority: 'critical' }))
  const slow = await submit(...many(30, { wait: true }))
  const worker = await startWorker({ SMARTQUEUE_WORKER_SLOTS: '3' })
  await jobs.untilAll(quick, 'completed')
  await untilHeld(worker, 6)
  const statuses = await jobs.statuses(slow)
  assert.equal(statuses.filter((status) => status === 'running').length, 6, 'claimed means running')
  assert.equal(running, 3)
  gate.resolve()
  await jobs.untilAll(slow, 'completed')
  assert.deepEqual([most, started.length], [3, 33])
})

test('jobs run in order of rank, each once, also through many exchanges', async () => {
  const classes = ['critical', 'high', 'normal', 'low'] as const
  const ids = await submit(
    // Not shorter: one that a busy machine holds up for long entitles the oldest to as many short ones.
    ...Array.from({ length: 10 }, () =>
      classes.map((priority) => ({ label: priority, priority, ms: 20 })),
    ).flat(),
  )
  await startWorker({ SMARTQUEUE_WORKER_SLOTS: '1' })
  await jobs.untilAll(ids, 'completed')
  assert.equal(started.length, 40)
  assert.equal(started[0], 'critical')
  // A quarter of the work goes to the oldest; the rest is in order.
  const firstHalf = started.slice(0, 20).filter((name) => name === 'critical' || name === 'high')
  assert.ok(firstHalf.length >= 13, started.join(' '))
})

test('with the policy fifo jobs run in order of arrival', async () => {
  const ids = await submit(
    { name: 'a', priority: 'low' },
    { name: 'b', priority: 'critical' },
    { name: 'c' },
    { name: 'd', priority: 'high' },
  )
  await startWorker({ SMARTQUEUE_WORKER_SLOTS: '1', SMARTQUEUE_POLICY: 'fifo' })
  await jobs.untilAll(ids, 'completed')
  assert.deepEqual(started, ['a', 'b', 'c', 'd'])
})

test('a worker never runs more than its cpu units and its memory allow', async () => {
  const env = { SMARTQUEUE_WORKER_CPU_UNITS: '4', SMARTQUEUE_WORKER_MEMORY_MB: '300' }
  await startWorker(env)
  const twos = await submit(...many(6, { cpu_units: 2, ms: 20 }))
  await jobs.untilAll(twos, 'completed')
  assert.equal(most, 2)
  most = 0
  const heavy = await submit(...many(6, { memory_mb: 100, ms: 20 }))
  await jobs.untilAll(heavy, 'completed')
  assert.equal(most, 3)
})

test('a big job that does not fit beside what runs does not keep small ones from starting', async () => {
  await untilListening(database, await startWorker({ SMARTQUEUE_WORKER_CPU_UNITS: '4' }))
  const [first, huge] = await submit({ label: 'first', wait: true }, { label: 'huge', cpu_units: 4 })
  await jobs.untilStatus(first, 'running')
  // Three units are free: the first of these fits, the second does not beside it, the third does.
  const [fits, waits, small] = await submit(
    { label: 'fits', priority: 'critical', cpu_units: 2, wait: true },
    { label: 'waits', priority: 'high', cpu_units: 2, wait: true },
    { label: 'small', wait: true },
  )
  await waitFor('what fits', () => running === 3, 2_000)
  assert.deepEqual([...started].sort(), ['first', 'fits', 'small'])
  assert.deepEqual(await jobs.statuses([String(huge), String(waits)]), ['ready', 'ready'])
  gate.resolve()
  await jobs.untilAll([fits, waits, small, huge].map(String), 'completed')
})

test('a big job that was overtaken gets its room while small ones keep coming', async () => {
  const small = (count: number) =>
    Array.from({ length: count }, (_, n) => ({
      name: `${n}`,
      ms: 30 + ((n * 37) % 60),
      priority: 'critical' as const,
    }))
  await submit(...small(12))
  const worker = await startWorker({ SMARTQUEUE_WORKER_CPU_UNITS: '4' })
  await waitFor('all to be busy', () => running === 4)
  const [big] = await submit({ name: 'big', cpu_units: 4, priority: 'low' }, ...small(300))
  await database.sql(`update ready_jobs set ready_at = now() - interval '1 minute'`)
  await jobs.untilStatus(big, 'completed')
  const [left] = await database.sql<{ n: number }>('select count(*)::int as n from ready_jobs')
  assert.ok(left && left.n > 0, 'small ones were still waiting')
  assert.ok(worker.log.some(({ message }) => message === 'capacity reserved'))
  assert.deepEqual(await database.sql('select * from reservations'), [])
  const before = started.length
  await waitFor('small ones to go on', () => started.length > before + 4)
  await database.sql('delete from ready_jobs')
  await waitFor('the rest', async () => (await leases()).length === 0)
})

test('a worker with nothing to do takes half of what another holds and has not started', async () => {
  const quick = await submit(...many(4, { priority: 'critical' }))
  const slow = await submit(...many(8, { wait: true }))
  const busy = await startWorker({ SMARTQUEUE_WORKER_SLOTS: '4' })
  await jobs.untilAll(quick, 'completed')
  await untilHeld(busy, 8)
  const idle = await startWorker({ SMARTQUEUE_WORKER_SLOTS: '4' })
  await untilHeld(idle, 2)
  await untilHeld(busy, 6)
  gate.resolve()
  await jobs.untilAll(slow, 'completed')
  assert.equal(started.length, 12, 'each ran once')
})

test('what a worker has not started when the queue is paused is given back, and what runs goes on', async () => {
  const quick = await submit(...many(3, { priority: 'critical' }))
  const slow = await submit(...many(9, { wait: true }))
  const worker = await startWorker({ SMARTQUEUE_WORKER_SLOTS: '3' })
  await jobs.untilAll(quick, 'completed')
  await untilHeld(worker, 6)
  await untilListening(database, worker)
  await database.run(pauseQueue(tenant.orgId, 'another'))
  await database.run(pauseQueue(tenant.orgId, 'test'))
  await untilHeld(worker, 3)
  gate.resolve()
  await waitFor('the running ones', () => running === 0)
  await waitFor('their ends', async () => (await leases()).length === 0)
  assert.equal(started.length, 6)
  await database.run(resumeQueue(tenant.orgId, 'test'))
  await database.run(notify(JOBS_READY, ['test']))
  await jobs.untilAll(slow, 'completed')
})

test('a new job goes to the worker that has nothing to do', async () => {
  const busy = await startWorker({ SMARTQUEUE_WORKER_SLOTS: '2' })
  const [slow] = await submit({ wait: true })
  await jobs.untilStatus(slow, 'running')
  const idle = await startWorker({ SMARTQUEUE_WORKER_SLOTS: '2' })
  await untilListening(database, idle)
  let taken = 0
  for (let n = 0; n < 30; n++) {
    const [id] = await submit({})
    if ((await jobs.untilStatus(id, 'completed')).worker_id === idle.id) taken++
  }
  // By chance it would be half of them; on a busy machine it is not always woken first.
  assert.ok(taken >= 18, `${taken} of 30 by the idle one, the rest by ${busy.id}`)
})

test('dependents that a worker releases start at once', async () => {
  await startWorker()
  const [parent] = await submit({ name: 'parent' })
  const [child] = await submit({ name: 'child', depends_on: [String(parent)] })
  await jobs.untilStatus(child, 'completed')
  assert.deepEqual(started, ['parent', 'child'])
})
