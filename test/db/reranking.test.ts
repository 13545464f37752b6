import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { type Claim, exchange as exchangeJobs } from '../../db/queue/exchange.ts'
import type { Database } from '../../worker-runtime/database.ts'
import { createLaneFloors } from '../../worker-runtime/lane-floors.ts'
import { connectWorker, createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  clearJobs,
  completed,
  exchange,
  knownFlow,
  misplacedJobs,
  NO_CLAIM,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'

let database: TestDatabase
let pinned: Database
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  pinned = connectWorker(database.url)
})
after(async () => {
  await pinned.close()
  await database.drop()
})
beforeEach(() => clearJobs(database.sql))

const submit = (...overrides: Parameters<typeof newJob>[0][]) =>
  seedJobs(database.run, tenant, overrides.map(newJob))
/** The series of jobs with this name has run often, and for about this long. */
const seedEstimate = (name: string, ms: number) =>
  database.sql(
    `insert into series (org_id, type, name, runs, mean_log, deviation_log, scored_log)
    values ($1, 'test', $2, 100, ln($3::float), 0.1, ln($3::float))`,
    [tenant.orgId, name, ms],
  )
const turnsOut = (name: string, ms: number) =>
  database.sql('update series set mean_log = ln($2::float) where name = $1', [name, ms])
const claimBy = (options: Partial<Claim> & { limit: number }) =>
  exchange(pinned.run, { claim: { newestRank: true, ...options } })
const take = async (options: Partial<Claim> & { limit: number }): Promise<string[]> =>
  (await claimBy(options)).claimed.map(({ name }) => name)

test('a job whose series turned out slower is overtaken, although its lane says otherwise', async () => {
  await seedEstimate('slowed', 100)
  await seedEstimate('steady', 200)
  await submit({ name: 'slowed' }, { name: 'steady' })
  await turnsOut('slowed', 5_000)
  assert.deepEqual(await take({ limit: 1, newestRank: false }), ['slowed'], 'by its lane alone')
  await submit({ name: 'steady' })
  await turnsOut('steady', 20_000)
  await submit({ name: 'slowed' })
  assert.deepEqual([await take({ limit: 1 }), await take({ limit: 5 })], [['slowed'], ['steady', 'steady']])
})

test('what a completion teaches counts from the next claim on, whatever the leader does', async () => {
  await seedEstimate('a', 100)
  await seedEstimate('b', 110)
  await database.sql(`update series set runs = 1, deviation_log = 0.5 where name = 'a'`)
  await submit({ name: 'a' }, { name: 'a' }, { name: 'b' }, { name: 'b' }, { name: 'a' })
  const ran: string[] = []
  let { claimed } = await claimBy({ limit: 1 })
  for (let n = 0; n < 5; n++) {
    const [job] = claimed
    assert.ok(job)
    ran.push(job.name)
    const ended = [completed(job, null, job.name === 'a' ? 300 : 110)]
    ;({ claimed } = await exchange(pinned.run, {
      ended,
      closed: [job.token],
      claim: { limit: 1, newestRank: true },
    }))
  }
  // The second was claimed by the statement that recorded the first.
  assert.deepEqual(ran, ['a', 'a', 'b', 'b', 'a'])
})

test('a claim starts what it got in its new order', async () => {
  for (const [n, name] of ['a', 'b', 'c'].entries()) await seedEstimate(name, 100 * 2 ** n)
  await submit({ name: 'a' }, { name: 'b' }, { name: 'c' })
  await turnsOut('a', 1_000)
  assert.deepEqual(await take({ limit: 3 }), ['b', 'c', 'a'])
})

test('a claim ranks jobs as if they became ready now', async () => {
  await seedEstimate('known', 300)
  await submit(
    { name: 'known', priority: 'high', timeout_seconds: 30 },
    { name: 'known', priority: 'low' },
    { name: 'unknown' },
  )
  await database.sql(`update jobs set residual_log = 0.7, predicted_ms = 55 where priority <> 'normal'`)
  await turnsOut('known', 900)
  const expected = await database.sql<{ job_id: string }>('select job_id from queue_entries order by lane')
  assert.deepEqual(
    (await claimBy({ limit: 3 })).claimed.map(({ job_id }) => job_id),
    expected.map(({ job_id }) => job_id),
  )
})

