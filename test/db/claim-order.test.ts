import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { Claim } from '../../db/queue/exchange.ts'
import { wakeDueJobs } from '../../db/queue/upkeep.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  end,
  exchange,
  knownFlow,
  lead,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

const submit = (...overrides: Parameters<typeof newJob>[0][]) =>
  seedJobs(database.run, tenant, overrides.map(newJob))
/** What a claim takes, by name, in the order in which it would be started. */
const take = async (options: Partial<Claim> & { limit: number }): Promise<string[]> =>
  (await exchange(database.run, { claim: options })).claimed.map(({ name }) => name)
/** The series of jobs with this name has run often, and for about this long. */
const seedEstimate = (name: string, ms: number) =>
  database.sql(
    `insert into series (org_id, type, name, runs, mean_log, deviation_log, scored_log)
    values ($1, 'test', $2, 100, ln($3::float), 0.1, ln($3::float))`,
    [tenant.orgId, name, ms],
  )
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()
const inSeconds = (s: number) => new Date(Date.now() + s * 1000).toISOString()

test('higher classes are claimed first, and within a class the older job', async () => {
  await submit(
    { name: 'n1' },
    { name: 'l', priority: 'low' },
    { name: 'n2' },
    { name: 'c', priority: 'critical' },
    { name: 'h', priority: 'high' },
  )
  assert.deepEqual(await take({ limit: 10 }), ['c', 'h', 'n1', 'n2', 'l'])
})

test('the shorter a series runs, the earlier its jobs are claimed', async () => {
  await seedEstimate('long', 60_000)
  await seedEstimate('short', 50)
  await seedEstimate('middle', 2_000)
  await submit({ name: 'long' }, { name: 'middle' }, { name: 'short' }, { name: 'unknown' })
  assert.deepEqual(await take({ limit: 10 }), ['short', 'unknown', 'middle', 'long'])
})

test('runtime weighs against class: a short normal job goes before a long high one', async () => {
  await seedEstimate('short', 100)
  await seedEstimate('long', 10_000)
  await submit({ name: 'long', priority: 'high' }, { name: 'short' })
  assert.deepEqual(await take({ limit: 10 }), ['short', 'long'])
})

test('a requested timeout speaks for the runtime', async () => {
  await submit({ name: 'patient', timeout_seconds: 3_600 }, { name: 'hasty', timeout_seconds: 1 })
  assert.deepEqual(await take({ limit: 10 }), ['hasty', 'patient'])
})

test('lanes are a tenth in ln wide: jobs that hardly differ run in order of arrival', async () => {
  const lanes = await database.sql<{ lane: number }>(
    'select lane_of(rank) as lane from unnest(array[0, 0.04, 0.12, -0.04, -0.12, 1000, -1000]::float[]) as rank',
  )
  assert.deepEqual(
    lanes.map(({ lane }) => lane),
    [0, 0, 1, -1, -2, 1000, -1000],
  )
  const { rank_base } = rankTerms('normal', null)
  // ln(1000) = 6.908: all three in the lane from 6.9 to 7.0.
  await submit(
    { name: 'b', rank_base: rank_base + 0.05 },
    { name: 'a', rank_base: rank_base + 0.01 },
    { name: 'later', rank_base: rank_base + 0.12 },
    { name: 'c', rank_base },
  )
  assert.deepEqual(await take({ limit: 10 }), ['b', 'a', 'c', 'later'])
})

test('a job whose latest safe start has come goes first, the most urgent before all', async () => {
  await submit(
    { name: 'critical', priority: 'critical' },
    { name: 'later', priority: 'high', deadline: inSeconds(8) },
    { name: 'late', priority: 'low', deadline: inSeconds(5) },
    { name: 'time enough', priority: 'low', deadline: inAnHour() },
  )
  assert.deepEqual([await take({ limit: 1 }), await take({ limit: 1 })], [['late'], ['later']])
  assert.deepEqual(await take({ limit: 10 }), ['critical', 'time enough'])
})

test('a job that comes back after its latest safe start goes first, too, in every order', async () => {
  for (const how of [{}, { newestRank: true }, { fifo: true }]) {
    await clearJobs(database.sql)
    const term = await lead(database.run)
    await submit({ name: 'late', priority: 'low', deadline: inSeconds(8) })
    const [late] = await claim(database.run)
    assert.ok(late)
    await end(database.run, retrying(late))
    await submit({ name: 'critical', priority: 'critical' })
    await database.run(wakeDueJobs(term, 10))
    assert.deepEqual(await take({ limit: 1, ...how }), ['late'])
  }
})

test('in the order of age the oldest are claimed, whatever their rank, and in that order', async () => {
  await seedEstimate('short', 10)
  await submit({ name: 'first', priority: 'low' }, { name: 'short', priority: 'critical' }, { name: 'third' })
  await submit({ name: 'fourth', priority: 'critical' })
  assert.deepEqual(await take({ limit: 3, fifo: true }), ['first', 'short', 'third'])
})

test('a claim takes only types the worker handles', async () => {
  await submit({ name: 'mine' })
  assert.deepEqual(await take({ limit: 5, types: ['other'] }), [])
  assert.deepEqual(await take({ limit: 5, types: ['other', 'test'] }), ['mine'])
})

