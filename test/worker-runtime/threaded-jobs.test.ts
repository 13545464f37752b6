import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, before, beforeEach, test } from 'node:test'
import { z } from 'zod'
import { JOBS_CANCELLED, notify } from '../../db/queries/notifications.ts'
import { defineThreadedJob } from '../../worker-runtime/handler-api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  cancelHeldJob,
  clearJobs,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker } from '../support/worker.ts'

const spin = defineThreadedJob({
  type: 'spin',
  schema: z.object({ seconds: z.number() }),
  module: new URL('../support/threaded/spin.ts', import.meta.url),
})
const play = defineThreadedJob({
  type: 'play',
  schema: z.looseObject({}),
  module: new URL('../support/threaded/play.ts', import.meta.url),
})

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const start = async (env: Record<string, string> = {}) => {
  const worker = prepareWorker(database.url, [spin, play, handle(() => 'quick')], env)
  await worker.start()
  return worker
}
const submit = async (type: string, payload: Record<string, unknown> = {}): Promise<string> => {
  const [id] = await seedJobs(database.run, tenant, [newJob({ type, payload })])
  return String(id)
}
const startSpinning = async (): Promise<string> => {
  const id = await submit('spin', { seconds: 120 })
  const line = `select from job_logs where job_id = $1 and message = 'spins'`
  await waitFor('it to spin', async () => (await database.sql(line, [id])).length === 1)
  return id
}
const lastSeen = async (worker: { id: string }): Promise<number> => {
  const text = 'select last_seen as at from workers where worker_id = $1'
  const [row] = await database.sql<{ at: Date }>(text, [worker.id])
  return row?.at.getTime() ?? 0
}
/** Of the threads of this process: the 19th field of what Linux says of each, the 2nd of which is in brackets. */
const nicenesses = (): number[] =>
  readdirSync('/proc/self/task').map((thread) => {
    const [, fields] = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')
    return Number(fields?.split(' ')[16])
  })

test('a handler that spins delays no heartbeat, no renewal and no other job, and is cancelled within a second', async () => {
  const worker = await start()
  const spinning = await startSpinning()
  if (process.platform === 'linux') assert.ok(nicenesses().includes(5), 'it gives way')
  const seenAt = await lastSeen(worker)
  const askedAt = performance.now()
  await jobs.untilStatus(await submit('test'), 'completed')
  assert.ok(performance.now() - askedAt < 1_000, 'another job')
  await database.sql(`update leases set expires_at = now() + interval '1 second'`)
  // Which makes it look at its leases, and so renew them, at once.
  await database.run(notify(JOBS_CANCELLED, [worker.id]))
  await waitFor('the renewal', async () => {
    const text = `select from leases where expires_at > now() + interval '10 seconds'`
    return (await database.sql(text)).length === 1
  })
  await waitFor('a heartbeat', async () => (await lastSeen(worker)) > seenAt)

  await cancelHeldJob(database.sql, spinning)
  const cancelledAt = performance.now()
  await database.run(notify(JOBS_CANCELLED, [worker.id]))
  await waitFor('the end of it', () => worker.log.some(({ message }) => message === 'job cancelled'))
  assert.ok(performance.now() - cancelledAt < 1_000, `${performance.now() - cancelledAt} ms`)
  await worker.stop()
  assert.deepEqual(
    worker.log.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  )
})

test('a worker that stops ends its threads and gives their jobs back', async () => {
  const worker = await start({ SMARTQUEUE_DRAIN_SECONDS: '0' })
  const spinning = await startSpinning()
  await worker.stop()
  assert.equal(await jobs.statusOf(spinning), 'ready')
  if (process.platform === 'linux') assert.ok(!nicenesses().includes(5), 'no thread is left')
})

test('log, progress, checkpoint and result of a thread are stored; its death costs an attempt', async () => {
  const worker = await start()
  const told = await submit('play', { part: 'tell' })
  const { result, progress, progress_note } = await jobs.untilStatus(told, 'completed')
  assert.deepEqual(
    [(result as { orgId: string }).orgId, progress, progress_note],
    [tenant.orgId, 0.5, 'half'],
  )
  const lines = await database.sql<{ message: string }>(
    'select message from job_logs where job_id = $1 order by id',
    [told],
  )
  assert.equal(lines.length, 4)

  const died = await jobs.untilStatus(await submit('play', { part: 'exit' }), 'failed')
  assert.deepEqual([died.attempts, died.error?.code], [3, 'thread_died'])
  await jobs.untilStatus(await submit('test'), 'completed')
  await worker.stop()
})
