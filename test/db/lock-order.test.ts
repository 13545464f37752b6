import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { removeDeletedOrg } from '../../db/queries/deletion.ts'
import type { Query } from '../../db/query.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { type ClaimedJob, claimSuspect } from '../../db/queue/exchange.ts'
import { renewLeases } from '../../db/queue/leases.ts'
import { askToIsolate, reclaimExpiredLeases } from '../../db/queue/upkeep.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  exchange,
  expireLeases,
  lead,
  makeSuspects,
  newJob,
  seedJobs,
  seedTenant,
  submitAll,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const seed = (...jobs: ReturnType<typeof newJob>[]) => seedJobs(database.run, tenant, jobs)
const submit = (job: ReturnType<typeof newJob>) => submitAll(database.run, [{ ...tenant, jobs: [job] }])
const seedHeld = async (job: ReturnType<typeof newJob>): Promise<ClaimedJob> => {
  await seed(job)
  const [held] = await claim(database.run, 'w', 1)
  assert.equal(held?.job_id, job.id)
  return held
}

const WAITING = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`

/**
 * One after the other they run into what a third has locked, or into each other. When the third lets go, all must come
 * through.
 */
const meet = async (
  lock: Pick<Query<unknown>, 'text' | 'values'>,
  ...meeting: (() => Promise<unknown>)[]
) => {
  const third = new pg.Client({ connectionString: database.url })
  await third.connect()
  await third.query('begin')
  await third.query(lock.text, [...lock.values])
  const all: Promise<unknown>[] = []
  let done = 0
  for (const statement of meeting) {
    all.push(statement().finally(() => done++))
    await waitFor(
      `${all.length} to wait or to be done`,
      async () => done + (await database.sql(WAITING)).length === all.length,
    )
  }
  await third.query('commit')
  await third.end()
  return Promise.all(all)
}
const lease = ({ token }: ClaimedJob) => ({
  text: 'select from leases where token = $1 for update',
  values: [token],
})

test('the end of a parent and the cancellation of it and of a child do not wait for each other', async () => {
  const parent = newJob()
  const held = await seedHeld(parent)
  const [first, second] = [newJob({ depends_on: [parent.id] }), newJob({ depends_on: [parent.id] })]
  await seed(first, second)
  await meet(
    { text: 'select from blocked_jobs where job_id = $1 for update', values: [first.id] },
    () => exchange(database.run, { ended: [completed(held)] }),
    () => database.run(cancelJobs(tenant.orgId, [second.id, parent.id])),
  )
  assert.deepEqual(await watchJobs(database.sql).statuses([parent.id, first.id]), ['completed', 'ready'])
})

test('a renewal and a submission with two held parents do not wait for each other', async () => {
  const [older, younger] = [newJob(), newJob()]
  const held = [await seedHeld(younger), await seedHeld(older)] as const
  await meet(
    lease(held[0]),
    () =>
      database.run(
        renewLeases(
          held.map(({ token }) => token),
          30,
        ),
      ),
    () => submit(newJob({ depends_on: [older.id, younger.id] })),
  )
})

test('an exchange and a submission that depends on what it ends and claims do not wait for each other', async () => {
  const [ended, alsoEnded, claimed] = [newJob(), newJob(), newJob()]
  const first = await seedHeld(alsoEnded)
  const second = await seedHeld(ended)
  await seed(claimed)
  const child = newJob({ depends_on: [ended.id, claimed.id] })
  await meet(
    lease(second),
    () => exchange(database.run, { ended: [completed(first), completed(second)], claim: { limit: 1 } }),
    () => submit(child),
  )
  const [blocked] = await database.sql('select remaining from blocked_jobs where job_id = $1', [child.id])
  assert.equal(blocked?.remaining, 1, 'the one that has ended is not waited for')
})

/** Of two suspects that were lost together, one runs alone and its lease has expired. The other is ready. */
const seedLoneSuspect = async () => {
  const suspects = [newJob(), newJob()]
  await seed(...suspects)
  await makeSuspects(database)
  await database.run(
    claimSuspect({ workerId: 'w', leaseSeconds: 30, types: ['test'], cpuUnits: 2, memoryMb: 512 }),
  )
  await expireLeases(database.sql)
  return suspects.map(({ id }) => id)
}
const waitingJob = (id: string) => ({
  text: 'select from waiting_jobs where job_id = $1 for update',
  values: [id],
})

test('the cancellation of two suspects and the watchdog do not wait for each other', async () => {
  const suspects = await seedLoneSuspect()
  const later = newJob({ run_at: '2999-01-01T00:00:00Z' })
  await seed(later)
  const term = await lead(database.run)
  await meet(
    waitingJob(later.id),
    () => database.run(cancelJobs(tenant.orgId, [...suspects, later.id])),
    () => database.run(reclaimExpiredLeases(term, 10)),
  )
})

test('a submission that depends on two suspects and the watchdog do not wait for each other', async () => {
  const suspects = await seedLoneSuspect()
  const later = newJob({ run_at: '2999-01-01T00:00:00Z' })
  await seed(later)
  const term = await lead(database.run)
  await meet(
    waitingJob(later.id),
    () => submit(newJob({ depends_on: [...suspects, later.id] })),
    () => database.run(reclaimExpiredLeases(term, 10)),
  )
  const left = await database.sql('select from ready_jobs where lane >= 15000')
  assert.equal(left.length, 1, 'only the one that ran alone is still a suspect')
})

test('a cancellation and the removal of the organisation do not wait for each other', async () => {
  const gone = await seedTenant(database.run)
  const [held, ready, later] = [newJob(), newJob(), newJob({ run_at: '2999-01-01T00:00:00Z' })]
  await seedJobs(database.run, gone, [held])
  assert.equal((await claim(database.run, 'w', 1)).length, 1)
  await seedJobs(database.run, gone, [ready, later])
  await database.sql('insert into org_deletions (id) values ($1)', [gone.orgId])
  const term = await lead(database.run)
  await meet(
    waitingJob(later.id),
    () => database.run(cancelJobs(gone.orgId, [held.id, ready.id, later.id])),
    () => database.run(removeDeletedOrg(term, 100)),
  )
})

test('releasing several isolated workers and the watchdog do not wait for each other', async () => {
  for (const workerId of ['second', 'first']) {
    await database.sql(
      `insert into workers (worker_id, hostname, status, types, slots, cpu_units, memory_mb, isolates)
      values ($1, 'host', 'online', '{test}', 1, 1, 64, true)`,
      [workerId],
    )
  }
  const term = await lead(database.run)
  await meet(
    { text: `select from workers where worker_id = 'first' for update`, values: [] },
    () => database.sql('select from workers order by worker_id for update'),
    () => database.run(askToIsolate(term)),
  )
})
