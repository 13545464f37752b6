import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import pg from 'pg'
import { getQueueDepth, getThroughput } from '../../db/queries/analytics.ts'
import { getPredictionAccuracy } from '../../db/queries/analytics-accuracy.ts'
import { sampleDepths } from '../../db/queries/analytics-depth.ts'
import { rollUp } from '../../db/queries/analytics-rollup.ts'
import { getSummary } from '../../db/queries/analytics-summary.ts'
import { restartCursors } from '../../db/queries/event-cursors.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import { retryJobs } from '../../db/queue/retry.ts'
import { reclaimExpiredLeases, wakeDueJobs } from '../../db/queue/upkeep.ts'
import { deleteExpired, deleteStale } from '../../db/retention/retention.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { quantileOf } from '../../functions/analytics/log-histogram.ts'
import { rollUpAll } from '../support/analytics.ts'
import { asLogin, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { jobInState } from '../support/job-in-state.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  expireLeases,
  failed,
  lead,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  type Tenant,
} from '../support/jobs.ts'
import { predictionWith, sampleWith } from '../support/lessons.ts'

const LATER = '2999-01-01T00:00:00Z'
const DAY = { span: 3600, seconds: 3600, count: 24 } as const

let database: TestDatabase
let ada: Tenant
let bob: Tenant
let term: string
before(async () => {
  database = await createTestDatabase()
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  ada = await seedTenant(database.run)
  bob = await seedTenant(database.run)
  term = await lead(database.run)
})

const rollUpEverything = (limits?: { groups: number; jobs: number }) =>
  rollUpAll(database.run, database.sql, term, limits)

type Counts = { submitted: number; delayed: number; completed: number; failed: number; cancelled: number }

const countsOf = async (tenant: Tenant, span = 3600): Promise<Counts> => {
  const [row] = await database.sql<Counts>(
    `select
      coalesce(sum(submitted), 0)::int as submitted, coalesce(sum(delayed), 0)::int as delayed,
      coalesce(sum(completed), 0)::int as completed, coalesce(sum(failed), 0)::int as failed,
      coalesce(sum(cancelled), 0)::int as cancelled
    from job_rollups
    where org_id = $1 and span = $2`,
    [tenant.orgId, span],
  )
  assert.ok(row)
  return row
}

const NONE: Counts = { submitted: 0, delayed: 0, completed: 0, failed: 0, cancelled: 0 }

test('every submission counts once, whatever way its jobs take, and every end', async () => {
  const { run } = database
  // Alone and in batches, mixed and alike, delayed, blocked, woken, released, retried by itself and by hand.
  await seedJobs(run, ada, [newJob()])
  await seedJobs(run, ada, [newJob(), newJob(), newJob()])
  const [parent] = await seedJobs(run, ada, [newJob({ name: 'parent' })])
  await seedJobs(run, ada, [newJob({ depends_on: [parent as string] }), newJob({ name: 'other' })])
  const soon = new Date(Date.now() - 1_000).toISOString()
  await seedJobs(run, ada, [newJob({ run_at: LATER }), newJob({ run_at: soon }), newJob()])
  const [later] = await seedJobs(run, ada, [newJob({ run_at: LATER })])
  await database.sql('update waiting_jobs set wake_at = now() where job_id = $1', [later])
  await run(wakeDueJobs(term, 10))
  const [again, ...rest] = await claim(run, 'worker-1', 100)
  assert.ok(again)
  await end(run, retrying(again), ...rest.map((job) => completed(job)))
  await run(wakeDueJobs(term, 10))
  for (const job of await claim(run, 'worker-1', 100)) {
    await end(run, job.job_id === again.job_id ? failed(job) : completed(job))
  }
  await run(retryJobs(ada.orgId, [again.job_id], ['failed']))
  await run(cancelJobs(ada.orgId, [again.job_id]))
  await rollUpEverything()
  const expected = { submitted: 11, delayed: 2, completed: 9, failed: 1, cancelled: 1 }
  assert.deepEqual(await countsOf(ada), expected)
  assert.deepEqual(await countsOf(ada, 60), expected)
  assert.deepEqual(await countsOf(bob), NONE)
  assert.deepEqual(await totals(), {
    submitted: 11,
    completed: 9,
    // The one that was to be tried again, and failed for good then; and was retried by hand.
    ...{ failed_attempts: 2, dead: 1, retried: 2 },
    ...{ cancelled: 1, lost_leases: 0, ran: 9, waited: 9 },
  })
  assert.equal((await load()).jobs, 9, 'without those to be run later')
})

