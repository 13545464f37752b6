import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { takeAutoscaleSnapshot } from '../../db/queries/autoscale-snapshot.ts'
import { beginTerm, confirmTerm, endSilentLeader, tryToLead } from '../../db/queries/leader.ts'
import { type Learned, storeLearned } from '../../db/queries/learning.ts'
import { crownModel, rollBackModel, storeChallenger } from '../../db/queries/models.ts'
import { reportWorker } from '../../db/queries/workers.ts'
import type { Query, Run } from '../../db/query.ts'
import {
  markSilentWorkers,
  moveHeldBackJobs,
  reclaimExpiredLeases,
  rescoreJobs,
  reserveCapacity,
  SWEEP_START,
  takeMovedSeries,
  wakeDueJobs,
} from '../../db/queue/upkeep.ts'
import { deleteExpired } from '../../db/retention/retention.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  lead,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

/** A session of its own, as each candidate has. */
const openSession = async () => {
  const client = new pg.Client({ connectionString: database.url })
  client.on('error', () => {})
  await client.connect()
  const run: Run = async <Row>({ name, text, values }: Query<Row>) =>
    (await client.query({ name, text, values: [...values] })).rows as Row[]
  return { run, close: () => client.end() }
}

test('one session leads at a time, and terms only grow', async () => {
  const [first, second] = await Promise.all([openSession(), openSession()])
  assert.deepEqual(await first.run(tryToLead()), [{ locked: true }])
  assert.deepEqual(await second.run(tryToLead()), [{ locked: false }])
  assert.deepEqual(await first.run(beginTerm('a')), [{ term: '1' }])
  assert.deepEqual(await first.run(confirmTerm('1')), [{ term: '1' }])
  assert.deepEqual(await second.run(confirmTerm('1')), [], 'not its session')
  await database.sql('truncate incarnations')
  assert.deepEqual(await first.run(confirmTerm('1')), [], 'the database has recovered from a crash')
  await first.close()
  await waitFor('the lock', async () => (await second.run(tryToLead()))[0]?.locked)
  assert.deepEqual(await second.run(beginTerm('b')), [{ term: '2' }])
  const [row] = await database.sql('select worker_id, term from scheduler_leader')
  assert.deepEqual(row, { worker_id: 'b', term: '2' })
  await second.close()
})

test('only a silent leader that still holds the lock loses its session', async () => {
  const [leader, standby] = await Promise.all([openSession(), openSession()])
  await leader.run(tryToLead())
  await leader.run(beginTerm('a'))
  assert.deepEqual(await standby.run(endSilentLeader(60_000)), [], 'it was heard of just now')
  const [ended] = await standby.run(endSilentLeader(0))
  assert.equal(ended?.worker_id, 'a')
  await assert.rejects(leader.run(confirmTerm('1')))
  await waitFor('the lock', async () => (await standby.run(tryToLead()))[0]?.locked)

  // The pid on the row belongs to a session that does not hold the lock: it is somebody else's by now.
  const bystander = await openSession()
  const [own] = await bystander.run({
    name: 'pid',
    text: 'select pg_backend_pid() as pid',
    values: [],
  } as Query<{
    pid: number
  }>)
  await database.sql('update scheduler_leader set backend_pid = $1', [own?.pid])
  assert.deepEqual(await standby.run(endSilentLeader(0)), [])
  assert.equal((await bystander.run(tryToLead()))[0]?.locked, false, 'it lives')
  await Promise.all([standby.close(), bystander.close()])
})

test('a candidate that falls silent before its term begins is ended too', async () => {
  const [candidate, standby] = await Promise.all([openSession(), openSession()])
  await waitFor('the lock', async () => (await candidate.run(tryToLead()))[0]?.locked)
  assert.equal((await standby.run(endSilentLeader(0))).length, 1)
  await waitFor('the lock', async () => (await standby.run(tryToLead()))[0]?.locked)
  await standby.close()
})

test('people see within seconds that the leader is alive', async () => {
  const leader = await openSession()
  await waitFor('the lock', async () => (await leader.run(tryToLead()))[0]?.locked)
  const [begun] = await leader.run(beginTerm('a'))
  await database.sql(`update scheduler_leader set last_seen = now() - interval '3 seconds'`)
  await leader.run(confirmTerm(String(begun?.term)))
  const [row] = await database.sql(
    `select now() - last_seen < interval '1 second' as recent from scheduler_leader`,
  )
  assert.deepEqual(row, { recent: true })
  await leader.close()
})

