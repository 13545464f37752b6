import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { JOBS_READY } from '../../db/queries/notifications.ts'
import {
  changeSchedule,
  deleteSchedule,
  getSchedule,
  type ScheduleChange,
  type ScheduleRow,
} from '../../db/queries/schedules.ts'
import { createDatabase, type Database } from '../../worker-runtime/database.ts'
import type { Duty } from '../../worker-runtime/duties.ts'
import { createScheduleDuty } from '../../worker-runtime/schedules/duty.ts'
import { MAX_CAUGHT_UP } from '../../worker-runtime/schedules/plan-ticks.ts'
import {
  createTickPredictions,
  type TickPredictions,
} from '../../worker-runtime/schedules/tick-predictions.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import {
  acceptPredictions,
  claim,
  clearJobs,
  completed,
  end,
  lead,
  refusePredictions,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { newScheduledJob, seedSchedule } from '../support/schedules.ts'
import { startTarget } from '../support/target.ts'
import { waitFor } from '../support/wait-for.ts'
import { handle, keepLog, type LogLine, prepareWorker, startWorker } from '../support/worker.ts'

const DAY_MS = 86_400_000
/** Ticks so rarely that only what was seeded is due. */
const YEARLY = '0 0 1 1 *'

let database: TestDatabase
let workers: Database
let tenant: Tenant
before(async () => {
  database = await createTestDatabase()
  workers = connect()
})
after(async () => {
  await workers.close()
  await database.drop()
})
beforeEach(async () => {
  await clearJobs(database.sql)
  await database.sql('truncate schedules, schedule_ticks, quotas')
  tenant = await seedTenant(database.run)
})

const connect = (): Database =>
  createDatabase({
    url: asLogin(database.url, 'workers'),
    applicationName: 'schedules',
    maxConnections: 4,
    onError: () => {},
  })

const NONE: TickPredictions = {
  prepare: () => {},
  predict: async (_org, _job, count) => Array.from({ length: count }, () => null),
  refused: async () => {},
}

type Options = { transaction?: Database['transaction']; predictions?: TickPredictions }

/** The duty of one leader, and what it has to say. */
const duty = (options: Options = {}): Duty & { log: LogLine[]; errors: Error[] } => {
  const { log, logger } = keepLog()
  const errors: Error[] = []
  const made = createScheduleDuty({
    run: workers.run,
    transaction: options.transaction ?? workers.transaction,
    predictions: options.predictions ?? NONE,
    logger,
    onError: (error) => void errors.push(error),
  })
  return { ...made, log, errors }
}

const secondsAgo = (seconds: number): string =>
  new Date(Math.floor(Date.now() / 1_000 - seconds) * 1_000).toISOString()

/** Midnight of UTC, so many days ago: a daily schedule has ticked since then as many times, and today. */
const midnight = (daysAgo: number): string =>
  new Date((Math.floor(Date.now() / DAY_MS) - daysAgo) * DAY_MS).toISOString()

const seed = (overrides: Partial<Parameters<typeof seedSchedule>[2]> = {}): Promise<string> =>
  seedSchedule(database.run, tenant, { cron: YEARLY, next_at: secondsAgo(1), ...overrides })

const look = async (id: string): Promise<ScheduleRow> => {
  const [row] = await database.run(getSchedule(tenant.orgId, id))
  assert.ok(row)
  return row
}

type Tick = { tick_at: Date; outcome: string; job_id: string | null; reason: string | null }

/** Oldest first. */
const ticksOf = (id: string): Promise<Tick[]> =>
  database.sql('select * from schedule_ticks where schedule_id = $1 order by tick_at', [id])

type StoredJob = Record<string, unknown> & { id: string; triggered_by: { tick_at: string } }

const jobsOf = (id: string): Promise<StoredJob[]> =>
  database.sql(`select * from job_overview where triggered_by ->> 'schedule_id' = $1 order by id`, [id])