/** The sums of all organisations. */
const totals = async () => {
  const [row] = await database.sql<Record<string, number>>(
    `select
      submitted::int, completed::int, failed_attempts::int, dead::int, retried::int, cancelled::int, lost_leases::int,
      (select coalesce(sum(n), 0)::int from unnest(runtimes) n) as ran,
      (select coalesce(sum(n), 0)::int from unnest(waits) n) as waited
    from job_totals`,
  )
  return row
}

const load = async () => {
  const [row] = await database.sql<{ jobs: number; work_ms: number }>(
    'select coalesce(sum(jobs), 0)::int as jobs, coalesce(sum(work_ms), 0) as work_ms from load_minutes',
  )
  assert.ok(row)
  return row
}

test('a job whose worker vanished counts as lost and not as failed, and its dependents have no attempt', async () => {
  const { run, sql } = database
  const [first = ''] = await seedJobs(run, ada, [newJob({ max_attempts: 2 })])
  await seedJobs(run, ada, [newJob({ depends_on: [first] })])
  for (const lost of [1, 2]) {
    assert.equal((await claim(run, 'worker-1', 1)).length, 1)
    await expireLeases(sql)
    await run(reclaimExpiredLeases(term, 10))
    await rollUpEverything()
    assert.equal((await totals())?.lost_leases, lost)
  }
  const sums = await totals()
  assert.deepEqual([sums?.failed_attempts, sums?.retried, sums?.dead], [0, 0, 2])
})

test('load is what nobody has announced, and of many that come together a part speaks for all', async () => {
  const { run } = database
  const predicted = (ms: number) => ({ ...predictionWith(sampleWith()), p50Log: Math.log(ms) })
  const schedule = { kind: 'schedule' as const, schedule_id: uuidV7(), tick_at: null }
  await seedJobs(run, ada, [
    newJob({ prediction: predicted(300) }),
    newJob({ run_at: LATER }),
    newJob({ triggered_by: schedule }),
    newJob({ type: 'callback' }),
  ])
  const hook = { kind: 'webhook' as const, source_id: uuidV7(), delivery_id: uuidV7() }
  await seedJobs(run, bob, [newJob({ prediction: predicted(700), triggered_by: hook })])
  await rollUpEverything()
  const few = await load()
  assert.equal(few.jobs, 2)
  assert.ok(Math.abs(few.work_ms - 1_000) < 1e-6, `${few.work_ms}`)

  for (let n = 0; n < 4; n++) {
    await seedJobs(
      run,
      ada,
      Array.from({ length: 777 }, (_, k) => newJob({ prediction: predicted(k % 2 ? 100 : 300) })),
    )
  }
  await rollUpEverything()
  const many = await load()
  assert.equal(many.jobs, 2 + 4 * 777)
  assert.ok(Math.abs((many.work_ms - 1_000) / (4 * 777) - 200) < 10, `${many.work_ms}`)
})

test('sums go on under the next leader, and no page counts twice', async () => {
  const { run } = database
  await seedJobs(run, ada, [newJob(), newJob()])
  await rollUpEverything()
  const former = term
  term = await lead(run)
  for (const job of await claim(run, 'worker-1', 10)) await end(run, completed(job, null, 100))
  await run(rollUp(former, { groups: 10, jobs: 10 }))
  assert.equal((await totals())?.completed, 0, 'nothing by who leads no more')
  await rollUpEverything({ groups: 1, jobs: 1 })
  await rollUpEverything()
  const [row] = await database.sql(
    `select submitted::int, completed::int, runtime_ms, (select sum(n)::int from unnest(runtimes) n) as ran from job_totals`,
  )
  assert.deepEqual(row, { submitted: 2, completed: 2, runtime_ms: 200, ran: 2 })
})

