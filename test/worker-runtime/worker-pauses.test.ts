import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { createDuties, type Duty } from '../../worker-runtime/duties.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, lead, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, keepLog, prepareWorker } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>
let workers: ReturnType<typeof prepareWorker>[]

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  await database.sql(`delete from job_types where type <> 'test'`)
  workers = []
})
afterEach(() => Promise.all(workers.map((worker) => worker.stop())))

const startWorker = async (...types: string[]) => {
  const worker = prepareWorker(
    database.url,
    types.map((type) => handle(() => type, type)),
  )
  workers.push(worker)
  await worker.start()
  return worker
}
const submit = (...overrides: Parameters<typeof newJob>[0][]) =>
  seedJobs(database.run, tenant, overrides.map(newJob))
const untilParked = (count: number) =>
  waitFor(`${count} parked`, async () => {
    const [row] = await database.sql<{ n: number }>(
      'select count(*)::int as n from ready_jobs where lane >= 5000',
    )
    return row?.n === count
  })

test('a paused organisation waits, parked by the leader, and goes on when it is resumed', async () => {
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  const ids = await submit({}, {}, {})
  await startWorker('test')
  await untilParked(3)
  assert.deepEqual([...new Set(await jobs.statuses(ids))], ['ready'])
  await database.sql('delete from pauses')
  await jobs.untilAll(ids, 'completed')
})

test('jobs of a type that nobody handles wait until a worker for it starts', async () => {
  await startWorker('test')
  const [orphan] = await submit({ type: 'rare' })
  await database.sql(`insert into job_types (type, payload_schema) values ('rare', '{}')`)
  await untilParked(1)
  await startWorker('rare')
  assert.equal((await jobs.untilStatus(orphan, 'completed')).result, 'rare')
})

test('what one leader has parked the next brings back, also if the pause ended in between', async () => {
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  const [id] = await submit({})
  const first = await startWorker('test')
  await untilParked(1)
  await first.stop()
  await database.sql('delete from pauses')
  await startWorker('test')
  await jobs.untilStatus(id, 'completed')
})

test('a worker that leads a second time brings back what another has parked meanwhile', async () => {
  const { logger } = keepLog()
  const parking = createDuties({ run: database.run, logger, retentionDays: 30 }).find(
    ({ name }) => name === 'parking',
  ) as Duty
  await database.sql(
    `insert into workers (worker_id, hostname, status, types, slots, cpu_units, memory_mb)
    values ('w', 'h', 'online', '{test}', 1, 1, 1)`,
  )
  await submit({})
  await parking.step(await lead(database.run, 'this one'))
  // Another leads, parks, and goes; what it parked for ends before this one leads again.
  await lead(database.run, 'another')
  await database.sql('update ready_jobs set lane = lane + 10000')
  await parking.step(await lead(database.run, 'this one'))
  await untilParked(0)
})