test('a claim takes what fits, in order of rank, and passes over what is too big', async () => {
  await submit(
    { name: 'too many cpus', cpu_units: 9, priority: 'critical' },
    { name: 'too much memory', memory_mb: 2_000, priority: 'critical' },
    { name: 'half', cpu_units: 2, priority: 'high' },
    { name: 'small' },
    { name: 'fills it' },
    { name: 'no room left' },
  )
  const { claimed } = await exchange(database.run, {
    claim: { limit: 10, freeCpuUnits: 4, freeMemoryMb: 1_000 },
  })
  assert.deepEqual(
    claimed.map(({ name }) => name),
    ['half', 'small', 'fills it'],
  )
})

test('fractions of a cpu add up', async () => {
  await submit({ name: 'big', cpu_units: 9 })
  await submit(...Array.from({ length: 6 }, (_, n) => ({ name: `${n}`, cpu_units: 0.5 })))
  assert.equal((await take({ limit: 10, freeCpuUnits: 2 })).length, 4)
})

test('only jobs of the default size are claimed beyond what fits', async () => {
  await submit(
    { name: 'big', cpu_units: 3, priority: 'critical' },
    { name: 'a' },
    { name: 'b' },
    { name: 'c' },
  )
  const { claimed } = await exchange(database.run, {
    claim: { limit: 3, freeCpuUnits: 1, freeMemoryMb: 64, ahead: 2 },
  })
  assert.deepEqual(
    claimed.map(({ name }) => name),
    ['a', 'b', 'c'],
  )
})

test('what belongs to a paused organisation or type is passed over', async () => {
  const other = await seedTenant(database.run)
  await submit({ name: 'paused type' })
  await seedJobs(database.run, other, [newJob({ name: 'free' })])
  await database.sql(`insert into pauses (org_id, type) values ($1, 'test')`, [tenant.orgId])
  assert.deepEqual(await take({ limit: 5 }), ['free'])
  await database.sql('update pauses set type = null')
  assert.deepEqual(await take({ limit: 5 }), [])
  await database.sql(`update pauses set type = 'another'`)
  assert.deepEqual(await take({ limit: 5 }), ['paused type'])
})

test('deadline, age and reservation respect a pause as well', async () => {
  const [id] = await submit({ name: 'paused', deadline: inSeconds(1) })
  await database.sql(
    `insert into reservations (job_id, org_id, worker_id, cpu_units, memory_mb) values ($1, $2, 'worker-1', 1, 64)`,
    [id, tenant.orgId],
  )
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  for (const fifo of [false, true]) assert.deepEqual(await take({ limit: 5, fifo }), [])
})

test('a claim looks only where it is told to', async () => {
  await submit({ name: 'a' }, { name: 'b' }, { name: 'c' })
  const [second] = await database.sql<{ lane: number; key: string }>(
    'select lane, key from ready_jobs order by key offset 1 limit 1',
  )
  assert.ok(second)
  const floors = [{ lane: second.lane, key: Number(second.key) }]
  const flow = await knownFlow(database.sql, tenant.orgId, { floors })
  assert.deepEqual(await take({ limit: 2, flows: [flow] }), ['b', 'c'])
})

test('lanes are searched in order, and together give no more than the limit', async () => {
  await submit(
    { name: 'n' },
    { name: 'h', priority: 'high' },
    { name: 'c', priority: 'critical' },
    { name: 'l', priority: 'low' },
  )
  const rows = await database.sql<{ lane: number }>('select lane from ready_jobs order by lane')
  const floors = [-5_000, ...rows.map(({ lane }) => lane)].map((lane) => ({ lane, key: 0 }))
  const flow = await knownFlow(database.sql, tenant.orgId, { floors })
  assert.deepEqual(await take({ limit: 3, flows: [flow] }), ['c', 'h', 'n'])
  assert.deepEqual(
    (await claim(database.run)).map(({ name }) => name),
    ['l'],
  )
})

test('a claim answers where each lane begins, by the jobs it took in their order', async () => {
  await submit(
    { name: 'older, in the lane of the urgent one', priority: 'low' },
    { name: 'urgent', priority: 'low', deadline: inSeconds(1) },
    { name: 'first', priority: 'critical' },
    { name: 'second', priority: 'critical' },
  )
  const rows = await database.sql<{ lane: number; key: string }>(
    'select lane, key from ready_jobs order by key',
  )
  const { news, claimed } = await exchange(database.run, { claim: { limit: 3 } })
  assert.deepEqual(
    claimed.map(({ name }) => name),
    ['urgent', 'first', 'second'],
  )
  const [, , first] = rows
  assert.deepEqual(
    news.turns[0]?.floors,
    { [first?.lane ?? 0]: Number(first?.key) },
    'what was taken for its deadline says nothing about its lane: an older job may well wait there',
  )
})

test('a claim answers how much work it took', async () => {
  await submit({}, {}, {})
  const { news } = await exchange(database.run, { claim: { limit: 2 } })
  assert.equal(Math.round(news.turns[0]?.predicted_ms ?? 0), 2_000)
})
