import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type AutoscaleRow, readAutoscale, viewAutoscale } from '../../db/queries/autoscale.ts'
import { scalingSignal } from '../../db/rules/autoscale.ts'
import { createAutoscaleDuty } from '../../worker-runtime/autoscale/duty.ts'
import { parseConfig } from '../../worker-runtime/config.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  claim,
  clearJobs,
  exchange,
  lead,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { reportLive } from '../support/live-worker.ts'
import { newScheduledJob, seedSchedule } from '../support/schedules.ts'

let database: TestDatabase
let tenant: Tenant

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  await database.sql('truncate autoscale_snapshots, load_forecasts, load_minutes, schedules cascade')
  await reportLive(database.run)
})

const SETTINGS = {
  SMARTQUEUE_DRAIN_GOAL_SECONDS: '60',
  SMARTQUEUE_WORKER_SLOTS: '10',
  SMARTQUEUE_LEAD_SECONDS: '60',
}

/** One step of the duty in a term of its own, and what it left. */
const snapshot = async (env: Record<string, string> = {}): Promise<AutoscaleRow> => {
  await step(await lead(database.run), env)
  const [row] = await database.run(readAutoscale())
  assert.ok(row)
  return row
}
const step = (term: string, env: Record<string, string> = {}): Promise<number> =>
  createAutoscaleDuty({ run: database.run, config: parseConfig({ ...SETTINGS, ...env }) }).step(term)

/** Each is predicted to take a second: nothing of its kind has run. */
const seed = (count: number, overrides: Parameters<typeof newJob>[0] = {}) =>
  seedJobs(
    database.run,
    tenant,
    Array.from({ length: count }, () => newJob(overrides)),
  )
const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString()
const near = (actual: number | null, expected: number, tolerance = 0.02): void =>
  assert.ok(
    actual !== null && Math.abs(actual - expected) <= tolerance * Math.max(1, expected),
    `${actual} ≈ ${expected}`,
  )

test('an empty queue asks for the fewest workers, and the settings of the leader are kept with it', async () => {
  const row = await snapshot({ SMARTQUEUE_MIN_WORKERS: '2', SMARTQUEUE_DRAIN_GOAL_SECONDS: '30' })
  assert.deepEqual(
    [row.queued_seconds, row.running_seconds, row.arriving_per_second, row.scheduled_seconds, row.workers],
    [0, 0, 0, 0, 1],
  )
  assert.deepEqual(
    [row.slots_per_worker, row.drain_goal_seconds, row.lead_seconds, row.min_workers, row.max_workers],
    [10, 30, 60, 2, 5],
  )
  assert.ok(row.age_seconds >= 0 && row.age_seconds < 5)
  assert.equal(scalingSignal(row).desired, 2)
})

test('what could be claimed and what runs is work; what is parked is none', async () => {
  await seed(6)
  await exchange(database.run, { claim: { limit: 2 } })
  await exchange(database.run, { claim: { limit: 1 } })
  await seed(5, { type: 'parked' })
  await database.sql(`update ready_jobs set lane = lane + 10000 where type = 'parked'`)
  const row = await snapshot()
  assert.equal(row.queued_seconds, 3)
  near(row.running_seconds, 3, 0.1)
  near(scalingSignal(row).B, 6, 0.1)
})

test('of a job no more than the drain goal counts: another worker takes none of it off the slot that it has', async () => {
  await seed(3, { name: 'long' })
  await database.sql(`update jobs set predicted_ms = 3600000, predicted_p90_ms = 7200000`)
  await database.sql(`update ready_jobs set predicted_ms = 3600000`)
  await seed(4, { name: 'short' })
  await database.sql(`update ready_jobs set lane = lane + 50 where predicted_ms > 1000`)
  await exchange(database.run, { claim: { limit: 5 } })
  await seed(1, { name: 'later', run_at: inSeconds(30) })
  await database.sql(`update jobs set predicted_ms = 3600000 where name = 'later'`)
  await database.sql(
    `insert into load_minutes (at, jobs, work_ms) values (date_trunc('minute', now()), 2, 7200000)`,
  )
  const row = await snapshot({ SMARTQUEUE_DRAIN_GOAL_SECONDS: '20' })
  assert.equal(row.queued_seconds, 40, 'two long ones are ready')
  near(row.running_seconds, 24, 0.1)
  assert.equal(row.scheduled_seconds, 20)
  assert.ok(row.arriving_per_second <= 40 / 60)
})

test('the same is kept first in, first out', async () => {
  await seed(3)
  assert.equal((await snapshot({ SMARTQUEUE_POLICY: 'fifo' })).queued_seconds, 3)
})

test('what comes in a second is told by the minute that has begun and the one before it', async () => {
  await database.sql(`
    insert into load_minutes (at, jobs, work_ms)
    select date_trunc('minute', now()) - n * interval '1 minute', 1000, case when n <= 1 then 60000 else 1e6 end
    from generate_series(0, 5) n`)
  const row = await snapshot()
  const [{ seconds } = { seconds: 0 }] = await database.sql<{ seconds: number }>(
    `select extract(epoch from taken_at - date_trunc('minute', taken_at))::float8 as seconds from autoscale_snapshots`,
  )
  near(row.arriving_per_second, 120 / (60 + seconds))
  near(scalingSignal(row).R, (120 / (60 + seconds)) * 60)
})