/** What holds whatever happens: a job for each tick that was fired, and for no other. */
const assertOnce = async (id: string, expected: number): Promise<void> => {
  const fired = (await ticksOf(id)).filter(({ outcome }) => outcome === 'fired')
  const jobs = await jobsOf(id)
  assert.equal(fired.length, expected)
  assert.deepEqual(
    jobs.map((job) => [job.triggered_by.tick_at, job.id]).sort(),
    fired.map((tick) => [tick.tick_at.toISOString(), tick.job_id]).sort(),
  )
}

test('a tick that has come submits its job as it was kept, for nobody, and the schedule goes on', async () => {
  const nextAt = secondsAgo(2)
  const job = newScheduledJob({
    name: 'report',
    payload: { a: [1, null, 'ü'] },
    priority: 'high',
    resources: { cpu_units: 0.5, memory_mb: 12 },
    retry: { max_attempts: 7, initial_delay_seconds: 1.5, backoff_multiplier: 3 },
    tags: ['t', 'u'],
    timeout_seconds: 30,
    callback_url: 'https://example.com/told',
    fairness_key: 'customer-42',
    deadline_seconds: 3600,
  })
  const id = await seed({ next_at: nextAt, job })
  await duty().step(await lead(database.run))
  const [made, ...others] = await jobsOf(id)
  assert.ok(made)
  assert.deepEqual(others, [])
  const { resources, retry, deadline_seconds: _, ...rest } = job
  const expected = {
    ...{ ...rest, ...resources, ...retry },
    org_id: tenant.orgId,
    created_by: null,
    status: 'ready',
    deadline: new Date(Date.parse(nextAt) + 3_600_000),
    triggered_by: { kind: 'schedule', schedule_id: id, tick_at: nextAt },
  }
  assert.deepEqual({ ...made, ...expected }, made)
  const row = await look(id)
  assert.equal(row.next_at, `${new Date().getUTCFullYear() + 1}-01-01T00:00:00.000Z`)
  assert.deepEqual([row.tick_at, row.outcome, row.job_id, row.skipped_ticks], [nextAt, 'fired', made.id, 0])
  const [used] = await database.sql('select minute_used, day_used from quota_states where org_id = $1', [
    tenant.orgId,
  ])
  assert.deepEqual(used, { minute_used: '1', day_used: String('{"a":[1,null,"ü"]}'.length + 1) }, 'charged')
})

test('until then nothing happens, and the next look is when it comes', async () => {
  const soon = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 1_000).toISOString()
  await seed({ next_at: soon })
  const term = await lead(database.run)
  const wait = await duty().step(term)
  assert.equal(wait, 500)
  assert.deepEqual(await database.sql('select from jobs'), [])
  const left = await waitFor('the tick to be near', async () => {
    const ms = await duty().step(term)
    return ms < 500 && { ms, untilTick: Date.parse(soon) - Date.now() }
  })
  assert.ok(Math.abs(left.ms - left.untilTick) < 200, JSON.stringify(left))
})

test('each tick is fired once, however many leaders try at the same time, in one term or in two', async () => {
  const ids = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      seed(n % 2 === 0 ? {} : { cron: '0 0 * * *', next_at: midnight(3), catch_up: 'all' }),
    ),
  )
  const old = await lead(database.run, 'old')
  const steps = [old, old, old].map((term) => duty().step(term))
  const term = await lead(database.run, 'new')
  const more = [term, term, old, term].map((each) => duty().step(each))
  await Promise.all([...steps, ...more])
  await duty().step(term)
  for (const [n, id] of ids.entries()) await assertOnce(id, n % 2 === 0 ? 1 : 4)
})

