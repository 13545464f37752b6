import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { type Claim, exchange as exchangeJobs, type LaneFloor } from '../../db/queue/exchange.ts'
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

/** Pages that one claim of five jobs reads, in a session that has planned it before. It is undone. */
const pagesRead = async (floors: readonly LaneFloor[]): Promise<number> => {
  const claim: Claim = {
    limit: 5,
    types: ['test'],
    order: 'rank',
    floors,
    ageFloor: 0,
    freeCpuUnits: 5,
    freeMemoryMb: 320,
    ahead: 0,
  }
  const { text, values } = exchangeJobs({ workerId: 'w', leaseSeconds: 30, ended: [], closed: [], claim })
  const client = await connect()
  try {
    await client.query('begin')
    await client.query(text, [...values])
    await client.query('rollback')
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
  const everything = await pagesRead(floors.floors())
  const { news } = await exchange(database.run, { claim: { limit: 5, floors: floors.floors() } })
  floors.observe({ order: 'rank', floors: news.floors ?? {} }, false)
  const remembered = await pagesRead(floors.floors())
  await reader.query('rollback')
  await reader.end()
  assert.ok(remembered * 4 < everything, `${everything} pages without floors, ${remembered} with`)
})
