import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { JobTrace } from '../../db/queries/exchange-news.ts'
import { claimLoneJob, readLoneJob } from '../../db/queries/lone-claim.ts'
import { saveProgress } from '../../db/queries/progress.ts'
import { wakeDueJobs } from '../../db/queue/upkeep.ts'
import type { Database } from '../../worker-runtime/database.ts'
import { connectPinned, createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  exchange,
  lead,
  misplacedJobs,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  snoozed,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'

let database: TestDatabase
let pinned: Database
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  pinned = connectPinned(database.url)
})
after(async () => {
  await pinned.close()
  await database.drop()
})
beforeEach(() => clearJobs(database.sql))

const submit = (...overrides: Parameters<typeof newJob>[0][]) =>
  seedJobs(database.run, tenant, overrides.map(newJob))
const claimLone = async (order: 'rank' | 'age' = 'rank') => {
  const [row] = await pinned.run(
    claimLoneJob({ workerId: 'worker-1', leaseSeconds: 30, types: ['test'], order }),
  )
  return row
}

test('a lone claim is what an exchange would have claimed', async () => {
  const payload = { text: 'a, "b"', list: [1] }
  await submit({ payload, timeout_seconds: 7 }, { payload, timeout_seconds: 7 })
  const row = await claimLone()
  const [other] = await claim(database.run)
  assert.ok(row && other)
  const its = { job_id: null, token: null }
  assert.deepEqual({ ...readLoneJob(row), ...its }, { ...other, ...its })
  assert.equal(row.more, true)
  const { statuses, eventsOf } = watchJobs(database.sql)
  assert.deepEqual(await statuses([row.job_id, other.job_id]), ['running', 'running'])
  assert.deepEqual(await eventsOf(row.job_id), ['ready', 'running'])
  assert.deepEqual(await misplacedJobs(database.sql), [])
  const { news } = await exchange(database.run, {
    ended: [completed(readLoneJob(row))],
    closed: [row.token],
    leaseJobs: 1,
  })
  assert.equal(news.recorded, true)
  assert.deepEqual(await eventsOf(row.job_id), ['ready', 'running', 'completed'])
})

test('a traced job comes with its trace and how often it was executed, in each way to claim', async () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  await submit({ traceparent }, { name: 'other', traceparent })
  const rounded = ({ trace }: { trace: JobTrace | null }) =>
    trace && { ...trace, predicted_ms: Math.round(trace.predicted_ms) }
  const tracesOf = (jobs: Awaited<ReturnType<typeof claim>>) => jobs.map(rounded)
  const expected = { traceparent, executions: 0, predicted_ms: 1000 }
  const lone = await claimLone()
  assert.ok(lone)
  const job = readLoneJob(lone)
  assert.deepEqual(rounded(job), expected)
  const claimTraced = async () => (await exchange(pinned.run, { traced: true, claim: { limit: 10 } })).claimed
  const others = await claimTraced()
  assert.deepEqual(tracesOf(others), [expected])
  await end(database.run, retrying(job), ...others.map((other) => snoozed(other)))
  await database.run(wakeDueJobs(await lead(database.run), 100))
  const again = await claimTraced()
  assert.deepEqual(tracesOf(again), [
    { ...expected, executions: 1 },
    { ...expected, executions: 1 },
  ])
  await end(database.run, ...again.map((held) => snoozed(held)))
  await database.run(wakeDueJobs(await lead(database.run), 100))
  assert.equal(readLoneJob((await claimLone()) as typeof lone).trace?.executions, 2)
})

test('it takes the lowest lane, or the oldest', async () => {
  const [low, high, last] = await submit({ priority: 'low' }, { priority: 'high' }, {})
  assert.deepEqual([(await claimLone('rank'))?.job_id, (await claimLone('age'))?.job_id], [high, low])
  const row = await claimLone()
  assert.deepEqual([row?.job_id, row?.more], [last, false])
  assert.equal(await claimLone(), undefined)
})

test('what was tried before comes with its attempt and its checkpoint', async () => {
  const [id] = await submit({})
  const [first] = await claim(database.run)
  assert.ok(first)
  const report = { ...first, progress: 0.5, note: null, checkpoint: { at: 3 }, has_checkpoint: true }
  await database.run(saveProgress(JSON.stringify([report])))
  await end(database.run, retrying(first))
  await database.run(wakeDueJobs(await lead(database.run), 10))
  const row = await claimLone()
  assert.deepEqual([row?.job_id, row?.attempt, row?.checkpoint], [id, 2, { at: 3 }])
})

const deadline = '2999-01-01T00:00:00Z'
const EXTRAORDINARY: Record<string, () => Promise<unknown>> = {
  'another organisation is paused': () =>
    database.sql(`insert into pauses (org_id, type) values ($1, 'another')`, [tenant.orgId]),
  'a job has a deadline': () => submit({ deadline }),
  'a big job waits': () => submit({ memory_mb: 65 }),
}

for (const [what, arrange] of Object.entries(EXTRAORDINARY)) {
  test(`it takes nothing while ${what}`, async () => {
    await submit({})
    await arrange()
    assert.deepEqual([await claimLone('rank'), await claimLone('age')], [undefined, undefined])
    assert.equal((await database.sql('select from leases')).length, 0)
  })
}

test('it takes nothing of a type that the worker does not handle, nor what is parked', async () => {
  await submit({ type: 'other' }, {})
  await database.sql(`update ready_jobs set lane = lane + 10000 where type = 'test'`)
  assert.equal(await claimLone(), undefined)
})

test('two workers never get the same job', async () => {
  const ids = await submit(...Array.from({ length: 20 }, () => ({})))
  const rows = await Promise.all(
    Array.from({ length: 20 }, () =>
      database.run(claimLoneJob({ workerId: 'w', leaseSeconds: 30, types: ['test'], order: 'rank' })),
    ),
  )
  const claimed = rows.flat().map(({ job_id }) => job_id)
  assert.equal(new Set(claimed).size, claimed.length)
  assert.ok(claimed.every((id) => ids.includes(id)) && claimed.length > 0)
  assert.deepEqual(await misplacedJobs(database.sql), [])
})