test('pages of any size add up to the same', async () => {
  for (const tenant of [ada, bob]) {
    await seedJobs(
      database.run,
      tenant,
      Array.from({ length: 30 }, () => newJob()),
    )
  }
  const jobs = await claim(database.run, 'worker-1', 60)
  for (let n = 0; n < 60; n += 7) {
    await end(database.run, ...jobs.slice(n, n + 7).map((job) => completed(job)))
  }
  await rollUpEverything({ groups: 1, jobs: 1 })
  for (const tenant of [ada, bob]) {
    assert.deepEqual(await countsOf(tenant), { ...NONE, submitted: 30, completed: 30 })
  }
  const [sums] = await database.sql(
    `select sum(ran)::int as ran, sum(waited)::int as waited, sum(runtime_ms) as runtime_ms from job_rollups where span = 60`,
  )
  assert.deepEqual(sums, { ran: 60, waited: 60, runtime_ms: 300 })
})

test('of a thousand jobs that end together a part is looked up, and speaks for all', async () => {
  await seedJobs(
    database.run,
    ada,
    Array.from({ length: 1_001 }, () => newJob()),
  )
  const jobs = await claim(database.run, 'worker-1', 2_000)
  await end(database.run, ...jobs.map((job, n) => completed(job, null, 100 + (n % 7))))
  await rollUpEverything()
  assert.deepEqual(await countsOf(ada), { ...NONE, submitted: 1_001, completed: 1_001 })
  const [sums] = await database.sql<{ ran: number; waited: number; mean: number; counts: number }>(
    `select ran::int, waited::int, runtime_ms / ran as mean, (select sum(n)::int from unnest(waits) n) as counts
    from job_rollups where span = 3600`,
  )
  assert.deepEqual([sums?.ran, sums?.waited, sums?.counts], [1_001, 1_001, 1_001])
  assert.ok(Math.abs((sums?.mean ?? 0) - 103) < 0.5, `${sums?.mean}`)
  const [accuracy] = await database.run(getPredictionAccuracy(ada.orgId, null, DAY))
  assert.equal(accuracy?.points[0]?.jobs, 1_001)
})

test('two that roll up at the same time count each event once', async () => {
  const sessions = await Promise.all(
    [1, 2, 3].map(async () => {
      const client = new pg.Client(asLogin(database.url, 'workers'))
      await client.connect()
      return client
    }),
  )
  const query = rollUp(term, { groups: 2, jobs: 10 })
  for (let round = 0; round < 10; round++) {
    await Promise.all([
      seedJobs(database.run, ada, [newJob(), newJob()]),
      ...sessions.map((client) => client.query(query.text, [...query.values])),
    ])
  }
  await rollUpEverything()
  await Promise.all(sessions.map((client) => client.end()))
  assert.deepEqual(await countsOf(ada), { ...NONE, submitted: 20 })
})

test('a statement that dies has counted nothing, and a transaction that commits late is not passed over', async () => {
  const [late, dying] = [new pg.Client(database.url), new pg.Client(asLogin(database.url, 'workers'))]
  await Promise.all([late.connect(), dying.connect()])
  try {
    await late.query('begin')
    await late.query(
      `insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      values ($1, array[gen_random_uuid()], '{ready}', '{0}', '{}', '{}')`,
      [ada.orgId],
    )
    await seedJobs(database.run, ada, [newJob()])
    await dying.query('begin')
    const { text, values } = rollUp(term, { groups: 10, jobs: 10 })
    await dying.query(text, [...values])
    await dying.query('rollback')
    await database.run(rollUp(term, { groups: 10, jobs: 10 }))
    assert.deepEqual(await countsOf(ada), NONE, 'not beyond the oldest that still runs')
    await late.query('commit')
  } finally {
    await Promise.all([late.end(), dying.end()])
  }
  await rollUpEverything()
  assert.deepEqual(await countsOf(ada), { ...NONE, submitted: 2 })
})

test('who leads no more counts nothing', async () => {
  await seedJobs(database.run, ada, [newJob()])
  const former = term
  term = await lead(database.run)
  const [page] = await database.run(rollUp(former, { groups: 10, jobs: 10 }))
  assert.deepEqual(page, { groups: 0, jobs: 0, more: false })
  await database.run(sampleDepths(former, 15))
  assert.deepEqual(await database.sql('select from job_rollups'), [])
  await rollUpEverything()
  assert.deepEqual(await countsOf(ada), { ...NONE, submitted: 1 })
})