test('an old leader changes nothing, wherever it stopped', async () => {
  const id = await seed()
  const old = await lead(database.run, 'old')
  let term = ''
  const slow = duty({
    // It has found the schedule, and only then does another lead.
    transaction: async (work) => {
      term = await lead(database.run, 'new')
      return workers.transaction(work)
    },
  })
  await slow.step(old)
  await duty().step(old)
  assert.deepEqual([await jobsOf(id), await ticksOf(id), slow.errors], [[], [], []])
  await duty().step(term)
  await assertOnce(id, 1)
})

test('what a leader has not committed when it vanishes, the next one fires', async () => {
  const id = await seed({ cron: '0 0 * * *', next_at: midnight(2), catch_up: 'all' })
  const vanishing = duty({
    transaction: (work) =>
      workers.transaction(async (run) => {
        await work(run)
        throw new Error('The host is gone')
      }),
  })
  const pause = await vanishing.step(await lead(database.run, 'old'))
  assert.deepEqual([vanishing.errors.length, pause], [1, 500], 'it would have tried again')
  assert.deepEqual([await jobsOf(id), await ticksOf(id)], [[], []])
  await duty().step(await lead(database.run, 'new'))
  await assertOnce(id, 3)
})

/** The server ends a session that is idle in this transaction for so long. */
const STALL = {
  name: 'stall',
  text: `select set_config('idle_in_transaction_session_timeout', '300', true)`,
  values: [],
}

test('a leader that stands still in the middle holds up the next one only for a moment', async () => {
  const id = await seed()
  const stalling = connect()
  const held = Promise.withResolvers<void>()
  const stalled = Promise.withResolvers<void>()
  const frozen = duty({
    transaction: (work) =>
      stalling.transaction(async (run) => {
        const result = await work(run)
        // Only from here on: on a busy machine the work itself may pause for as long.
        await run(STALL)
        held.resolve()
        await stalled.promise
        return result
      }),
  })
  const stuck = frozen.step(await lead(database.run, 'old'))
  await held.promise
  await duty().step(await lead(database.run, 'new'))
  await assertOnce(id, 1)
  stalled.resolve()
  await stuck
  assert.equal(frozen.errors.length, 1, 'its session is gone')
  await assertOnce(id, 1)
  await stalling.close()
})

const CATCH_UPS = {
  skip: { fired: 0, skipped: 6 },
  one: { fired: 1, skipped: 5 },
  all: { fired: 6, skipped: 0 },
} as const

for (const [rule, { fired, skipped }] of Object.entries(CATCH_UPS)) {
  test(`of ticks that were missed, "${rule}" fires ${fired} of ${fired + skipped}`, async () => {
    const catchUp = rule as keyof typeof CATCH_UPS
    const id = await seed({ cron: '0 0 * * *', next_at: midnight(5), catch_up: catchUp })
    await duty().step(await lead(database.run))
    await assertOnce(id, fired)
    const row = await look(id)
    assert.equal(row.skipped_ticks, skipped)
    assert.equal(row.next_at, midnight(-1))
    const ticks = await ticksOf(id)
    const newest = ticks.filter(({ outcome }) => outcome === 'fired').at(-1)
    if (fired > 0) assert.equal(newest?.tick_at.toISOString(), midnight(0), 'the newest')
    const told = ticks.filter(({ outcome }) => outcome === 'skipped')
    assert.equal(told.length, skipped > 0 ? 1 : 0, 'one row for all that were skipped')
    if (skipped > 0) {
      assert.equal(told[0]?.tick_at.toISOString(), midnight(fired))
      const reason = `Missed, as were those before it since ${midnight(5)}, and not run: catch_up is "${rule}".`
      assert.equal(told[0]?.reason, reason)
    }
  })
}

test('a tick that is late by less than a minute is on time, whatever the rule', async () => {
  const onTime = await seed({ next_at: secondsAgo(50), catch_up: 'skip' })
  const late = await seed({ next_at: secondsAgo(70), catch_up: 'skip' })
  await duty().step(await lead(database.run))
  await assertOnce(onTime, 1)
  await assertOnce(late, 0)
  assert.equal((await ticksOf(late))[0]?.reason, 'Missed, and not run: catch_up is "skip".')
})

