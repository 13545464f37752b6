import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { setQuotas } from '../../db/queries/quotas.ts'
import type { ClaimedJob } from '../../db/queue/exchange.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, completed, exchange, newJob, seedJobs, seedTenant, type Tenant } from '../support/jobs.ts'

let database: TestDatabase
let ada: Tenant
let bob: Tenant
before(async () => {
  database = await createTestDatabase()
  ada = await seedTenant(database.run)
  bob = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  await database.run(setQuotas(ada.orgId, { running_jobs: 3 }))
})

const seed = (tenant: Tenant, count: number, overrides = {}) =>
  seedJobs(
    database.run,
    tenant,
    Array.from({ length: count }, () => newJob(overrides)),
  )

const claim = async (
  options: { limit?: number; ended?: ClaimedJob[]; workerId?: string } = {},
): Promise<ClaimedJob[]> => {
  const { limit = 100, ended = [], workerId = 'worker-1' } = options
  const { claimed } = await exchange(database.run, {
    workerId,
    ended: ended.map((job) => completed(job)),
    claim: { limit },
  })
  return claimed
}

const ofOrg = (jobs: ClaimedJob[], { orgId }: Tenant) => jobs.filter(({ org_id }) => org_id === orgId)

test('a claim takes as many jobs of an organisation as may run, and all of others', async () => {
  await seed(ada, 10)
  await seed(bob, 5)
  const claimed = await claim()
  assert.deepEqual([ofOrg(claimed, ada).length, ofOrg(claimed, bob).length], [3, 5])
  assert.equal((await claim()).length, 0)
})

test('a claim passes a full organisation over, however many of its jobs stand in front', async () => {
  await seed(ada, 20)
  await seed(bob, 2)
  const claimed = await claim({ limit: 5 })
  assert.deepEqual([ofOrg(claimed, ada).length, ofOrg(claimed, bob).length], [3, 2])
})

test('a claim that ends jobs takes as many again in the same call', async () => {
  await seed(ada, 10)
  const first = await claim()
  assert.equal((await claim({ ended: first.slice(0, 2) })).length, 2)
  assert.equal((await claim()).length, 0)
})

test('workers that claim at the same time never start more than may run', async () => {
  for (let round = 0; round < 5; round++) {
    await clearJobs(database.sql)
    await seed(ada, 30)
    const claims = Array.from({ length: 8 }, (_, n) => claim({ limit: 4, workerId: `worker-${n}` }))
    const claimed = (await Promise.all(claims)).flat()
    assert.ok(claimed.length <= 3, `${claimed.length} were claimed`)
    const rest = await claim()
    assert.equal(claimed.length + rest.length, 3)
  }
})

test('a limit of none starts nothing, and keeps nobody else from starting', async () => {
  await database.run(setQuotas(ada.orgId, { running_jobs: 0 }))
  await seed(ada, 20)
  await seed(bob, 2)
  assert.equal(ofOrg(await claim({ limit: 5 }), bob).length, 2)
})

test('what the default allows holds for organisations without a limit of their own', async () => {
  await database.sql('update quotas set running_jobs = 2 where org_id is null')
  await seed(ada, 5)
  await seed(bob, 5)
  const claimed = await claim()
  assert.deepEqual([ofOrg(claimed, ada).length, ofOrg(claimed, bob).length], [3, 2])
  await database.sql('update quotas set running_jobs = null where org_id is null')
})

test('a default of none keeps only those from starting that have no limit of their own', async () => {
  await database.sql('update quotas set running_jobs = 0 where org_id is null')
  await seed(bob, 20)
  await seed(ada, 5)
  const claimed = await claim({ limit: 5 })
  await database.sql('update quotas set running_jobs = null where org_id is null')
  assert.deepEqual([ofOrg(claimed, ada).length, ofOrg(claimed, bob).length], [3, 0])
})

test('a claim that another was faster than is told so, and looks again', async () => {
  await seed(ada, 5)
  const other = new pg.Client(database.url)
  await other.connect()
  await other.query('begin')
  await other.query('select running_room($1)', [ada.orgId])
  const restricted = { claim: { limit: 5 } }
  const beside = await exchange(database.run, restricted)
  assert.deepEqual([beside.claimed.length, beside.news.contended], [0, true])
  await other.query('commit')
  await other.end()
  const alone = await exchange(database.run, restricted)
  assert.deepEqual([alone.claimed.length, alone.news.contended], [3, false])
})
