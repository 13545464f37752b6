import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { type Claim, exchangeJobs, type Segment } from '../../db/queries/exchange.ts'
import { PINNED_PLAN } from '../../worker-runtime/database.ts'
import { createLaneFloors } from '../../worker-runtime/lane-floors.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { exchange, seedTenant } from '../support/jobs.ts'

let database: TestDatabase

before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())

const connect = async (): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  return client
}

/** Pages that one claim of five jobs reads. It is undone. */
const pagesRead = async (segments: readonly Segment[]): Promise<number> => {
  const claim: Claim = {
    limit: 5,
    starts: true,
    types: ['test'],
    restricted: false,
    order: 'rank',
    reranked: false,
    segments,
    ageFromKey: 0,
    sized: null,
  }
  const { text, values } = exchangeJobs({
    workerId: 'w',
    leaseSeconds: 30,
    ended: [],
    started: [],
    closed: [],
    leaseJobs: null,
    claim,
  })
  const client = await connect()
  try {
    for (const [name, value] of Object.entries(PINNED_PLAN)) await client.query(`set ${name} = ${value}`)
    await client.query('begin')
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, [...values])
    await client.query('rollback')
    const [{ Plan: plan }] = rows[0]['QUERY PLAN']
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  } finally {
    await client.end()
  }
}

test('while an old snapshot is open, a claim does not step over all that was claimed since', async () => {
  const { orgId } = await seedTenant(database.run)
  await database.sql(
    `insert into ready_jobs (job_id, org_id, series_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms)
    select gen_random_uuid(), $1, 1, 'test', 69, 0, 1, 64, 1000 from generate_series(1, 20100)`,
    [orgId],
  )
  const reader = await connect()
  await reader.query('begin isolation level repeatable read; select count(*) from ready_jobs')
  await database.sql('delete from ready_jobs where key <= (select min(key) + 19999 from ready_jobs)')

  const floors = createLaneFloors(() => 0)
  const everything = await pagesRead(floors.segments())
  const { news } = await exchange(database.run, { claim: { limit: 5, segments: floors.segments() } })
  floors.observe({ order: 'rank', floors: news.floors }, false)
  const remembered = await pagesRead(floors.segments())
  await reader.query('rollback')
  await reader.end()
  assert.ok(remembered * 4 < everything, `${everything} pages without floors, ${remembered} with`)
})
