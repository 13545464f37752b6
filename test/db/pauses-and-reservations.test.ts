import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { reportWorker, type WorkerStatus } from '../../db/queries/workers.ts'
import {
  lookOut,
  moveHeldBackJobs,
  nextPlace,
  reserveCapacity,
  SWEEP_START,
  type SweepPlace,
} from '../../db/queue/upkeep.ts'
import { createDuties } from '../../worker-runtime/duties.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  exchange,
  lead,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
  watchJobs,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { keepLog } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let term: string
let jobs: ReturnType<typeof watchJobs>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  term = await lead(database.run)
  await seedWorker('worker-1')
})

const submit = (...overrides: Parameters<typeof newJob>[0][]) =>
  seedJobs(database.run, tenant, overrides.map(newJob))
type Seed = { status?: WorkerStatus; types?: string[]; slots?: number; cpuUnits?: number; running?: number }
const seedWorker = (workerId: string, seed: Seed = {}) =>
  database.run(
    reportWorker({
      workerId,
      hostname: 'host',
      status: 'online',
      types: ['test'],
      slots: 8,
      cpuUnits: 8,
      memoryMb: 8_000,
      running: 0,
      jobsProcessed: 0,
      ...seed,
    }),
  )
const names = async (limit = 10) => (await claim(database.run, 'worker-1', limit)).map(({ name }) => name)
const move = async (parked: boolean, limit = 100, after = SWEEP_START, sinceKey = '0') =>
  (await database.run(moveHeldBackJobs({ term, parked, after, sinceKey, limit })))[0]
const park = (limit?: number, after?: SweepPlace, sinceKey?: string) => move(false, limit, after, sinceKey)
const unpark = () => move(true)
const heldBack = async () => (await database.run(lookOut()))[0]?.held_back
const waitedFor = (seconds: number) =>
  database.sql(`update ready_jobs set ready_at = now() - $1::int * interval '1 second'`, [seconds])
const reserve = () => database.run(reserveCapacity(term, 5))

test('paused jobs are parked out of the way, and come back when the pause ends', async () => {
  const [id] = await submit({ name: 'a' }, { name: 'b' })
  const nothing = await park()
  assert.deepEqual([nothing?.looked_at, nothing?.moved], [2, 0])
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  assert.equal((await park())?.moved, 2)
  assert.deepEqual([await names(), await jobs.statusOf(id)], [[], 'ready'])
  assert.equal((await unpark())?.moved, 0, 'still paused')
  await database.sql('delete from pauses')
  assert.deepEqual(await names(), [], 'the leader has not looked yet')
  const back = await unpark()
  assert.deepEqual([back?.moved, back?.types], [2, ['test']])
  assert.deepEqual(await names(), ['a', 'b'])
})

test('jobs of a type that no worker handles are parked until one does', async () => {
  await submit({ name: 'orphan', type: 'rare' }, { name: 'handled' })
  assert.equal((await park())?.moved, 1)
  await seedWorker('worker-2', { types: ['rare'], status: 'offline' })
  assert.equal((await unpark())?.moved, 0, 'an offline worker handles nothing')
  await seedWorker('worker-2', { status: 'draining' })
  assert.equal((await unpark())?.moved, 1)
})

test('what is parked returns into the lane it came from', async () => {
  await submit({ priority: 'critical' }, { priority: 'low' })
  const lanes = () => database.sql('select lane from ready_jobs order by lane')
  const before = await lanes()
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  await park()
  await park()
  await database.sql('delete from pauses')
  await unpark()
  await unpark()
  assert.deepEqual(await lanes(), before)
})

test('a sweep is bounded and says where to go on', async () => {
  await submit({}, {}, {})
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  const first = await park(2)
  assert.deepEqual([first?.looked_at, first?.moved], [2, 2])
  const second = await park(2, nextPlace(first, 2))
  assert.deepEqual([second?.looked_at, second?.moved], [1, 1])
})

test('a sweep goes through all organisations, and can leave out jobs that the one before has examined', async () => {
  const other = await seedTenant(database.run)
  await submit({}, {})
  await seedJobs(database.run, other, [newJob(), newJob()])
  const first = await park(3)
  const second = await park(3, nextPlace(first, 3))
  assert.deepEqual([first?.looked_at, second?.looked_at, nextPlace(second, 3)], [3, 1, undefined])
  await seedJobs(database.run, other, [newJob()])
  assert.equal((await park(10, SWEEP_START, first?.newest_key))?.looked_at, 1)
})

test('the summary of what is held back changes when it does', async () => {
  assert.match((await heldBack()) ?? '', /^$/)
  await database.sql(`insert into pauses (org_id, type) values ($1, 'test')`, [tenant.orgId])
  const paused = await heldBack()
  assert.equal(paused, `${tenant.orgId}/test`)
  await database.sql(`update workers set status = 'offline'`)
  assert.equal(await heldBack(), `${paused} test`)
})