test('jobs of a known time count within the lead time, and not those of a paused queue or without a worker', async () => {
  await seed(3, { run_at: inSeconds(50) })
  await seed(5, { run_at: inSeconds(70) })
  await seed(7, { run_at: inSeconds(30), type: 'nobody handles it' })
  await seed(1)
  const [retried] = await claim(database.run)
  assert.ok(retried)
  await exchange(database.run, { ended: [retrying(retried, 10_000)] })
  const row = await snapshot()
  // Three that are pending and one that is retried.
  near(row.scheduled_seconds, 4)
  near(scalingSignal(row).F, 4)
  await database.sql('insert into pauses (org_id) values ($1)', [tenant.orgId])
  assert.equal((await snapshot()).scheduled_seconds, 0)
})

test('every tick of a schedule within the lead time counts, by what its jobs take', async () => {
  const job = newScheduledJob({ name: 'nightly' })
  await seed(1, { name: 'nightly' })
  await database.sql(
    `update series set runs = 5, mean_log = ln(40000), deviation_log = 1 where name = 'nightly'`,
  )
  await seedSchedule(database.run, tenant, { name: 'slow', job, cron: '0 0 1 1 *', next_at: inSeconds(55) })
  await seedSchedule(database.run, tenant, { name: 'later', job, cron: '0 0 1 1 *', next_at: inSeconds(90) })
  near((await snapshot()).scheduled_seconds, 40)
  const next = new Date(Math.ceil((Date.now() + 1_000) / 10_000) * 10_000)
  const often = { cron: '*/10 * * * * *', next_at: next.toISOString() }
  await seedSchedule(database.run, tenant, { name: 'new', job: newScheduledJob({ name: 'x' }), ...often })
  const ticks = Math.floor((60 - (next.getTime() - Date.now()) / 1000) / 10) + 1
  // The series of the new one has not run: it starts from its type, of which nothing is known either.
  near((await snapshot()).scheduled_seconds, 40 + ticks, 0.03)
  near((await snapshot({ SMARTQUEUE_DRAIN_GOAL_SECONDS: '10' })).scheduled_seconds, 10 + ticks, 0.06)
})

const forecast = (values: { from: string; p50: number[]; p90: number[]; made?: string; unusable?: string }) =>
  database.sql(
    `insert into load_forecasts (made_at, from_at, p50_ms, p90_ms, unusable_because)
    values (now() + $1::interval, now() + $2::interval, $3::float8[], $4::float8[], $5)`,
    [values.made ?? '0 s', values.from, values.p50, values.p90, values.unusable ?? null],
  )

test('of a forecast the minutes within the lead time count, each as far as it lies in it', async () => {
  // A minute that has half gone by, and half of the next.
  await forecast({ from: '-30 s', p50: [60_000, 120_000, 1e9], p90: [90_000, 240_000, 1e9] })
  const row = await snapshot()
  near(row.forecast_p50_seconds, 90)
  near(row.forecast_p90_seconds, 165)
  assert.equal(row.no_forecast_because, null)
})

test('a forecast is reckoned to a drain goal, as all the rest is', async () => {
  await forecast({ from: '0 s', p50: [60_000, 60_000], p90: [120_000, 120_000] })
  const row = await snapshot({ SMARTQUEUE_DRAIN_GOAL_SECONDS: '20' })
  near(row.forecast_p50_seconds, 20)
  near(row.forecast_p90_seconds, 40)
})

test('until the first minute of a forecast begins it is as in that', async () => {
  await forecast({ from: '20 s', p50: [60_000, 120_000], p90: [60_000, 120_000] })
  near((await snapshot()).forecast_p50_seconds, 60)
})

test('without a forecast that may be used there is none, and the snapshot says why', async () => {
  const minutes = { p50: [1e6], p90: [1e6] }
  const cases: [Parameters<typeof forecast>[0] | undefined, RegExp][] = [
    [undefined, /there is no forecast yet/],
    [{ ...minutes, from: '0 s', unusable: 'two days of history are needed' }, /^two days of history/],
    [{ ...minutes, from: '-4 min', made: '-4 min' }, /the newest forecast is 4 minutes old/],
    [{ ...minutes, from: '-30 s' }, /does not reach to the end of the lead time/],
  ]
  for (const [values, reason] of cases) {
    await database.sql('truncate load_forecasts')
    if (values) await forecast(values)
    const row = await snapshot()
    assert.deepEqual([row.forecast_p50_seconds, row.forecast_p90_seconds], [null, null])
    assert.match(row.no_forecast_because ?? '', reason)
    assert.equal(scalingSignal(row).F, 0)
    assert.match(viewAutoscale(row).forecast.unused_because ?? '', reason)
  }
})

test('a former leader keeps nothing', async () => {
  const old = await lead(database.run, 'old')
  await step(old)
  const [before] = await database.run(readAutoscale())
  const term = await lead(database.run, 'new')
  await step(old)
  const [after] = await database.run(readAutoscale())
  assert.deepEqual(after?.taken_at, before?.taken_at)
  await step(term)
  assert.notDeepEqual((await database.run(readAutoscale()))[0]?.taken_at, before?.taken_at)
})