test('in the dump of another server it begins at the present', async () => {
  await seedJobs(database.run, ada, [newJob()])
  await database.sql(`update job_event_groups set xid = '900000000000'`)
  await database.sql(`update event_cursors set xid = '900000000001'`)
  assert.equal((await database.run(restartCursors(term, ['rollups', 'gains']))).length, 2)
  assert.deepEqual(await database.run(restartCursors(term, ['rollups', 'gains'])), [], 'once')
  await seedJobs(database.run, ada, [newJob(), newJob()])
  await database.run(rollUp(term, { groups: 10, jobs: 10 }))
  const [foreign] = await database.sql(
    `select foreign_id > 0 as passed from event_cursors where reader = 'rollups'`,
  )
  assert.deepEqual(foreign, { passed: true })
})

test('waits begin when a job could have started, and later tries do not count', async () => {
  const { run, sql } = database
  const [plain] = await seedJobs(run, ada, [newJob({ name: 'plain' })])
  const [child] = await seedJobs(run, ada, [newJob({ name: 'child', depends_on: [plain as string] })])
  const [delayed] = await seedJobs(run, ada, [newJob({ name: 'delayed' })])
  const [tried] = await seedJobs(run, ada, [newJob({ name: 'tried' })])
  await sql(`update jobs set created_at = now() - interval '100 seconds'`)
  await sql(`update jobs set run_at = now() - interval '10 seconds' where id = $1`, [delayed])
  const first = await claim(run, 'worker-1', 10)
  for (const job of first) await end(run, job.job_id === tried ? retrying(job) : completed(job, null, 5))
  await run(wakeDueJobs(term, 10))
  for (const job of await claim(run, 'worker-1', 10)) await end(run, completed(job, null, 5))
  await rollUpEverything()
  const [row] = await sql<{ waited: number; wait_ms: number }>(
    `select waited::int, wait_ms from job_rollups where span = 3600 and org_id = $1`,
    [ada.orgId],
  )
  // 100 s of the plain one, 10 s of the delayed one, next to nothing of the child.
  assert.equal(row?.waited, 3, `${child}`)
  assert.ok(Math.abs((row?.wait_ms ?? 0) - 110_000) < 5_000, `${row?.wait_ms}`)
})

test('errors of predictions are those of hand', async () => {
  const runs = [500, 999, 2_000, 4_000]
  const jobs = runs.map((_, n) =>
    newJob({
      name: `series ${n}`,
      prediction: { ...predictionWith(sampleWith()), residualLog: Math.log(2) },
    }),
  )
  const ids = await seedJobs(database.run, ada, jobs)
  const claimed = await claim(database.run, 'worker-1', 10)
  const ranMs = new Map(ids.map((id, n) => [id, runs[n] ?? 0]))
  await end(database.run, ...claimed.map((job) => completed(job, null, ranMs.get(job.job_id))))
  await rollUpEverything()
  const [row] = await database.run(getPredictionAccuracy(ada.orgId, 'test', DAY))
  const [point] = row?.points ?? []
  // Predicted: 1,000 ms, and e times that at most; the running mean alone would have said half.
  const errors = runs.map((ms) => Math.log(ms / 1_000))
  const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0)
  const near = (actual: number | undefined, values: number[]): void =>
    assert.ok(Math.abs((actual ?? 0) - sum(values)) < 1e-5, `${actual} is ${sum(values)}`)
  assert.equal(point?.jobs, 4)
  near(point?.log_error, errors)
  near(point?.abs_log_error, errors.map(Math.abs))
  near(
    point?.baseline_abs_log_error,
    errors.map((error) => Math.abs(error + Math.log(2))),
  )
  assert.deepEqual([point?.within_p50, point?.within_p90], [2, 3])
  // Off by 100 %, 0 %, 50 % and 75 % of the runtime.
  const median = quantileOf(row?.apes ?? [], 0.5)
  assert.ok(median && median > 450 && median < 650, `${median}`)
  assert.deepEqual(
    row?.samples.map(({ actual_ms }) => actual_ms).toSorted((a, b) => a - b),
    runs,
  )
  const [other] = await database.run(getPredictionAccuracy(ada.orgId, 'other', DAY))
  assert.deepEqual([other?.points, other?.samples], [[], []])
  const [foreign] = await database.run(getPredictionAccuracy(bob.orgId, null, DAY))
  assert.deepEqual([foreign?.points, foreign?.samples], [[], []])
})