test('what is urgent still goes first, and a pause, a size and a type still hold', async () => {
  await seedEstimate('short', 10)
  await submit(
    { name: 'short' },
    { name: 'urgent', priority: 'low', deadline: new Date(Date.now() + 1_000).toISOString() },
    { name: 'big', cpu_units: 5_000 },
    { name: 'other', type: 'other' },
  )
  assert.deepEqual(await take({ limit: 2 }), ['urgent', 'short'])
  assert.deepEqual(await take({ limit: 2 }), [])
  await submit({ name: 'short' })
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  assert.deepEqual(await take({ limit: 2 }), [])
})

test('what was looked at and left does not fall below a floor', async () => {
  await seedEstimate('slowed', 100)
  await seedEstimate('steady', 105)
  await submit(...Array.from({ length: 5 }, () => ({ name: 'slowed' })))
  await submit(...Array.from({ length: 5 }, () => ({ name: 'steady' })))
  await turnsOut('slowed', 1_000)
  const floors = createLaneFloors(() => 0)
  const ran: string[] = []
  for (let n = 0; n < 10; n++) {
    const flow = await knownFlow(database.sql, tenant.orgId, { floors: floors.floors() })
    const { news, claimed } = await claimBy({ limit: 1, flows: [flow] })
    ran.push(...claimed.map(({ name }) => name))
    floors.observe({ order: 'rank', floors: news.turns[0]?.floors ?? {} }, claimed.length === 0)
  }
  assert.deepEqual(ran, [...Array(5).fill('steady'), ...Array(5).fill('slowed')])
})

test('the floor of a lane is the first job seen in it, not the first taken', async () => {
  await submit({ name: 'a' }, { name: 'b' }, { name: 'c', priority: 'low' }, { name: 'd', priority: 'low' })
  await turnsOut('a', 100_000)
  const seen = await database.sql<{ lane: number; key: string }>(
    'select lane, min(key) as key from ready_jobs group by lane',
  )
  const { news, claimed } = await claimBy({ limit: 1 })
  assert.equal(claimed[0]?.name, 'b')
  assert.deepEqual(
    news.turns[0]?.floors,
    Object.fromEntries(seen.map(({ lane, key }) => [lane, Number(key)])),
  )
  assert.deepEqual((await claimBy({ limit: 5, types: ['none'] })).news.turns, [])
})

test('a claim tells how much of what it took would have been next by age, too', async () => {
  await submit(
    { name: 'old', priority: 'high' },
    { name: 'older', priority: 'low' },
    { name: 'young', priority: 'critical' },
  )
  const [, low] = await database.sql<{ key: string }>('select key from ready_jobs order by key')
  const first = await claimBy({ limit: 2 })
  assert.deepEqual(
    [first.news.turns[0]?.oldest_left, Math.round(first.news.turns[0]?.oldest_ms ?? 0)],
    [Number(low?.key), 1_000],
    'the oldest, and not the youngest',
  )
  const last = await claimBy({ limit: 2 })
  const [turn] = last.news.turns
  assert.deepEqual([turn?.oldest_left, Math.round(turn?.oldest_ms ?? 0)], [null, 1_000])
})

test('what others have locked is passed over, and what is only looked at is left to them', async () => {
  await submit(...Array.from({ length: 4 }, (_, n) => ({ name: `${n}` })))
  const someone = new pg.Client({ connectionString: database.url })
  await someone.connect()
  await someone.query('begin')
  const { text, values } = exchangeJobs({
    workerId: 'other',
    leaseSeconds: 30,
    ended: [],
    closed: [],
    claim: { ...NO_CLAIM, newestRank: true, limit: 2 },
  })
  await someone.query(text, [...values])
  assert.deepEqual(await take({ limit: 2 }), ['2', '3'], 'while the other claim has not committed')
  await someone.query('commit')
  await someone.end()
  assert.deepEqual(await misplacedJobs(database.sql), [])
})

test('workers that claim at the same time never get the same job', async () => {
  const ids = await submit(...Array.from({ length: 300 }, (_, n) => ({ name: `${n % 7}` })))
  const got = new Set<string>()
  for (let round = 0; got.size < ids.length && round < 100; round++) {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        exchange(database.run, { workerId: `w${n}`, claim: { limit: 20, newestRank: true } }),
      ),
    )
    for (const { claimed } of answers) {
      for (const { job_id } of claimed) {
        assert.ok(!got.has(job_id))
        got.add(job_id)
      }
    }
  }
  assert.equal(got.size, ids.length)
  assert.deepEqual(await misplacedJobs(database.sql), [])
})