test(`"all" fires the newest ${MAX_CAUGHT_UP}, and counts the others`, async () => {
  const id = await seed({ cron: '0 0 * * *', next_at: midnight(119), catch_up: 'all' })
  await duty().step(await lead(database.run))
  await assertOnce(id, MAX_CAUGHT_UP)
  assert.equal((await look(id)).skipped_ticks, 20)
  const [oldest, ...others] = await jobsOf(id)
  assert.equal(oldest?.triggered_by.tick_at, midnight(99))
  assert.equal(others.at(-1)?.triggered_by.tick_at, midnight(0))
})

test('a year of minutes is caught up with in a moment, and counted as far as it was looked at', async () => {
  const id = await seed({ cron: '* * * * *', next_at: midnight(365), catch_up: 'one' })
  await duty().step(await lead(database.run))
  const row = await look(id)
  assert.ok(row.skipped_ticks > 990 && row.skipped_ticks < 1_000, String(row.skipped_ticks))
  assert.ok(row.next_at && row.fired_at && row.next_at > row.fired_at)
})

test('a tick that a quota refuses says why; the others of the schedule are fired', async () => {
  await database.sql('insert into quotas (org_id, queued_jobs) values ($1, 2)', [tenant.orgId])
  const id = await seed({ cron: '0 0 * * *', next_at: midnight(4), catch_up: 'all' })
  const leader = duty()
  await leader.step(await lead(database.run))
  await assertOnce(id, 2)
  const refused = (await ticksOf(id)).filter(({ outcome }) => outcome === 'refused')
  assert.equal(refused.length, 3)
  for (const { reason, job_id } of refused) {
    assert.match(reason ?? '', /The organisation may have 2 jobs queued or running, and has 2\./)
    assert.equal(job_id, null)
  }
  assert.equal((await look(id)).next_at, midnight(-1), 'they are not tried again')
  assert.equal(leader.log.filter(({ message }) => message === 'tick refused').length, 3)
  assert.deepEqual(leader.errors, [])
})

const change = async (id: string, overrides: Partial<ScheduleChange>) => {
  const { name, cron, timezone, catch_up, job, version } = await look(id)
  const wanted = { name, cron, timezone, catch_up, job, paused: false, ...overrides }
  const [changed] = await database.run(changeSchedule({ orgId: tenant.orgId, id, version }, wanted, []))
  assert.ok(changed)
}

test('paused, it does not tick; resumed, it makes up for nothing', async () => {
  const id = await seed({ cron: '0 0 * * *', next_at: midnight(3), catch_up: 'all' })
  const term = await lead(database.run)
  await change(id, { paused: true })
  await duty().step(term)
  await change(id, { paused: false, next_at: midnight(-1) })
  await duty().step(term)
  await assertOnce(id, 0)
  assert.equal((await look(id)).skipped_ticks, 0)
})

/** Somebody does this between the leader's look and its transactions. */
const meanwhile = (act: () => Promise<unknown>) => {
  let acted: Promise<unknown> | undefined
  return duty({
    transaction: async (work) => {
      acted ??= act()
      await acted
      return workers.transaction(work)
    },
  })
}

test('changed in the moment of its tick, it fires as it is after the change', async () => {
  const id = await seed()
  const term = await lead(database.run)
  const early = meanwhile(() => change(id, { job: newScheduledJob({ payload: { changed: true } }) }))
  await early.step(term)
  await assertOnce(id, 0)
  await duty().step(term)
  await assertOnce(id, 1)
  assert.deepEqual((await jobsOf(id))[0]?.payload, { changed: true })
  assert.deepEqual(early.errors, [])
})

