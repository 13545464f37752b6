import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import type { Query } from '../../db/query.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import { renewLeases } from '../../db/queue/leases.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  exchange,
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
const untilWaiting = (count: number) =>
  waitFor(`${count} to wait`, async () => (await database.sql(WAITING)).length === count)

/** One after the other they run into what a third has locked. When that lets go, all must come through. */
const meet = async (
  lock: Pick<Query<unknown>, 'text' | 'values'>,
  ...meeting: (() => Promise<unknown>)[]
) => {
  const third = new pg.Client({ connectionString: database.url })
  await third.connect()
  await third.query('begin')
  await third.query(lock.text, [...lock.values])
  const all: Promise<unknown>[] = []
  for (const statement of meeting) {
    all.push(statement())
    await untilWaiting(all.length)
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
