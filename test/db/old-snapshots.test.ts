import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { exchange as exchangeJobs, type KnownFlow } from '../../db/queue/exchange.ts'
import { ALL_FLOWS } from '../../db/rules/flows.ts'
import { createLaneFloors } from '../../worker-runtime/lane-floors.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { exchange, knownFlow, NO_CLAIM, seedTenant } from '../support/jobs.ts'

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
const pagesRead = async (flow: KnownFlow): Promise<number> => {
  const gaps = [
    { after: ALL_FLOWS.after, before: flow.flow },
    { after: flow.flow, before: ALL_FLOWS.before },
  ]
  const claim = { ...NO_CLAIM, limit: 5, flows: [flow], gaps }
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
    `insert into ready_jobs (job_id, org_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms)
    select gen_random_uuid(), $1, 1, 'test', flow_of($1, null), 69, 0, 1, 64, 1000 from generate_series(1, 20100)`,
    [orgId],
  )
  const reader = await connect()
  await reader.query('begin isolation level repeatable read; select count(*) from ready_jobs')
  await database.sql('delete from ready_jobs where key <= (select min(key) + 19999 from ready_jobs)')

  const floors = createLaneFloors(() => 0)
  const flow = await knownFlow(database.sql, orgId, { turn: 5 })
  const everything = await pagesRead({ ...flow, floors: floors.floors() })
  const { news } = await exchange(database.run, { claim: { limit: 5, flows: [flow] } })
  floors.observe({ order: 'rank', floors: news.turns[0]?.floors ?? {} }, false)
  const remembered = await pagesRead({ ...flow, floors: floors.floors() })
  await reader.query('rollback')
  await reader.end()
  assert.ok(remembered * 4 < everything, `${everything} pages without floors, ${remembered} with`)
})