test('every duty sent under an old term, or a term from before a crash, changes nothing', async () => {
  const old = await lead(database.run, 'old')
  const interrupted = await lead(database.run, 'interrupted')
  await database.sql('truncate incarnations')
  await seedEverythingDue()
  const duties = (inTerm: string): Query<unknown>[] => [
    wakeDueJobs(inTerm, 10),
    reclaimExpiredLeases(inTerm, 10),
    markSilentWorkers(inTerm),
    takeMovedSeries(inTerm, 10),
    reserveCapacity(inTerm, 5),
    moveHeldBackJobs({ term: inTerm, parked: false, after: SWEEP_START, limit: 10 }),
    moveHeldBackJobs({ term: inTerm, parked: true, after: SWEEP_START, limit: 10 }),
    deleteExpired('jobs', { term: inTerm, days: 30, limit: 10 }),
    deleteExpired('events', { term: inTerm, days: 30, limit: 10 }),
    storeLearned(learned(inTerm)),
    crownModel({ term: inTerm, version: 1, weights: 'AAAA' }),
    storeChallenger({
      ...decision(inTerm),
      promoted: true,
      trainedOn: 1,
      onlyOrg: null,
      weights: 'AAAA',
      accuracy: undefined,
    }),
    rollBackModel(decision(inTerm)),
    takeAutoscaleSnapshot({ term: inTerm, settings: SCALING, ticksSeconds: 1 }),
  ]
  const rescore = async (inTerm: string) => {
    const seriesIds = (await database.sql<{ id: string }>('select id from series')).map(({ id }) => id)
    return rescoreJobs({ term: inTerm, seriesIds, after: SWEEP_START, limit: 10 })
  }
  const before = await everything()
  for (const over of [old, interrupted]) {
    for (const duty of [...duties(over), await rescore(over)]) {
      await database.run(duty)
      assert.deepEqual(await everything(), before, duty.name)
    }
  }
  const term = await lead(database.run, 'new')
  for (const duty of [await rescore(term), ...duties(term)]) {
    const state = await everything()
    await database.run(duty)
    assert.notDeepEqual(await everything(), state, `${duty.name} had something to do`)
  }
})

const learned = (term: string): Learned => ({
  ...{ term, from: { xid: '0', id: '0' }, to: { xid: '1', id: '1' }, learned: 1, bySource: {} },
  ...{ accuracy: undefined, isPoint: false, series: [], orgs: [], types: [], orgTypes: [] },
})

const SCALING = {
  slots_per_worker: 1,
  drain_goal_seconds: 60,
  lead_seconds: 60,
  min_workers: 1,
  max_workers: 5,
}

const decision = (term: string) => ({ term, version: 2, against: 1, evaluation: {} })

/** Something to do for each of the duties. */
const seedEverythingDue = async (): Promise<void> => {
  const old = '0187a000-0000-7000-8000-000000000001'
  await seedJobs(database.run, tenant, [
    newJob({ id: old, name: 'finished long ago' }),
    newJob({ name: 'to retry' }),
    newJob({ name: 'lost' }),
  ])
  const [done, retried] = await claim(database.run)
  assert.ok(done && retried)
  await end(database.run, completed(done), retrying(retried))
  await database.sql(`update finished_jobs set finished_at = now() - interval '40 days'`)
  await database.sql(`update job_event_groups set at = now() - interval '40 days' where $1 = any (job_ids)`, [
    old,
  ])
  await database.sql('update leases set expires_at = now()')
  await seedJobs(database.run, tenant, [
    newJob({ name: 'big', cpu_units: 4, priority: 'critical' }),
    newJob({ name: 'of no worker', type: 'orphan' }),
    newJob({ name: 'parked', type: 'parked' }),
    newJob({ name: 'misplaced' }),
  ])
  await database.sql(`update ready_jobs set ready_at = now() - interval '1 minute'`)
  await database.sql(`update ready_jobs set lane = lane + 10000 where type = 'parked'`)
  await database.sql(`update series set mean_log = 0, runs = 5, deviation_log = 1 where name = 'misplaced'`)
  const worker = {
    hostname: 'h',
    status: 'online' as const,
    slots: 8,
    cpuUnits: 8,
    memoryMb: 8_000,
    running: 1,
    jobsProcessed: 0,
  }
  await database.run(reportWorker({ ...worker, workerId: 'alive', types: ['test', 'parked'] }))
  await database.run(reportWorker({ ...worker, workerId: 'silent', types: ['test'] }))
  await database.sql(`update workers set last_seen = now() - interval '1 minute' where worker_id = 'silent'`)
}

const TABLES = [
  'autoscale_snapshots',
  ...['waiting_jobs', 'ready_jobs', 'leases', 'finished_jobs', 'job_event_groups', 'workers', 'reservations'],
  ...['type_estimates', 'series', 'jobs', 'learning_state', 'models'],
]

const everything = async (): Promise<unknown> =>
  Promise.all(TABLES.map((table) => database.sql(`select t::text from ${table} t order by 1`)))

test('a worker that has not been heard of is offline, and forgotten a day later', async () => {
  const term = await lead(database.run)
  const seed = (workerId: string, status: string, ago: string) =>
    database.sql(
      `insert into workers (worker_id, hostname, status, types, slots, cpu_units, memory_mb, running, last_seen)
      values ($1, 'h', $2, '{}', 1, 1, 1, 1, now() - $3::interval)`,
      [workerId, status, ago],
    )
  await seed('alive', 'online', '5 seconds')
  await seed('silent', 'online', '11 seconds')
  await seed('draining', 'draining', '11 seconds')
  await seed('gone', 'offline', '2 days')
  await seed('recently gone', 'offline', '2 hours')
  const marked = await database.run(markSilentWorkers(term))
  assert.deepEqual(marked.map(({ worker_id }) => worker_id).sort(), ['draining', 'silent'])
  assert.deepEqual(await database.sql('select worker_id, status, running from workers order by worker_id'), [
    { worker_id: 'alive', status: 'online', running: 1 },
    { worker_id: 'draining', status: 'offline', running: 0 },
    { worker_id: 'recently gone', status: 'offline', running: 1 },
    { worker_id: 'silent', status: 'offline', running: 0 },
  ])
})