test('depths are averages of what was seen, and an empty queue is seen as one', async () => {
  for (const state of ['pending', 'blocked', 'ready', 'ready', 'running', 'retrying'] as const) {
    await jobInState(database.run, ada, state)
  }
  await jobInState(database.run, bob, 'ready')
  // As if the hour had just begun.
  await database.run(sampleDepths(term, 1e9))
  await database.run(cancelJobs(ada.orgId, (await allIds(ada)).slice()))
  await database.run(sampleDepths(term, 1e9))
  await database.run(sampleDepths(term, 1e9))
  await database.run(sampleDepths(term, 1e9))
  const [row] = await database.run(getQueueDepth(ada.orgId, { span: 3600, seconds: 3600, count: 24 }))
  assert.equal(row?.items.length, 24)
  const { at: _, predicted_seconds, ...item } = row?.items.at(-1) ?? { at: '', predicted_seconds: 0 }
  // The parent of the blocked one is pending, too.
  assert.deepEqual(item, { pending: 0.5, blocked: 0.25, ready: 0.5, running: 0.25, retrying: 0.25 })
  assert.ok(predicted_seconds > 0)
  assert.deepEqual(row?.items[0]?.pending, 0, 'no gaps')
  assert.deepEqual(row?.depth.ready, 0)
  const others = await database.run(getQueueDepth(bob.orgId, { span: 60, seconds: 60, count: 60 }))
  assert.equal(others[0]?.items.length, 60)
  assert.deepEqual(others[0]?.depth.ready, 1)
})

test('depths of the whole queue are told by class and status', async () => {
  const { run, sql } = database
  for (const state of ['pending', 'blocked', 'ready', 'running', 'retrying'] as const) {
    await jobInState(run, ada, state)
  }
  await seedJobs(run, bob, [newJob({ priority: 'critical' }), newJob({ priority: 'low' })])
  await sql(`update ready_jobs set ready_at = now() - interval '1 hour' where org_id = $1`, [bob.orgId])
  await run(sampleDepths(term, 15))
  const gauges = async () => {
    const [row] = await sql<{ depths: { class: string; status: string; jobs: number }[]; age: number }>(
      'select depths, extract(epoch from taken_at - oldest_ready_at)::int as age from queue_gauges',
    )
    assert.ok(row)
    const depths = row.depths.map((one) => `${one.status} ${one.class} ${one.jobs}`).sort()
    return { depths, age: row.age }
  }
  const { depths, age } = await gauges()
  // The parent of the blocked one is pending, too.
  assert.deepEqual(depths, [
    ...['blocked normal 1', 'pending normal 2', 'ready critical 1', 'ready low 1', 'ready normal 1'],
    ...['retrying normal 1', 'running normal 1'],
  ])
  assert.equal(age, 3_600)
  await sql('update ready_jobs set lane = lane + 10000')
  await run(sampleDepths(term, 15))
  assert.equal((await gauges()).age, null, 'what is paused could not be claimed')

  // Of a deep queue: the look before says how deep it is.
  const many = Array.from({ length: 12_000 }, (_, n) => newJob({ priority: n % 4 ? 'normal' : 'high' }))
  for (let n = 0; n < many.length; n += 4_000) await seedJobs(run, bob, many.slice(n, n + 4_000))
  await run(sampleDepths(term, 15))
  const exact = (await gauges()).depths
  assert.ok(exact.includes('ready high 3000') && exact.includes('ready normal 9001'), exact.join())
  await run(sampleDepths(term, 15))
  const [drawn] = await sql<{ high: number; ready: number }>(
    `select
      sum((d ->> 'jobs')::int) filter (where d ->> 'class' = 'high')::int as high, sum((d ->> 'jobs')::int)::int as ready
    from queue_gauges, jsonb_array_elements(depths) d where d ->> 'status' = 'ready'`,
  )
  assert.ok(Math.abs((drawn?.ready ?? 0) - 12_003) <= 2, `${drawn?.ready}`)
  assert.ok(Math.abs((drawn?.high ?? 0) - 3_000) < 300, `${drawn?.high}`)
})

const allIds = async (tenant: Tenant): Promise<string[]> =>
  (await database.sql<{ id: string }>('select id from jobs where org_id = $1', [tenant.orgId])).map(
    ({ id }) => id,
  )

