import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { clearJobs, newJob, seedJobs, seedTenant, type Tenant, watchJobs } from '../support/jobs.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, prepareWorker } from '../support/worker.ts'

let database: TestDatabase
let tenant: Tenant
let jobs: ReturnType<typeof watchJobs>

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
  jobs = watchJobs(database.sql)
})
after(() => database.drop())
beforeEach(() => clearJobs(database.sql))

test('a worker says once of each attempt that it is slow, and not of those it knows nothing of', async (t) => {
  const { promise: finish, resolve } = Promise.withResolvers<void>()
  const worker = prepareWorker(database.url, [handle(({ quick }) => (quick ? 'done' : finish))])
  t.after(() => worker.stop())
  const ids = await seedJobs(database.run, tenant, [
    newJob({ name: 'slow' }),
    newJob({ name: 'also slow' }),
    newJob({ name: 'unknown' }),
    newJob({ name: 'has time' }),
    newJob({ name: 'quick', payload: { quick: true } }),
  ])
  const [slow, alsoSlow, unknown, hasTime, quick] = ids
  await database.sql(
    `update jobs set predicted_p99_ms = case name when 'has time' then 60000 else 50 end where name <> 'unknown'`,
  )
  await worker.start()
  const said = () => worker.log.filter(({ message }) => message === 'job slow')
  await waitFor('both to be slow', async () => said().length >= 2)
  // Two more looks: nothing is said twice.
  await waitFor('a while', async () => Date.now() - lastSaid(said()) > 1_200)
  assert.deepEqual(
    said()
      .map(({ name }) => name)
      .sort(),
    ['also slow', 'slow'],
  )
  const [line] = said()
  assert.ok(Number(line?.ran_ms) >= 1_000, 'never before a second has passed')
  assert.equal(line?.p99_ms, 50)
  for (const id of [slow, alsoSlow]) {
    assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running', 'running: slow'])
  }
  for (const id of [unknown, hasTime]) assert.deepEqual(await jobs.eventsOf(id), ['ready', 'running'])
  assert.deepEqual(await jobs.eventsOf(quick), ['ready', 'running', 'completed'])
  resolve()
  await jobs.untilAll(ids, 'completed')
  assert.deepEqual((await jobs.eventsOf(slow)).at(-1), 'completed')
})

const lastSaid = (lines: readonly Record<string, unknown>[]): number =>
  Math.max(...lines.map(({ time }) => Date.parse(String(time))))