test('paused or deleted in the moment of its tick, it does not fire', async () => {
  const paused = await seed()
  const deleted = await seed()
  const term = await lead(database.run)
  const leader = meanwhile(async () => {
    await change(paused, { paused: true })
    await database.run(deleteSchedule(tenant.orgId, deleted))
  })
  await leader.step(term)
  await duty().step(term)
  assert.deepEqual([await jobsOf(paused), await jobsOf(deleted), leader.errors], [[], [], []])
})

test('a tick that was fired before, and comes again with a change of plan, is not fired again', async () => {
  const nextAt = secondsAgo(1)
  const id = await seed({ next_at: nextAt })
  const term = await lead(database.run)
  await duty().step(term)
  await change(id, { next_at: nextAt })
  await duty().step(term)
  await assertOnce(id, 1)
  assert.ok(Date.parse((await look(id)).next_at ?? '') > Date.now(), 'and the schedule goes on')
})

test('a job that the database does not take is refused, and holds up no other', async () => {
  const bad = await seed({ next_at: secondsAgo(5), job: newScheduledJob({ name: 'n'.repeat(201) }) })
  const good = await seed()
  const leader = duty()
  await leader.step(await lead(database.run))
  await assertOnce(bad, 0)
  await assertOnce(good, 1)
  assert.equal((await ticksOf(bad))[0]?.reason, 'The database does not take the job.')
  assert.ok(Date.parse((await look(bad)).next_at ?? '') > Date.now())
})

test('a schedule that cannot be read is paused, and says why', async () => {
  const id = await seed({ timezone: 'Mars/Olympus' })
  await duty().step(await lead(database.run))
  const row = await look(id)
  assert.ok(row.paused_at && row.next_at === null)
  assert.equal(row.outcome, 'refused')
  assert.match(row.reason ?? '', /cannot be read here, and was paused: Mars\/Olympus is no time zone/)
})

test('workers are told of the jobs', async () => {
  const listener = new pg.Client(database.url)
  await listener.connect()
  const heard: (string | undefined)[] = []
  listener.on('notification', ({ payload }) => void heard.push(payload))
  await listener.query(`listen ${JOBS_READY}`)
  // Something has just happened: then the statement that submits leaves it to others to tell.
  const busy = Array.from({ length: 3 }, () => seed({ job: newScheduledJob({ type: 'mail' }) }))
  await Promise.all(busy)
  await duty().step(await lead(database.run))
  await waitFor('a notification', () => heard.includes('mail'))
  await listener.end()
})

test('its jobs are predicted as those of the API are, and learned from', async () => {
  const predictions = createTickPredictions({ run: workers.run, onError: (error) => assert.fail(error) })
  const id = await seed()
  const term = await lead(database.run)
  const predicted = (source: string) =>
    waitFor(`a prediction by ${source}`, async () => {
      const [prediction] = await predictions.predict(tenant.orgId, newScheduledJob(), 1)
      return prediction?.source === source
    })
  const fire = async (): Promise<StoredJob | undefined> => {
    await duty({ predictions }).step(term)
    return (await jobsOf(id)).at(-1)
  }
  await predicted('default')
  const first = await fire()
  const [stored] = await database.sql('select sample is not null as learnable from jobs where id = $1', [
    first?.id,
  ])
  assert.deepEqual([first?.prediction_source, stored], ['default', { learnable: true }])
  const [claimed] = await claim(database.run)
  assert.ok(claimed)
  await end(database.run, completed(claimed, null, 60_000))
  await predicted('series')
  await change(id, { next_at: secondsAgo(0) })
  const second = await fire()
  assert.equal(second?.prediction_source, 'series')
  assert.ok(Number(second?.predicted_ms) > 10_000, String(second?.predicted_ms))
})

