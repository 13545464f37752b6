import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { AutoscaleRow } from '../../db/queries/autoscale.ts'
import type { Query, Run } from '../../db/query.ts'
import { createAutoscaler, dispensable } from '../../worker-runtime/local/autoscaler.ts'
import { createWorkerPool, type WorkerPool } from '../../worker-runtime/local/worker-pool.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { httpJobs } from '../support/http-jobs.ts'
import { seedTenant } from '../support/jobs.ts'
import { startTarget, type Target } from '../support/target.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let target: Target
let pool: WorkerPool
const deaths: string[] = []
const guarded = new Set<number>()

before(async () => {
  ;[database, target] = await Promise.all([createTestDatabase(), startTarget()])
  pool = createWorkerPool({
    env: {
      ...process.env,
      DATABASE_URL: asLogin(database.url, 'workers'),
      SMARTQUEUE_HTTP_ALLOW: '127.0.0.1',
      SMARTQUEUE_WORKER_SLOTS: '1',
      SMARTQUEUE_MAX_WORKERS: '3',
      // One worker for each job of a second.
      SMARTQUEUE_DRAIN_GOAL_SECONDS: '1',
      SMARTQUEUE_DRAIN_SECONDS: '0',
      SMARTQUEUE_LOG_LEVEL: 'error',
    },
    drainSeconds: 0,
    reaper: { guard: ({ pid }) => guarded.add(pid), forget: (pid) => guarded.delete(pid) },
    onDeath: (how) => deaths.push(how),
  })
})
after(async () => {
  await pool.stop()
  await Promise.all([database.drop(), target.stop()])
})

const IDLE = { queued_seconds: 0, running_seconds: 0, arriving_per_second: 0, scheduled_seconds: 0 }

test('workers come with the work, and go without it: idle ones first, and none in the middle of a job', async () => {
  const tenant = await seedTenant(database.run)
  const jobs = httpJobs(database, tenant, target)
  const lines: string[] = []
  let nowSeconds = 0
  let idle = false
  const run: Run = async <Row>(query: Query<Row>) => {
    const rows = await database.run(query)
    const isIdle = idle && query.name === 'read-autoscale'
    return isIdle ? (rows as AutoscaleRow[]).map((row) => ({ ...row, ...IDLE }) as Row) : rows
  }
  const autoscaler = createAutoscaler({
    ...{ run, pool, range: { min: 1, max: 3 }, now: () => nowSeconds },
    say: (line) => lines.push(line),
    onFailure: (error) => assert.fail(error),
  })
  const ids = await Promise.all(['/wait/1', '/wait/2'].map((path) => jobs.submit(path)))

  const { workerId: leader, metricsPort } = await pool.add()
  assert.equal((await fetch(`http://127.0.0.1:${metricsPort}/startupz`)).status, 200)
  await assert.rejects(fetch(`http://[::1]:${metricsPort}/startupz`), 'there and nowhere else')
  await waitFor('a snapshot', async () => (await database.sql('select from autoscale_snapshots')).length > 0)
  await autoscaler.look()
  assert.equal(pool.workers().length, 3)
  assert.match(
    lines[0] ?? '',
    /^Scaled 1 → 3 workers: \d+ s of predicted work .* \(B \d\.\d, R \d\.\d, F \d\.\d workers\)$/,
  )
  await jobs.untilAll(ids, 'running')
  const holders = await waitFor('the registry to know', async () => {
    const rows = await database.sql<{ worker_id: string }>('select worker_id from workers where running = 1')
    return rows.length === 2 && rows.map(({ worker_id }) => worker_id)
  })

  idle = true
  const [spare] = pool.workers().filter(({ workerId }) => !holders.includes(workerId))
  assert.ok(spare)
  nowSeconds = 30
  await autoscaler.look()
  assert.equal(pool.workers().length, 3, 'not before nothing was asked for during two minutes')
  nowSeconds = 121
  await autoscaler.look()
  assert.match(lines[1] ?? '', /^Scaled 3 → 2 workers: 0 s of predicted work/)
  if (spare.workerId !== leader) {
    assert.ok(!pool.workers().includes(spare), 'the one that is idle goes first')
    await waitFor('it to go', () => guarded.size === 2)
  }
  nowSeconds = 182
  await autoscaler.look()
  assert.deepEqual(
    pool.workers().map(({ workerId }) => workerId),
    [leader],
  )
  nowSeconds = 243
  await autoscaler.look()
  assert.equal(pool.workers().length, 1, 'one stays')

  // Told to go, and with no drain time at all: what runs is not touched.
  await waitFor('them to leave', async () => {
    const rows = await database.sql(`select from workers where status = 'online'`)
    return rows.length === 1
  })
  assert.deepEqual(await jobs.statuses(ids), ['running', 'running'])
  target.release()
  await jobs.untilAll(ids, 'completed')
  await waitFor('the retired ones to go', () => guarded.size === 1)
  for (const id of ids) assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'completed'])
  assert.deepEqual(deaths, [])
})

test('a worker that dies without being asked to is told, also one that is told to go at that moment', async () => {
  const [[pid], [worker]] = [[...guarded], pool.workers()]
  assert.ok(pid && worker)
  process.kill(pid, 'SIGKILL')
  pool.retire(worker)
  await waitFor('the news', () => deaths.length === 1)
  assert.match(deaths[0] ?? '', /SIGKILL/)
})

test('the leader goes last, then the busiest, and of others the newest goes first', () => {
  const workers = ['a', 'b', 'c', 'd'].map((workerId) => ({ workerId, types: [], metricsPort: 1 }))
  const running = new Map([
    ['b', 2],
    ['c', 1],
  ])
  const runningOf = (id: string) => running.get(id) ?? 0
  const order = (leader: string | undefined) =>
    dispensable(workers, { leader, runningOf }).map(({ workerId }) => workerId)
  assert.deepEqual(order(undefined), ['d', 'a', 'c', 'b'])
  assert.deepEqual(order('d'), ['a', 'c', 'b', 'd'])
})
