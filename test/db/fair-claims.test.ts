import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setQuotas } from '../../db/queries/quotas.ts'
import { type ClaimedJob, type ClaimNews, exchange as exchangeJobs } from '../../db/queue/exchange.ts'
import { createCapacity } from '../../worker-runtime/capacity.ts'
import { type ClaimPlanner, createClaimPlanner } from '../../worker-runtime/claim-planner.ts'
import type { HeldJobs } from '../../worker-runtime/held-jobs.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  clearJobs,
  exchange,
  knownFlow,
  NO_CLAIM,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'

let database: TestDatabase
let acme: Tenant
let bolt: Tenant

before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  acme = await seedTenant(database.run)
  bolt = await seedTenant(database.run)
})

const submit = (tenant: Tenant, count: number, overrides: Parameters<typeof newJob>[0] = {}) =>
  seedJobs(
    database.run,
    tenant,
    Array.from({ length: count }, () => newJob(overrides)),
  )
const weigh = (tenant: Tenant, weight: number) => database.run(setQuotas(tenant.orgId, { weight }))
/** Jobs of this series are known to take about this long. */
const seedSeries = (tenant: Tenant, name: string, ms: number) =>
  database.sql(
    `insert into series (org_id, type, name, runs, mean_log, deviation_log, scored_log)
    values ($1, 'test', $2, 100, ln($3::float), 0.1, ln($3::float))`,
    [tenant.orgId, name, ms],
  )

/** A worker that claims for real, and whose jobs end as soon as the test says so. */
const startWorker = (options: { slots?: number; types?: string[] } = {}) => {
  const { slots = 1, types = ['test'] } = options
  const capacity = createCapacity({ slots, cpuUnits: slots, memoryMb: slots * 64 })
  const jobs = { unstarted: () => 0, held: () => [] as ReturnType<HeldJobs['held']> }
  const planner: ClaimPlanner = createClaimPlanner({
    types,
    policy: 'learned',
    capacity,
    jobs: () => jobs as unknown as HeldJobs,
    now: () => 0,
  })
  let latest: ClaimNews | undefined
  const claim = async (): Promise<ClaimedJob[]> => {
    const plan = { ...planner.plan({ stopping: false, recording: false }), limit: slots, ahead: 0 }
    const { claimed, news } = await exchange(database.run, { claim: plan })
    planner.observe({ claim: plan, claimed, news })
    latest = news
    return claimed
  }
  const end = ({ turn }: ClaimedJob, ranMs: number): void => planner.attemptEnded(ranMs, turn)
  /** What the last claim answered besides the jobs. */
  const news = (): ClaimNews => latest as ClaimNews
  return { claim, end, news }
}

/** The organisations of the jobs that a worker of one slot claims one after the other, each taking so long. */
const claimInTurn = async (count: number, runMs = (_job: ClaimedJob) => 1_000): Promise<string[]> => {
  const worker = startWorker()
  const orgs: string[] = []
  while (orgs.length < count) {
    const [job] = await worker.claim()
    if (!job) break
    worker.end(job, runMs(job))
    orgs.push(job.org_id)
  }
  return orgs
}
const countOf = (orgs: readonly string[], { orgId }: Tenant): number =>
  orgs.filter((org) => org === orgId).length

test('an organisation with a deep queue does not hold up another', async () => {
  await submit(acme, 20)
  await submit(bolt, 2)
  const orgs = await claimInTurn(6)
  assert.deepEqual([countOf(orgs, acme), countOf(orgs, bolt)], [4, 2])
  assert.equal(countOf(orgs.slice(0, 4), bolt), 2)
})

test('time is shared in predicted seconds', async () => {
  await seedSeries(acme, 'long', 4_000)
  await seedSeries(bolt, 'short', 1_000)
  await submit(acme, 20, { name: 'long' })
  await submit(bolt, 20, { name: 'short' })
  const orgs = await claimInTurn(10, ({ name }) => (name === 'long' ? 4_000 : 1_000))
  assert.deepEqual([countOf(orgs, acme), countOf(orgs, bolt)], [2, 8])
})

test('what attempts really took counts, not what was predicted', async () => {
  await submit(acme, 20, { name: 'thought short' })
  await submit(bolt, 20, { name: 'as predicted' })
  const orgs = await claimInTurn(10, ({ name }) => (name === 'thought short' ? 4_000 : 1_000))
  assert.deepEqual([countOf(orgs, acme), countOf(orgs, bolt)], [2, 8])
})

test('time is shared by weight', async () => {
  await weigh(acme, 3)
  await submit(acme, 20)
  await submit(bolt, 20)
  const orgs = await claimInTurn(8)
  assert.deepEqual([countOf(orgs, acme), countOf(orgs, bolt)], [6, 2])
})

