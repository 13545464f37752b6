import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { readMetrics } from '../../db/queries/metrics.ts'
import type { QueueSums } from '../../db/queries/queue-facts.ts'
import { setQuotas } from '../../db/queries/quotas.ts'
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
  stretch: number
  waiting_orgs: number
  short_since: Date | null
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

/** What an organisation is told. */
const sumsOf = async (tenant: Tenant): Promise<QueueSums> => {
  const [row] = await inOrg<{ sums: QueueSums }>(tenant, 'select smartqueue.queue_sums($1) as sums', [
    tenant.orgId,
  ])
  assert.ok(row)
  return row.sums
}

/** Again, as if more than a second had passed. */
const lookAgain = async (tenant = ada): Promise<QueueSums> => {
  await database.sql('update smartqueue.queue_snapshots set took_ms = 1')
  await age(2)
  return sumsOf(tenant)
}

const age = (seconds: number) =>
  database.sql(`update smartqueue.queue_snapshots set taken_at = now() - $1::float8 * interval '1 second'`, [
    seconds,
  ])

test('the sums are of the whole queue', async () => {
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

test('an organisation sees its own lanes, and of others sums', async () => {
  await seedJobs(database.run, ada, [newJob(), newJob({ priority: 'high' })])
  await seedJobs(database.run, bob, [newJob(), newJob(), newJob({ run_at: '2999-01-01T00:00:00Z' })])
  await database.run(setQuotas(bob.orgId, { weight: 3 }))
  const { lanes, lane_jobs, lane_ms, depth, weight, share, used, others } = await sumsOf(ada)
  assert.deepEqual(
    { lanes, lane_jobs, lane_ms, depth },
    { lanes: [48, 69], lane_jobs: [1, 1], lane_ms: [1000, 1000], depth: 4 },
  )
  assert.deepEqual({ weight, share, used }, { weight: 1, share: 0.25, used: 0 })
  assert.deepEqual(others, [{ jobs: 2, ms: 2000, weight: 3, load: 0 }])
  assert.deepEqual((await sumsOf(bob)).others, [{ jobs: 2, ms: 2000, weight: 1, load: 0 }])
  assert.deepEqual(await inOrg(ada, 'select org_id from smartqueue.org_queues'), [{ org_id: ada.orgId }])
  const eve = await seedTenant(database.run)
  const idle = await sumsOf(eve)
  assert.deepEqual([idle.lanes, idle.share, idle.others.length], [[], 0.2, 2], 'the share that it would get')
  await database.run(setQuotas(bob.orgId, { weight: 1 }))
})

test('organisations with about the same waiting work for their weight are one sum', async () => {
  const eve = await seedTenant(database.run)
  for (const tenant of [bob, eve]) await seedJobs(database.run, tenant, [newJob()])
  assert.deepEqual((await sumsOf(ada)).others, [{ jobs: 2, ms: 2000, weight: 2, load: 0 }])
  assert.deepEqual((await sumsOf(bob)).others, [{ jobs: 1, ms: 1000, weight: 1, load: 0 }])
})

test('what ran in the last minute is told by lane, as slots that it filled', async () => {
  await seedJobs(database.run, ada, [newJob(), newJob(), newJob({ priority: 'high' })])
  for (const held of await claim(database.run, 'w', 3)) await end(database.run, completed(held, null, 12_000))
  await seedJobs(database.run, bob, [newJob({ priority: 'low' })])
  for (const held of await claim(database.run, 'w', 1)) await end(database.run, completed(held, null, 6_000))
  const flowOf = ({ recent_lanes, recent_loads }: QueueSums) =>
    Object.fromEntries(
      recent_lanes.map((lane, n) => [lane, Math.round((recent_loads[n] ?? 0) * 1000) / 1000]),
    )
  const seen = await sumsOf(ada)
  assert.equal(seen.stretch, 3, 'ten times as long as predicted: more than is believed')
  assert.deepEqual(flowOf(seen), { 48: 0.2, 69: 0.4 })
  assert.deepEqual([seen.others.length, Math.round((seen.others[0]?.load ?? 0) * 1000)], [1, 100])
  assert.ok(Math.abs(seen.used - 36 / 42) < 1e-9, 'of the 42 seconds that were used')
  await database.sql(`update smartqueue.executions set at = now() - interval '2 minutes'`)
  const later = await lookAgain()
  assert.deepEqual([flowOf(later), later.stretch, later.used, later.others], [{}, 1, 0, []])
})

test('an attempt counts with what of it lies in the last minute, a running one too', async () => {
  await seedJobs(database.run, ada, [newJob(), newJob()])
  const [first] = await claim(database.run, 'w', 1)
  assert.ok(first)
  await end(database.run, completed(first, null, 600_000))
  await database.sql(`update smartqueue.executions set at = now() - interval '20 seconds'`)
  await seedJobs(database.run, bob, [newJob()])
  await claim(database.run, 'w', 2)
  await database.sql(
    `update leases set claimed_at = now() - interval '10 minutes', expires_at = now() + interval '1 minute'`,
  )
  const used = async (tenant: Tenant) => {
    const [row] = await database.sql<{ used_ms: number }>(
      'select used_ms from org_queues where org_id = $1',
      [tenant.orgId],
    )
    return Math.round((row?.used_ms ?? 0) / 1000)
  }
  await look()
  assert.deepEqual([await used(ada), await used(bob)], [100, 60])
})

test('an organisation is short while it gets less than half of its share, although work waits', async () => {
  const seedRun = async (tenant: Tenant, ms: number) => {
    await seedJobs(database.run, tenant, [newJob()])
    const [held] = await claim(database.run, 'w', 1)
    assert.equal(held?.org_id, tenant.orgId)
    await end(database.run, completed(held, null, ms))
  }
  await seedRun(bob, 30_000)
  await seedRun(ada, 500)
  for (const tenant of [ada, bob]) await seedJobs(database.run, tenant, [newJob({ name: 'waiting' })])
  const { short_since, used } = await sumsOf(ada)
  assert.ok(short_since !== null && used < 0.25)
  assert.equal((await sumsOf(bob)).short_since, null)
  const all = await look()
  assert.deepEqual(
    [all.waiting_orgs, all.short_since?.toISOString()],
    [2, new Date(short_since).toISOString()],
  )
  assert.equal((await lookAgain()).short_since, short_since, 'since when, not when it was last seen')

  await database.sql(
    `update org_queues set short_since = now() - interval '6 minutes' where short_since is not null`,
  )
  await lookAgain()
  const [metrics] = await database.run(readMetrics())
  assert.equal(metrics?.sums.waiting_orgs, 2)
  assert.ok((metrics?.sums.shortfall_seconds ?? 0) >= 360)

  await database.run(setQuotas(ada.orgId, { running_jobs: 0 }))
  assert.equal((await lookAgain()).short_since, null, 'at its own limit')
  await database.run(setQuotas(ada.orgId, { running_jobs: null }))
  await database.sql('update smartqueue.ready_jobs set lane = lane + 10000 where org_id = $1', [ada.orgId])
  assert.equal((await lookAgain()).short_since, null, 'what is parked does not wait')
  await database.sql('update smartqueue.ready_jobs set lane = lane - 10000 where org_id = $1', [ada.orgId])
  assert.notEqual((await lookAgain()).short_since, null)
  await database.sql('update smartqueue.ready_jobs set predicted_ms = 100 where org_id = $1', [ada.orgId])
  assert.equal((await lookAgain()).short_since, null, 'it wants little, and has been given more')
})

test('an organisation without work is forgotten', async () => {
  await seedJobs(database.run, bob, [newJob()])
  await look()
  await database.sql('delete from smartqueue.ready_jobs')
  await lookAgain()
  assert.deepEqual(await database.sql('select org_id from org_queues'), [])
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

const PLACE =
  'select p.* from smartqueue.read_jobs($1, array[$2::uuid], 10, false, null), jsonb_to_record(place) as p ('

test('what is ahead of a job is counted in its organisation, and only for it', async () => {
  await seedJobs(database.run, bob, [newJob(), newJob({ priority: 'critical' })])
  await seedJobs(database.run, ada, [newJob(), newJob({ priority: 'low' })])
  const [id] = await seedJobs(database.run, ada, [newJob()])
  const ahead = (tenant: Tenant) =>
    inOrg(
      tenant,
      `${PLACE} lane smallint, ahead_jobs integer, ahead_ms double precision, counted boolean, lane_position double precision, flows integer)`,
      [ada.orgId, id],
    )
  const one = { lane: 69, ahead_jobs: 1, ahead_ms: 1000, counted: true, lane_position: null }
  assert.deepEqual(await ahead(ada), [{ ...one, flows: 1 }])
  await assert.rejects(ahead(bob), { code: 'SQ401' })
  await seedJobs(database.run, ada, [newJob({ fairness_key: 'a' }), newJob({ fairness_key: 'b' })])
  assert.deepEqual(await ahead(ada), [{ ...one, flows: 3 }])
})

test('a job with more ahead of it than is counted is told its place in its lane', async () => {
  const ids = await seedJobs(
    database.run,
    ada,
    Array.from({ length: 101 }, () => newJob()),
  )
  const placeOf = async (id: string | undefined) => {
    const [row] = await inOrg<{ ahead_jobs: number; counted: boolean; lane_position: number | null }>(
      ada,
      `${PLACE} ahead_jobs integer, counted boolean, lane_position double precision)`,
      [ada.orgId, id],
    )
    return row
  }
  assert.deepEqual(await placeOf(ids[5]), { ahead_jobs: 5, counted: true, lane_position: null })
  assert.deepEqual(await placeOf(ids[50]), { ahead_jobs: 10, counted: false, lane_position: 0.5 })
})