test('a queue that is too deep to count is told by the newest look at it', async () => {
  await seedJobs(
    database.run,
    ada,
    Array.from({ length: 5_500 }, () => newJob()),
  )
  const ready = async (): Promise<number | undefined> =>
    (await database.run(getSummary(ada.orgId)))[0]?.depth.ready
  assert.equal(await ready(), 5_000)
  await database.run(sampleDepths(term, 15))
  assert.equal(await ready(), 5_500)
})

test('of the last 24 hours none counts twice and none is left out', async () => {
  const insert = (span: number, at: string) =>
    database.sql(
      `insert into job_rollups (org_id, span, at, submitted) values ($1, $2::int, date_bin($2::int * interval '1 second', ${at}, 'epoch'), 1)`,
      [ada.orgId, span],
    )
  // Each event stands in a minute and in an hour.
  const within = [`now()`, `now() - interval '2 hours'`, `now() - interval '23 hours 58 minutes'`]
  const beyond = [`now() - interval '24 hours 2 minutes'`]
  for (const at of [...within, ...beyond]) {
    await insert(60, at)
    await insert(3600, at).catch(() =>
      database.sql(
        `update job_rollups set submitted = submitted + 1
        where org_id = $1 and span = 3600 and at = date_bin('1 hour', ${at}, 'epoch')`,
        [ada.orgId],
      ),
    )
  }
  const [row] = await database.run(getSummary(ada.orgId))
  assert.deepEqual([row?.last_hour.submitted, row?.last_24h.submitted], [1, 3])
})

test('this minute and the one before are told apart from those before them', async () => {
  for (const [minutesAgo, jobs] of [1, 10, 100].entries()) {
    await database.sql(
      `insert into job_rollups (org_id, span, at, submitted, completed, failed, cancelled)
      values ($1, 60, date_trunc('minute', now()) - $2::int * interval '1 minute', 5 * $3::int, 2 * $3::int, $3::int, $3::int)`,
      [ada.orgId, minutesAgo, jobs],
    )
  }
  const [row] = await database.run(getSummary(ada.orgId))
  const inTime = row?.this_minute.finished === 4
  // A minute may have begun meanwhile.
  const [now, before] = inTime ? [1, 10] : [0, 1]
  assert.deepEqual(row?.this_minute, { submitted: 5 * now, finished: 4 * now })
  assert.deepEqual(row?.last_minute, { submitted: 5 * before, finished: 4 * before })
})

test('buckets have no gaps, and the last one is the present', async () => {
  await seedJobs(database.run, ada, [newJob()])
  await rollUpEverything()
  const six = { span: 3600, seconds: 21_600, count: 120 } as const
  for (const buckets of [DAY, six, { span: 60, seconds: 60, count: 60 } as const]) {
    const rows = await database.run(getThroughput(ada.orgId, buckets))
    assert.equal(rows.length, buckets.count)
    const [first, last] = [Date.parse(rows[0]?.at ?? ''), Date.parse(rows.at(-1)?.at ?? '')]
    assert.equal(last - first, (buckets.count - 1) * buckets.seconds * 1_000)
    assert.ok(last <= Date.now() && last > Date.now() - 1_000 * buckets.seconds - 1_000)
    assert.deepEqual(
      rows.map(({ submitted }) => submitted),
      [...Array.from({ length: buckets.count - 1 }, () => 0), 1],
    )
  }
})

test('what is too old goes, and the number of slots stays known', async () => {
  await database.sql(
    `insert into job_rollups (org_id, span, at)
    select $1, span, date_bin(span * interval '1 second', now() - age, 'epoch')
    from (values (60), (3600)) s (span), (values (interval '1 hour'), (interval '2 days'), (interval '40 days')) a (age)`,
    [ada.orgId],
  )
  await database.sql(
    `insert into slot_changes (at, slots) values (now() - interval '50 days', 5), (now() - interval '40 days', 10)`,
  )
  const [first] = await database.run(deleteExpired('job_rollups', { term, days: 30, limit: 1 }))
  assert.equal(first?.deleted, 1)
  await database.run(deleteExpired('job_rollups', { term, days: 30, limit: 10 }))
  await database.run(deleteStale(term, 30))
  const [left] = await database.sql(
    `select count(*) filter (where span = 60)::int as minutes, count(*) filter (where span = 3600)::int as hours from job_rollups`,
  )
  assert.deepEqual(left, { minutes: 1, hours: 2 })
  assert.deepEqual(await database.sql('select slots from slot_changes'), [{ slots: 10 }])
})