test('fairness keys share the part of their organisation', async () => {
  await submit(acme, 20, { fairness_key: 'customer 1', name: 'many' })
  await submit(acme, 2, { fairness_key: 'customer 2', name: 'few' })
  await submit(bolt, 20)
  const worker = startWorker()
  const names: string[] = []
  for (let n = 0; n < 8; n++) {
    for (const job of await worker.claim()) {
      worker.end(job, 1_000)
      names.push(job.org_id === bolt.orgId ? 'bolt' : job.name)
    }
  }
  const count = (wanted: string) => names.filter((name) => name === wanted).length
  assert.deepEqual([count('bolt'), count('few'), count('many')], [4, 2, 2])
})

for (const [what, overrides] of Object.entries({
  'critical jobs': { priority: 'critical' as const },
  'jobs that are about to miss their deadlines': { deadline: new Date(Date.now() + 1_000).toISOString() },
})) {
  test(`${what} go first inside the share of their organisation, never across it`, async () => {
    await submit(acme, 2, { name: 'ordinary' })
    await submit(acme, 10, { name: 'urgent', ...overrides })
    await submit(bolt, 10)
    const worker = startWorker()
    const names: string[] = []
    for (let n = 0; n < 8; n++) {
      for (const job of await worker.claim()) {
        worker.end(job, 1_000)
        names.push(job.org_id === bolt.orgId ? 'bolt' : job.name)
      }
    }
    assert.equal(names.filter((name) => name === 'bolt').length, 4)
    // The oldest of an organisation get a part of its share, and a deadline goes before that.
    assert.ok(names.filter((name) => name === 'urgent').length >= 3)
  })
}

test('an idle share goes to the others, and earns no credit', async () => {
  await submit(acme, 20)
  assert.equal(countOf(await claimInTurn(10), acme), 10)
  const worker = startWorker()
  for (let n = 0; n < 6; n++) for (const job of await worker.claim()) worker.end(job, 1_000)
  await submit(bolt, 20)
  const orgs: string[] = []
  for (let n = 0; n < 4; n++) {
    for (const job of await worker.claim()) {
      worker.end(job, 1_000)
      orgs.push(job.org_id)
    }
  }
  assert.deepEqual([countOf(orgs, acme), countOf(orgs, bolt)], [2, 2])
})

test('a new worker gives each organisation a turn before any gets a second one', async () => {
  await submit(acme, 20)
  const others = await Promise.all(Array.from({ length: 3 }, () => seedTenant(database.run)))
  for (const other of others) await submit(other, 1)
  await submit(bolt, 1)
  const orgs = (await startWorker({ slots: 6 }).claim()).map(({ org_id }) => org_id)
  assert.deepEqual([countOf(orgs, acme), countOf(orgs, bolt)], [2, 1])
  for (const other of others) assert.equal(countOf(orgs, other), 1)
})

test('organisations whose jobs a worker cannot run do not hide the others', async () => {
  for (let n = 0; n < 5; n++) await submit(await seedTenant(database.run), 1, { type: 'other' })
  const last = await seedTenant(database.run)
  await submit(last, 1)
  const [job] = await startWorker().claim()
  assert.equal(job?.org_id, last.orgId)
})

test('a claim does not read the jobs of an organisation that is over its share', async () => {
  // They would all be read, because the worker does not handle their type.
  await database.sql(
    `insert into ready_jobs (job_id, org_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms)
    select gen_random_uuid(), $1, 1, 'other', flow_of($1, null), 69, 0, 1, 64, 1000 from generate_series(1, 20000)`,
    [acme.orgId],
  )
  await submit(bolt, 1)
  const [ofAcme, ofBolt] = await Promise.all([acme, bolt].map(({ orgId }) => knownFlow(database.sql, orgId)))
  assert.ok(ofAcme && ofBolt)
  const pagesRead = async (orgTimeMs: number): Promise<number> => {
    const claim = { ...NO_CLAIM, limit: 1, flows: [{ ...ofAcme, orgTimeMs }, ofBolt], gaps: [] }
    const { text, values } = exchangeJobs({ workerId: 'w', leaseSeconds: 30, ended: [], closed: [], claim })
    const [row] = await database.sql<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
      `explain (analyze, buffers, format json) ${text}`,
      [...values],
    )
    return row?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'] ?? Number.NaN
  }
  await pagesRead(0)
  await submit(bolt, 1)
  const readAll = await pagesRead(-1)
  await submit(bolt, 1)
  const readOne = await pagesRead(1)
  assert.ok(readOne < readAll / 5, `${readOne} pages instead of ${readAll}`)
})

test('capacity is kept for a big job only while its organisation is not far ahead of others', async () => {
  const [big] = await submit(acme, 1, { name: 'big', cpu_units: 2 })
  await submit(acme, 10, { name: 'small' })
  await submit(bolt, 10)
  const ahead = startWorker()
  for (let n = 0; n < 2; n++)
    for (const job of await ahead.claim()) ahead.end(job, job.org_id === acme.orgId ? 60_000 : 1)
  await database.sql(
    `insert into reservations (job_id, org_id, worker_id, cpu_units, memory_mb) values ($1, $2, 'worker-1', 2, 64)`,
    [big, acme.orgId],
  )
  await ahead.claim()
  assert.equal(ahead.news().reserved, false)
  const even = startWorker()
  assert.deepEqual([await even.claim(), even.news().reserved], [[], true])
})
