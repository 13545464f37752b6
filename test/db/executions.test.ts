import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { releaseJobs } from '../../db/queue/leases.ts'
import { reclaimExpiredLeases } from '../../db/queue/upkeep.ts'
import type { Database } from '../../worker-runtime/database.ts'
import { connectWorker, createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  exchange,
  expireLeases,
  failed,
  lead,
  newJob,
  passLeaseOn,
  retrying,
  seedJobs,
  seedTenant,
  snoozed,
  type Tenant,
  timedOut,
} from '../support/jobs.ts'

let database: TestDatabase
let pinned: Database
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  pinned = connectWorker(database.url)
})
after(async () => {
  await pinned.close()
  await database.drop()
})
beforeEach(() => clearJobs(database.sql))

const start = async (...names: string[]) => {
  await seedJobs(
    database.run,
    tenant,
    names.map((name) => newJob({ name })),
  )
  return claim(database.run)
}
/** What was recorded: the series, the outcome, and how long each ran. */
const recorded = () =>
  database.sql<{ name: string; outcome: string; jobs: number; ran_ms: number[] }>(
    `select s.name, e.outcome, cardinality(e.job_ids) as jobs, e.ran_ms
    from executions e
    join series s on s.id = e.series_id and s.org_id = e.org_id
    order by s.name, e.outcome, e.ran_ms`,
  )

test('jobs that complete together are a row for each series', async () => {
  const jobs = await start('a', 'b', 'a', 'a')
  const ended = jobs.map((job, n) => completed(job, null, 10 + n))
  await exchange(pinned.run, { ended, closed: [jobs[0]?.token ?? ''] })
  assert.deepEqual(await recorded(), [
    { name: 'a', outcome: 'completed', jobs: 3, ran_ms: [10, 12, 13] },
    { name: 'b', outcome: 'completed', jobs: 1, ran_ms: [11] },
  ])
  const [row] = await database.sql<{ ids: string[] }>(
    'select job_ids as ids from executions where cardinality(job_ids) = 3',
  )
  assert.deepEqual(
    row?.ids,
    jobs.filter(({ name }) => name === 'a').map(({ job_id }) => job_id),
  )
})

test('a failure, a retry and a timeout are executions; what was snoozed is none', async () => {
  const [a, b, c, d, e] = await start('x', 'x', 'x', 'x', 'x')
  assert.ok(a && b && c && d && e)
  await end(pinned.run, failed(a), retrying(b), timedOut(c, 1_500), snoozed(d), completed(e))
  assert.deepEqual(await recorded(), [
    { name: 'x', outcome: 'completed', jobs: 1, ran_ms: [5] },
    { name: 'x', outcome: 'failed', jobs: 2, ran_ms: [5, 5] },
    { name: 'x', outcome: 'timed_out', jobs: 1, ran_ms: [1_500] },
  ])
})

test('what a former holder says is no execution, and neither is what was lost or given back', async () => {
  const [first, second, third] = await start('x', 'x', 'x')
  assert.ok(first && second && third)
  await passLeaseOn(database.sql, first.job_id)
  await end(database.run, completed(first))
  await database.run(releaseJobs([second], 'shutdown'))
  await expireLeases(database.sql)
  await database.run(reclaimExpiredLeases(await lead(database.run), 10))
  assert.deepEqual(await recorded(), [])
})

test('the cancellation of a running job is an execution as far as it got, of a waiting one none', async () => {
  const [running] = await start('x')
  assert.ok(running)
  await database.sql(`update leases set claimed_at = now() - interval '2 seconds'`)
  const [waiting] = await seedJobs(database.run, tenant, [newJob({ name: 'x' })])
  await database.run(cancelJobs(tenant.orgId, [running.job_id, waiting ?? '']))
  const [row, ...others] = await recorded()
  assert.deepEqual([row?.outcome, row?.jobs, others], ['cancelled', 1, []])
  assert.ok((row?.ran_ms[0] ?? 0) >= 2_000 && (row?.ran_ms[0] ?? 0) < 60_000, `${row?.ran_ms}`)
  const [series] = await database.sql('select runs::int from series')
  assert.deepEqual(series, { runs: 0 }, 'it teaches nothing')
})
