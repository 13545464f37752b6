import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { withClient } from '../../worker-runtime/migrate.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  exchange,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { enterAs } from '../support/sessions.ts'

let database: TestDatabase
let ada: Tenant
let bob: Tenant
before(async () => {
  database = await createTestDatabase()
  ada = await seedTenant(database.run)
  bob = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

type Snapshot = {
  taken_at: Date
  took_ms: number
  lanes: number[]
  lane_jobs: number[]
  lane_ms: number[]
  running_ms: number[]
  held_jobs: number
  held_ms: number
  flow_lanes: number[]
  flow_loads: number[]
  stretch: number
}

/** As the functions, in an organisation. */
const inOrg = <Row>(tenant: Tenant, text: string, values: unknown[] = []): Promise<Row[]> =>
  withClient(asLogin(database.url, 'functions'), async (client) => {
    await client.query('begin')
    await enterAs(client, tenant)
    const { rows } = await client.query(text, values)
    await client.query('commit')
    return rows as Row[]
  })

const look = async (tenant = ada, arguments_ = ''): Promise<Snapshot> => {
  const [row] = await inOrg<Snapshot>(tenant, `select * from smartqueue.queue_snapshot(${arguments_})`)
  assert.ok(row)
  return row
}

const age = (seconds: number) =>
  database.sql(`update smartqueue.queue_snapshots set taken_at = now() - $1::float8 * interval '1 second'`, [
    seconds,
  ])

test('every organisation sees the sums of the whole queue', async () => {
  await seedJobs(database.run, ada, [newJob(), newJob({ priority: 'high' })])
  await seedJobs(database.run, bob, [newJob(), newJob({ run_at: '2999-01-01T00:00:00Z' })])
  const { lanes, lane_jobs, lane_ms, running_ms } = await look()
  assert.deepEqual(
    { lanes, lane_jobs, lane_ms },
    { lanes: [48, 69], lane_jobs: [1, 2], lane_ms: [1000, 2000] },
  )
  assert.deepEqual(running_ms, [])
})

test('what runs is told by what is left of it', async () => {
  await seedJobs(database.run, ada, [newJob(), newJob()])
  await seedJobs(database.run, bob, [newJob(), newJob()])
  await claim(database.run, 'w', 2)
  await exchange(database.run, { claim: { limit: 1 } })
  const [done] = await claim(database.run, 'w', 1)
  assert.ok(done)
  await end(database.run, completed(done))
  const { running_ms, lane_jobs } = await look(bob)
  assert.deepEqual([running_ms.length, lane_jobs], [3, []])
  assert.ok(
    running_ms.every((ms) => ms > 500 && ms <= 1000),
    `${running_ms}`,
  )
  await database.sql(`update smartqueue.leases set claimed_at = now() - interval '2 seconds'`)
  await age(60)
  const later = await look(ada, 'true')
  const expected = 2000 * (Math.sqrt(10.0142) - 1)
  assert.ok(
    later.running_ms.every((ms) => Math.abs(ms - expected) < 300),
    'it runs on, by its spread',
  )
})

test('what ran in the last minute is told by lane, as slots that it filled', async () => {
  await seedJobs(database.run, ada, [newJob(), newJob(), newJob({ priority: 'high' })])
  for (const held of await claim(database.run, 'w', 3)) await end(database.run, completed(held, null, 12_000))
  await seedJobs(database.run, bob, [newJob({ priority: 'low' })])
  for (const held of await claim(database.run, 'w', 1)) await end(database.run, completed(held, null, 6_000))
  const flowOf = ({ flow_lanes, flow_loads }: Snapshot) =>
    flow_lanes.map((lane, n) => [lane, Math.round((flow_loads[n] ?? 0) * 1000) / 1000])
  const seen = await look()
  const flow = new Map(flowOf(seen) as [number, number][])
  assert.equal(seen.stretch, 3, 'ten times as long as predicted: more than is believed')
  assert.deepEqual([flow.get(48), flow.get(69), flow.get(89)], [0.2, 0.4, 0.1])
  await database.sql(`update smartqueue.executions set at = now() - interval '2 minutes'`)
  await age(60)
  const later = await look(ada, 'true')
  assert.deepEqual([flowOf(later), later.stretch], [[], 1])
})

test('parked jobs are nobody ahead', async () => {
  await seedJobs(database.run, ada, [newJob()])
  await database.sql('update smartqueue.ready_jobs set lane = lane + 10000')
  assert.deepEqual((await look()).lanes, [])
})

test('the sums are made anew once a second at most', async () => {
  const first = await look()
  await seedJobs(database.run, ada, [newJob()])
  assert.deepEqual(await look(), first)
  // Whatever the machine was busy with.
  await database.sql('update smartqueue.queue_snapshots set took_ms = 1')
  await age(1.1)
  assert.deepEqual((await look()).lane_jobs, [1])
})

test('sums that take long are made anew seldom, and nobody in a hurry waits for them', async () => {
  await look()
  await seedJobs(database.run, ada, [newJob()])
  await database.sql('update smartqueue.queue_snapshots set took_ms = 300')
  await age(5)
  assert.deepEqual((await look(ada, 'true')).lanes, [], 'it would take more than a twentieth of the time')
  await age(7)
  assert.deepEqual((await look()).lanes, [])
  assert.deepEqual((await look(ada, 'true')).lane_jobs, [1])
  await database.sql('update smartqueue.queue_snapshots set took_ms = 300')
  await seedJobs(database.run, ada, [newJob()])
  await age(61)
  assert.deepEqual((await look()).lane_jobs, [2], 'too old for anybody')
})

test('while one makes them, others get those from before', async () => {
  const first = await look()
  await age(5)
  await withClient(database.url, async (client) => {
    await client.query('begin')
    await client.query('select from smartqueue.queue_snapshots for update')
    assert.deepEqual((await look()).lanes, first.lanes)
    await client.query('rollback')
  })
})

test('what is ahead of a job is counted over all organisations, and only for its own', async () => {
  await seedJobs(database.run, bob, [newJob(), newJob({ priority: 'low' })])
  const [id] = await seedJobs(database.run, ada, [newJob()])
  await seedJobs(database.run, bob, [newJob(), newJob({ priority: 'critical' })])
  const ahead = (tenant: Tenant) =>
    inOrg(tenant, 'select * from smartqueue.queue_ahead($1, $2, 10)', [ada.orgId, id])
  assert.deepEqual(await ahead(ada), [
    { lane: 69, jobs: 2, predicted_ms: 2000, counted: true, lane_position: null },
  ])
  assert.deepEqual(await ahead(bob), [])
})

test('a job with more ahead of it than is counted is told its place in its lane', async () => {
  const ids = await seedJobs(
    database.run,
    ada,
    Array.from({ length: 101 }, () => newJob()),
  )
  const placeOf = async (id: string | undefined) => {
    const [row] = await inOrg<{ jobs: number; counted: boolean; lane_position: number | null }>(
      ada,
      'select jobs, counted, lane_position from smartqueue.queue_ahead($1, $2, 10)',
      [ada.orgId, id],
    )
    return row
  }
  assert.deepEqual(await placeOf(ids[5]), { jobs: 5, counted: true, lane_position: null })
  assert.deepEqual(await placeOf(ids[50]), { jobs: 10, counted: false, lane_position: 0.5 })
})