test('a tick whose prediction the database rejects fires without it and is counted', async () => {
  const job = newScheduledJob({ name: 'poisoned' })
  const predictions = createTickPredictions({ run: workers.run, onError: (error) => assert.fail(error) })
  await waitFor('the predictor', async () => (await predictions.predict(tenant.orgId, job, 1))[0])
  const id = await seed({ job })
  await refusePredictions(database.sql, 'poisoned')
  try {
    const leader = duty({ predictions })
    await leader.step(await lead(database.run))
    assert.deepEqual(leader.errors, [])
  } finally {
    await acceptPredictions(database.sql)
  }
  await assertOnce(id, 1)
  assert.equal((await database.sql(`select from jobs where name = 'poisoned' and sample is null`)).length, 1)
  await waitFor('the fault to be counted', async () => {
    const rows = await database.sql(`select from prediction_faults where reason = 'refused'`)
    return rows.length === 1
  })
})

test('without a predictor its jobs go by what the database knows', async () => {
  const errors: Error[] = []
  const predictions = createTickPredictions({
    run: workers.run,
    load: async () => {
      throw new Error('no tfjs')
    },
    onError: (error) => void errors.push(error),
  })
  const id = await seed()
  const leader = duty({ predictions })
  await leader.step(await lead(database.run))
  await assertOnce(id, 1)
  assert.deepEqual(leader.errors, [])
  assert.ok(errors.every(({ message }) => message === 'no tfjs') && errors.length > 0)
})

test('one that takes too long to load holds up no tick', async () => {
  const predictions = createTickPredictions({
    run: workers.run,
    load: () => new Promise(() => {}),
    onError: (error) => assert.fail(error),
  })
  const id = await seed()
  const startedAt = performance.now()
  await duty({ predictions }).step(await lead(database.run))
  await assertOnce(id, 1)
  assert.ok(performance.now() - startedAt < 2_000)
})

test('a worker that leads fires and runs it when its time has come', async () => {
  const ran: unknown[] = []
  const worker = prepareWorker(database.url, [handle((payload) => void ran.push(payload))])
  await worker.start()
  try {
    const nextAt = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 1_000).toISOString()
    const id = await seed({ next_at: nextAt, job: newScheduledJob({ payload: { n: 1 } }) })
    const [job] = await waitFor('its job to complete', async () => {
      const jobs = await jobsOf(id)
      return jobs[0]?.status === 'completed' && jobs
    })
    assert.deepEqual(ran, [{ n: 1 }])
    assert.equal(job?.triggered_by.tick_at, nextAt)
    const lateMs = Number(job?.started_at) - Date.parse(nextAt)
    assert.ok(lateMs >= 0 && lateMs < 2_000, `${lateMs} ms late`)
    const row = await look(id)
    assert.deepEqual([row.outcome, row.job_id], ['fired', job?.id])
  } finally {
    await worker.stop()
  }
})

test('ticks that come while one leader falls silent and another takes over are fired once', async () => {
  const target = await startTarget()
  const pods = await Promise.all([startWorker(database.url), startWorker(database.url)])
  try {
    const leader = await waitFor('a leader', async () => {
      const [row] = await database.sql('select worker_id from scheduler_leader')
      return pods.find(({ id }) => id === row?.worker_id)
    })
    const job = newScheduledJob({ type: 'http', payload: { url: `${target.url}/ok` } })
    const dueAt = Math.ceil(Date.now() / 1_000) * 1_000 + 1_000
    const nextAt = new Date(dueAt).toISOString()
    const ids = await Promise.all(
      Array.from({ length: 20 }, () => seed({ next_at: nextAt, job, catch_up: 'skip' })),
    )
    // In the middle of them, more or less.
    await waitFor('the moment', () => Date.now() >= dueAt + 20)
    leader.freeze()
    await waitFor('all of them', async () => {
      const ticks = await database.sql(`select from schedule_ticks where outcome = 'fired'`)
      return ticks.length === ids.length
    })
    leader.unfreeze()
    await waitFor('the old leader to notice', () =>
      leader.log.some(({ message }) => message === 'leads no more'),
    )
    for (const id of ids) await assertOnce(id, 1)
  } finally {
    await Promise.all(pods.map((pod) => pod.stop()))
    await target.stop()
  }
})