test('a big job that waited, and would be next, gets a reservation on the emptiest worker that can hold it', async () => {
  await seedWorker('busy', { running: 6 })
  await seedWorker('too small', { cpuUnits: 4, slots: 100 })
  await seedWorker('of another kind', { types: ['other'], slots: 100 })
  await seedWorker('going', { status: 'draining', slots: 100 })
  const [id] = await submit({ cpu_units: 6, priority: 'critical' }, {})
  assert.deepEqual(await reserve(), [], 'it has not waited long enough')
  await waitedFor(6)
  assert.deepEqual(await reserve(), [{ job_id: id, worker_id: 'worker-1' }])
  assert.deepEqual(await reserve(), [], 'one is enough')
})

test('a job whose turn has not come by rank gets its room by age', async () => {
  await submit({ name: 'small before', priority: 'critical' })
  const [id] = await submit({ cpu_units: 6, priority: 'low' })
  await submit({ name: 'small after', priority: 'critical' })
  await waitedFor(6)
  assert.deepEqual(await reserve(), [], 'smaller ones are before it both ways')
  await claim(database.run, 'worker-1', 1)
  assert.equal((await reserve())[0]?.job_id, id, 'now it is the oldest')
})

test('jobs of the default size never need a reservation', async () => {
  await submit({})
  await waitedFor(60)
  assert.deepEqual(await reserve(), [])
})

test('a worker keeps room for its reservation, and small jobs get the rest', async () => {
  const [big] = await submit({ name: 'big', cpu_units: 6 }, { name: 'a' }, { name: 'b' }, { name: 'c' })
  await waitedFor(6)
  await reserve()
  const { news, claimed } = await exchange(database.run, {
    claim: { limit: 10, freeCpuUnits: 5, freeMemoryMb: 8_000 },
  })
  assert.deepEqual([claimed, news.reserved], [[], true])
  // Seven units free: the big one takes its six and one is left.
  const next = await exchange(database.run, {
    claim: { limit: 10, freeCpuUnits: 7, freeMemoryMb: 8_000 },
  })
  assert.deepEqual(
    next.claimed.map(({ name }) => name),
    ['big', 'a'],
  )
  assert.equal(await jobs.statusOf(big), 'running')
  assert.deepEqual(await database.sql('select * from reservations'), [], 'it is fulfilled')
})

test('another worker may take a job that has a reservation elsewhere', async () => {
  await submit({ name: 'big', cpu_units: 6 })
  await waitedFor(6)
  await reserve()
  const free = { freeCpuUnits: 8, freeMemoryMb: 8_000 }
  const { claimed } = await exchange(database.run, { workerId: 'worker-2', claim: { limit: 5, ...free } })
  assert.equal(claimed.length, 1)
  await reserve()
  assert.deepEqual(await database.sql('select * from reservations'), [], 'the leader drops what is pointless')
})

test('reservations go with their worker and with a pause', async () => {
  const [id] = await submit({ cpu_units: 6 })
  await waitedFor(6)
  await reserve()
  await database.sql(`update workers set status = 'offline'`)
  await seedWorker('worker-2')
  await reserve()
  const [moved] = await database.sql('select job_id, worker_id from reservations')
  assert.ok(moved === undefined || moved.worker_id === 'worker-2')
  await reserve()
  assert.deepEqual(await database.sql('select job_id, worker_id from reservations'), [
    { job_id: id, worker_id: 'worker-2' },
  ])
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  await park()
  await reserve()
  assert.deepEqual(await database.sql('select * from reservations'), [])
})

test('a worker gets one reservation at a time', async () => {
  await submit({ cpu_units: 6 }, { cpu_units: 6 })
  await waitedFor(6)
  assert.equal((await reserve()).length, 1)
  assert.deepEqual(await reserve(), [])
  await seedWorker('worker-2')
  assert.equal((await reserve())[0]?.worker_id, 'worker-2')
})

test('a job that no worker can hold keeps no room from the next', async () => {
  const [, id] = await submit({ cpu_units: 100 }, { cpu_units: 6 })
  await waitedFor(6)
  assert.deepEqual(await reserve(), [{ job_id: id, worker_id: 'worker-1' }])
})

test('a parked job that someone looks at in that moment comes back a little later', async () => {
  await submit({ name: 'looked at' }, { name: 'other' })
  const [parking] = createDuties({ run: database.run, logger: keepLog().logger, retentionDays: 30 }).filter(
    ({ name }) => name === 'parking',
  )
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  const stepUntilParked = (count: number) =>
    waitFor(`${count} parked jobs`, async () => {
      await parking?.step(term)
      return (await database.sql('select from ready_jobs where lane >= 10000')).length === count
    })
  await stepUntilParked(2)
  await database.sql('delete from pauses')
  const someone = new pg.Client(database.url)
  await someone.connect()
  await someone.query('begin')
  await someone.query('select from ready_jobs order by key limit 1 for key share')
  await stepUntilParked(1)
  await someone.query('commit')
  await someone.end()
  await stepUntilParked(0)
  assert.deepEqual((await names()).sort(), ['looked at', 'other'])
})
