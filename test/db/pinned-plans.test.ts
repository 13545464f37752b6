import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { readJobs } from '../../db/queries/job-facts.ts'
import type { Query } from '../../db/query.ts'
import { type Claim, type Exchange, exchange } from '../../db/queue/exchange.ts'
import { findJobs, type JobFilter } from '../../db/queue/find-jobs.ts'
import { submitJobs } from '../../db/queue/submit.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { claim, completed, NO_CLAIM, newJob, seedJobs, seedTenant } from '../support/jobs.ts'

let database: TestDatabase
let client: pg.Client

before(async () => {
  database = await createTestDatabase()
  client = new pg.Client({ connectionString: asLogin(database.url, 'both') })
  await client.connect()
})
after(async () => {
  await client.end()
  await database.drop()
})

const ORDERS = { rank: {}, newest_rank: { newestRank: true }, age: { fifo: true } }
const JOBS = 20_000

const exchangeBy = (order: Partial<Claim>, ended: Exchange['ended'] = []) =>
  exchange({
    workerId: 'w',
    leaseSeconds: 30,
    ended,
    closed: [],
    claim: { ...NO_CLAIM, ...order, limit: 5 },
  })

/** Pages that a call reads. It is undone. */
const pagesRead = async ({ text, values }: Query<unknown>): Promise<number> => {
  await client.query('begin')
  const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [...values])
  await client.query('rollback')
  const [{ Plan: plan }] = rows[0]['QUERY PLAN']
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
}

test('a session that planned its exchange on an empty database reads no whole table later', async () => {
  const tenant = await seedTenant(database.run)
  await seedJobs(database.run, tenant, [newJob()])
  const [job] = await claim(database.run)
  assert.ok(job)
  // Each plan is made when its statement runs for the first time.
  for (const order of Object.values(ORDERS)) await pagesRead(exchangeBy(order, [completed(job)]))
  const jobs = Array.from({ length: JOBS }, (_, n) => newJob({ name: `series ${n}` }))
  for (let n = 0; n < JOBS; n += 5_000) await seedJobs(database.run, tenant, jobs.slice(n, n + 5_000))
  for (const [name, order] of Object.entries(ORDERS)) {
    const pages = await pagesRead(exchangeBy(order, [completed(job)]))
    assert.ok(pages < 1_500, `${name}: ${pages} pages`)
  }
})

const FILTERS: JobFilter[] = [
  {},
  { statuses: ['ready', 'running', 'completed'] },
  { type: 'test', name: 'name' },
  { priority: 'high' },
  { tag: 'common' },
]

test('a session that planned its search on an empty database reads only as far as it must later', async () => {
  const tenant = await seedTenant(database.run)
  const page = (filter: JobFilter) => findJobs({ orgId: tenant.orgId, filter, before: null, limit: 10 })
  for (const filter of FILTERS) await pagesRead(page(filter))
  const jobs = Array.from({ length: JOBS }, () =>
    newJob({ name: 'name', priority: 'high', tags: ['common'] }),
  )
  for (let n = 0; n < JOBS; n += 5_000) await seedJobs(database.run, tenant, jobs.slice(n, n + 5_000))
  for (const filter of FILTERS) {
    const pages = await pagesRead(page(filter))
    assert.ok(pages < 600, `${JSON.stringify(filter)}: ${pages} pages`)
  }
})

test('a session that planned its read on an empty database reads few pages on a full one', async () => {
  const tenant = await seedTenant(database.run)
  const [first] = await seedJobs(database.run, tenant, [newJob()])
  const read = (id: string | undefined) => readJobs(tenant.orgId, [id ?? ''], { most: 50, withQueue: false })
  await pagesRead(read(first))
  const jobs = Array.from({ length: JOBS }, () => newJob())
  const ids: string[] = []
  for (let n = 0; n < JOBS; n += 5_000)
    ids.push(...(await seedJobs(database.run, tenant, jobs.slice(n, n + 5_000))))
  const pages = await pagesRead(read(ids[JOBS / 2]))
  assert.ok(pages < 200, `${pages} pages`)
})

test('a session that planned a keyed submission on an empty database looks up one key later', async () => {
  const tenant = await seedTenant(database.run)
  const submission = (key: string) => {
    const job = { ...newJob(), id: uuidV7() }
    const bodyHash = '00'.repeat(32)
    return submitJobs([{ ...tenant, jobs: [job], keys: [{ key, bodyHash, jobIds: [job.id] }] }])
  }
  await pagesRead(submission('first'))
  await database.sql(
    `insert into idempotency_keys (org_id, key, body_hash, job_ids, created_at)
     select $1, n, '\\x00', '{}', now()
     from generate_series(1, $2::integer) as n`,
    [tenant.orgId, JOBS],
  )
  const pages = await pagesRead(submission('second'))
  assert.ok(pages < 200, `${pages} pages`)
})
