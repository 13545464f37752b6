import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { readLoad } from '../../../db/queries/load.ts'
import { deleteStale } from '../../../db/retention/retention.ts'
import { createTermForecaster } from '../../../worker-runtime/forecast/term-forecaster.ts'
import { useWasmBackend } from '../../../worker-runtime/learning/wasm-backend.ts'
import { rollUpAll } from '../../support/analytics.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { lead, newJob, seedJobs, seedTenant } from '../../support/jobs.ts'
import { comeAt } from '../../support/load-patterns.ts'
import { keepLog } from '../../support/worker.ts'

let database: TestDatabase

before(async () => {
  await useWasmBackend()
  database = await createTestDatabase()
})
after(() => database.drop())
beforeEach(() => database.sql('truncate load_minutes, load_forecasts'))

const forecasterOf = (term: string, leadSeconds = 75) =>
  createTermForecaster({
    run: database.run,
    term,
    logger: keepLog().logger,
    leadSeconds,
    pause: async () => {},
    steps: { first: 5, round: 2 },
  })

/** The newest minute that is over is the last. Those in which nothing came have no row. */
const seedLoad = (work: ArrayLike<number>): Promise<unknown> =>
  database.sql(
    `insert into load_minutes (at, jobs, work_ms)
     select date_trunc('minute', now()) - (cardinality($1::double precision[]) - n + 1) * interval '1 minute', 1, work
     from unnest($1::double precision[]) with ordinality as m (work, n)
     where work > 0`,
    [[...Array.from(work)]],
  )
const stored = async () => {
  const [row] = await database.sql<{
    from_at: Date
    p50_ms: number[]
    p90_ms: number[]
    unusable_because: string | null
    evaluation: { minutes?: number; errors?: Record<string, number>; window_minutes?: number }
    weights: Buffer | null
  }>('select * from load_forecasts')
  return row
}
/** Every hour on the hour. */
const hourly = comeAt((minute) => (minute % 60 < 4 ? 60 : 2))

test('without history there is a row that says why nothing can be forecast', async () => {
  const delayMs = await forecasterOf(await lead(database.run)).step()
  const row = await stored()
  assert.equal(row?.unusable_because, 'There are 0 hours of history, and it takes 8 to forecast from.')
  assert.deepEqual([row?.p50_ms, row?.p90_ms, row?.weights], [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], null])
  assert.ok(delayMs <= 65_000)
})

test('a leader stores the forecast with its errors, another one goes on from it, and an old one changes nothing', async () => {
  await seedLoad(hourly(720, 3))
  const first = forecasterOf(await lead(database.run, 'first'))
  await first.step()
  const trained = await stored()
  assert.ok(trained?.weights)
  assert.deepEqual([trained.p50_ms.length, trained.p90_ms.length], [5, 5])
  assert.equal(trained.evaluation.window_minutes, 2)
  assert.ok((trained.evaluation.minutes ?? 0) > 200)
  assert.deepEqual(Object.keys(trained.evaluation.errors ?? {}).sort(), [
    ...['last_hour', 'lstm', 'seasonal', 'steady'],
  ])

  await database.sql(`update load_forecasts set p50_ms = '{1}', p90_ms = '{1}'`)
  const second = forecasterOf(await lead(database.run, 'second'))
  await second.step()
  const resumed = await stored()
  assert.deepEqual(resumed?.weights, trained.weights, 'it is not trained again before its time')
  if (resumed?.from_at.getTime() === trained.from_at.getTime()) {
    assert.deepEqual([resumed.p50_ms, resumed.p90_ms], [trained.p50_ms, trained.p90_ms])
  }

  await database.sql(`update load_forecasts set made_at = 'epoch', p50_ms = '{1}', p90_ms = '{1}'`)
  await first.step()
  await first.step()
  assert.deepEqual((await stored())?.p50_ms, [1])
})

test('minutes that are not added up yet are no quiet minutes: the forecast begins with them', async () => {
  await seedLoad(hourly(720, 3))
  const tenant = await seedTenant(database.run)
  await seedJobs(database.run, tenant, [newJob()])
  await database.sql(`update job_event_groups set at = now() - interval '2 minutes'`)
  await database.sql(
    `delete from load_minutes where at >= date_trunc('minute', now()) - interval '2 minutes'`,
  )
  const term = await lead(database.run)
  const forecaster = forecasterOf(term)
  await forecaster.step()
  const [missing] = await database.sql<{ minute: Date }>(
    `select date_trunc('minute', at) as minute from job_event_groups`,
  )
  assert.deepEqual((await stored())?.from_at, missing?.minute)
  const known = (await stored())?.p50_ms
  await rollUpAll(database.run, database.sql, term)
  await forecaster.step()
  const after = await stored()
  assert.ok(after && missing && after.from_at.getTime() >= missing.minute.getTime() + 120_000)
  assert.notDeepEqual(after.p50_ms, known)
})

test('what another release has left is replaced, and so is a forecast for another lead time', async () => {
  await seedLoad(hourly(720, 3))
  await forecasterOf(await lead(database.run)).step()
  await database.sql(`update load_forecasts set weights = '\\x0102030405060708'`)
  await forecasterOf(await lead(database.run)).step()
  assert.ok(((await stored())?.weights?.length ?? 0) > 1_000)
  await forecasterOf(await lead(database.run), 600).step()
  assert.deepEqual([(await stored())?.p50_ms.length, (await stored())?.evaluation.window_minutes], [13, 10])
})

test('the load is read in whole minutes, and forgotten after five weeks by the leader of the day', async () => {
  await database.sql(
    `insert into load_minutes (at, jobs, work_ms)
     select date_trunc('minute', now()) - ago, 1, 5
     from unnest('{0 minutes,1 minute,34 days,36 days,40 days}'::interval[]) as ago`,
  )
  const [load] = await database.run(readLoad(null))
  assert.deepEqual(
    load?.minutes.map((minute) => load.end_minute - minute),
    [34 * 1440, 1],
  )
  const [part] = await database.run(readLoad((load?.end_minute ?? 0) - 5))
  assert.equal(part?.minutes.length, 1)
  const [old, term] = [await lead(database.run, 'old'), await lead(database.run, 'new')]
  await database.run(deleteStale(old, 30))
  assert.equal((await database.sql('select from load_minutes')).length, 5)
  await database.run(deleteStale(term, 30))
  assert.equal((await database.sql('select from load_minutes')).length, 3)
})
