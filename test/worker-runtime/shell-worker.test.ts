import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { JOBS_CANCELLED, JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { cancelHeldJob, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>
/** Where the worker makes the folders of its jobs. */
let folder: string

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'smartqueue-test-'))
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(async () => {
  rmSync(folder, { recursive: true })
  await database.drop()
})

const start = (env: Record<string, string> = {}): Promise<TestWorker> =>
  startWorker(database.url, { SMARTQUEUE_SHELL_ALLOW: '/bin/sh', TMPDIR: folder, ...env })

/** A process that never ends, with a child and a grandchild, all of which tell their pids. */
const FAMILY = `echo $$; sh -c 'echo $$; sleep 600 & echo $!; wait' & wait`

const startFamily = async (more: Partial<ReturnType<typeof newJob>> = {}) => {
  const payload = { command: '/bin/sh', args: ['-c', FAMILY] }
  const [id] = await seedJobs(database.run, tenant, [newJob({ type: 'shell', payload, ...more })])
  await database.run(notify(JOBS_READY, ['shell']))
  const text = `select message from job_logs where job_id = $1 and message ~ '^[0-9]+$'`
  const lines = await waitFor('their pids', async () => {
    const found = await database.sql<{ message: string }>(text, [id])
    return found.length === 3 && found
  })
  const pids = lines.map(({ message }) => Number(message))
  assert.ok(pids.every(isAlive), String(pids))
  return { id: String(id), pids }
}
const isAlive = (pid: number): boolean => {
  const stat = `/proc/${pid}/stat`
  if (existsSync('/proc/self/stat')) return existsSync(stat) && !/\) Z /.test(readFileSync(stat, 'utf8'))
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
const untilGone = (pids: number[]) => waitFor(`the end of ${pids}`, () => !pids.some(isAlive), 5_000)

test('shell jobs are off unless the operator names executables', async () => {
  const off = await startWorker(database.url, {})
  const types = async () =>
    (await database.sql<{ type: string }>('select type from job_types')).map((row) => row.type)
  assert.ok(!(await types()).includes('shell'))
  await off.stop()
  const on = await start()
  assert.ok((await types()).includes('shell'))
  await on.stop()
})

test('the process group of a job ends when it is cancelled and when it times out, and with the worker', async () => {
  const worker = await start({ SMARTQUEUE_DRAIN_SECONDS: '0' })
  const cancelled = await startFamily()
  await cancelHeldJob(database.sql, cancelled.id)
  await database.run(notify(JOBS_CANCELLED, [worker.id]))
  await untilGone(cancelled.pids)

  const late = await startFamily({ timeout_seconds: 1, max_attempts: 1 })
  const failed = await jobs.untilStatus(late.id, 'failed')
  assert.equal(failed.error?.code, 'timeout')
  await untilGone(late.pids)

  const drained = await startFamily()
  assert.equal(await worker.stop(), 0)
  assert.ok(!drained.pids.some(isAlive), 'gone before the worker')
  assert.equal(await jobs.statusOf(drained.id), 'ready', 'given back')
  assert.deepEqual(readdirSync(folder), [])
})

test('a worker that is told twice to stop leaves no process behind, either', async () => {
  await database.sql('truncate ready_jobs, jobs cascade')
  const worker = await start()
  const family = await startFamily()
  assert.equal(readdirSync(folder).length, 1)
  const stopped = worker.stop()
  await waitFor('draining', () => worker.log.some(({ message }) => message === 'draining'))
  assert.equal(await worker.stop(), 1)
  await stopped
  await untilGone(family.pids)
  assert.deepEqual(readdirSync(folder), [])
})
