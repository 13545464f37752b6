import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { reportWorker } from '../../db/queries/workers.ts'
import type { Run } from '../../db/query.ts'
import { lookOut } from '../../db/queue/upkeep.ts'
import { createDuties } from '../../worker-runtime/duties.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  expireLeases,
  lead,
  makeSuspects,
  newJob,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { keepLog } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

/** But that no worker handles what is submitted here. */
const NOTHING = { due: false, expired: false, moved: false, big: false, suspects: false, held_back: 'test' }
const look = async () => (await database.run(lookOut()))[0]
const seed = (overrides: Parameters<typeof newJob>[0] = {}) =>
  seedJobs(database.run, tenant, [newJob(overrides)])

const SITUATIONS: Record<string, [arrange: () => Promise<unknown>, outlook: Partial<typeof NOTHING>]> = {
  'a job that is ready, and one that runs': [
    async () => {
      await seed()
      await claim(database.run)
      await seed()
    },
    {},
  ],
  'a job whose time has not come': [() => seed({ run_at: '2999-01-01T00:00:00Z' }), {}],
  'a job whose time has come': [
    async () => {
      await seed({ run_at: '2999-01-01T00:00:00Z' })
      await database.sql('update waiting_jobs set wake_at = now()')
    },
    { due: true },
  ],
  'a lease that ran out': [
    async () => {
      await seed()
      await claim(database.run)
      await expireLeases(database.sql)
    },
    { expired: true },
  ],
  'a series whose estimate has moved': [
    async () => {
      await seed()
      await database.sql('update series set moved = true')
    },
    { moved: true },
  ],
  'a big job': [() => seed({ cpu_units: 2 }), { big: true }],
  'a big job that is parked': [
    async () => {
      await seed({ cpu_units: 2 })
      await database.sql('update ready_jobs set lane = lane + 10000')
    },
    {},
  ],
  'suspects that have to run alone': [
    async () => {
      await seed()
      await seed()
      await makeSuspects(database)
    },
    { suspects: true },
  ],
  'a reservation for a job that is gone': [
    () =>
      database.sql(
        `insert into reservations (job_id, org_id, worker_id, cpu_units, memory_mb) values (gen_random_uuid(), $1, 'w', 1, 1)`,
        [tenant.orgId],
      ),
    { big: true },
  ],
  'a worker for all that there is': [
    () =>
      database.run(
        reportWorker({
          workerId: 'w',
          hostname: 'h',
          status: 'online',
          types: ['test'],
          slots: 1,
          cpuUnits: 1,
          memoryMb: 256,
          running: 0,
          jobsProcessed: 0,
        }),
      ),
    { held_back: '' },
  ],
}

for (const [situation, [arrange, outlook]] of Object.entries(SITUATIONS)) {
  test(`the leader looks out: ${situation}`, async () => {
    await arrange()
    assert.deepEqual(await look(), { ...NOTHING, ...outlook })
  })
}

test('a leader without anything to do asks once for several duties, and does what there is to do', async () => {
  const term = await lead(database.run)
  const names: string[] = []
  const run: Run = (query) => {
    names.push(query.name)
    return database.run(query)
  }
  const duties = createDuties({ run, logger: keepLog().logger, retentionDays: 30 })
  const idle = duties.filter(({ name }) => /due|watchdog|reserv|isolation|scoring|parking/.test(name))
  assert.equal(idle.length, 6)
  await Promise.all(idle.map((duty) => duty.step(term)))
  assert.deepEqual(names, ['look-out', 'move-held-back-jobs'], 'a term begins with a look at what is parked')

  await SITUATIONS['a job whose time has come']?.[0]()
  const [fresh] = createDuties({ run: database.run, logger: keepLog().logger, retentionDays: 30 })
  await fresh?.step(term)
  assert.equal((await database.sql('select from ready_jobs')).length, 1)
})
