import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sampleDepths } from '../../db/queries/analytics-depth.ts'
import { measureStretch, storeGains } from '../../db/queries/analytics-gain.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { reportWorker } from '../../db/queries/workers.ts'
import { depthsAhead } from '../../functions/analytics/forecast.ts'
import { perMinute } from '../../functions/analytics/summary.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { rollUpAll } from '../support/analytics.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { COMPLETED, claimTypes, end, FAILED, jobInState } from '../support/job-in-state.ts'
import { lead, newJob, seedJobs } from '../support/jobs.ts'
import { assertProblem } from '../support/problem.ts'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
let bob: TestAccount
let term: string
before(async () => {
  database = await createTestDatabase()
  edge = await startEdge({ databaseUrl: database.url })
  ;[ada, bob] = await Promise.all([registerUser(edge), registerUser(edge)])
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const get = async (path: string, account = ada) => {
  const answer = await edge.request('GET', `/analytics/${path}`, { token: account.token })
  assert.equal(answer.status, 200, `${path}: ${answer.text}`)
  return answer.body
}

const EMPTY_PERIOD = {
  submitted: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  success_rate: null,
  wait_p50_ms: null,
  wait_p90_ms: null,
  runtime_mean_ms: null,
}

test('of an organisation without jobs all is nought or null', async () => {
  const { at, ...summary } = await get('summary')
  assert.ok(Math.abs(Date.parse(at) - Date.now()) < 5_000)
  assert.deepEqual(summary, {
    depth: { pending: 0, blocked: 0, ready: 0, running: 0, retrying: 0 },
    oldest_ready_seconds: null,
    last_hour: EMPTY_PERIOD,
    last_24h: EMPTY_PERIOD,
    throughput_per_minute: 0,
    submitted_per_minute: 0,
    backlog: { predicted_seconds: 0, slots: 0, drain_seconds: null },
    workers: { online: 0, draining: 0, slots: 0, running: 0, wanted: null },
    forecast: { in_seconds: 900, depth: null, work_seconds: null },
    paused: false,
  })
  const throughput = await get('throughput')
  assert.deepEqual([throughput.range, throughput.bucket_seconds, throughput.items.length], ['24h', 3600, 24])
  assert.deepEqual(await get('prediction-accuracy'), {
    range: '24h',
    bucket_seconds: 3600,
    points: [],
    overall: { jobs: 0, mean_abs_log_error: null, median_ape: null, within_p50: null, within_p90: null },
    calibration: [
      { predicted: 0.5, actual: null },
      { predicted: 0.9, actual: null },
    ],
    samples: [],
  })
  const depth = await get('queue-depth')
  assert.deepEqual([depth.range, depth.items.length, depth.forecast], ['1h', 60, []])
  const { method, ...gain } = await get('scheduling-gain')
  assert.match(method, /run again/)
  assert.deepEqual(gain, {
    range: '24h',
    jobs: 0,
    mean_wait_ms: null,
    fifo_mean_wait_ms: null,
    gain: null,
    max_wait_ms: null,
    fifo_max_wait_ms: null,
    points: [],
  })
})

test('throughput is that of the last 60 seconds, also in the first minute', () => {
  const [this_minute, last_minute] = [
    { submitted: 3, finished: 12 },
    { submitted: 0, finished: 60 },
  ]
  const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString()
  assert.equal(perMinute({ at: at(15), this_minute, last_minute }, 'finished'), 12 + 45)
  assert.equal(perMinute({ at: at(0), this_minute, last_minute }, 'finished'), 12 + 60)
  assert.equal(perMinute({ at: at(59), this_minute, last_minute }, 'submitted'), 3)
})

test('while the queue is paused, what runs ends and all else stays', () => {
  const load = { slots: 10, minutes: Array<number>(60).fill(2), same_hour: null, next_hour: null }
  const depth = { pending: 0, blocked: 0, ready: 100, running: 4, retrying: 0, oldest_ready_seconds: 1 }
  const outlook = (paused: boolean) => ({
    at: new Date().toISOString(),
    depth: { ...depth, predicted_ms: 104_000 },
    load: { ...load, paused, mean_ms: 1_000, waking: [], schedules: [] },
    queue: null,
  })
  const inTenMinutes = (paused: boolean) => Math.round(depthsAhead(outlook(paused), 10).at(-1)?.jobs ?? -1)
  assert.equal(inTenMinutes(true), 100 + 10 * 2)
  assert.equal(inTenMinutes(false), 0)
})

test('nobody leads at first, then elections are told, the newest first', async () => {
  const none = await edge.request('GET', '/analytics/scheduler-leader', { token: ada.token })
  assertProblem(none, 404, 'not-found')
  await lead(database.run, 'worker-a')
  term = await lead(database.run, 'worker-b')
  const leader = await get('scheduler-leader')
  assert.deepEqual([leader.worker_id, leader.term, leader.alive], ['worker-b', 2, true])
  assert.deepEqual(
    leader.elections.map((one: { term: number; worker_id: string }) => [one.term, one.worker_id]),
    [
      [2, 'worker-b'],
      [1, 'worker-a'],
    ],
  )
  await database.sql(`update scheduler_leader set last_seen = now() - interval '1 minute'`)
  assert.equal((await get('scheduler-leader')).alive, false)
})

test('what was done is told, and others see nothing of it', async () => {
  const { run, sql } = database
  await run(
    reportWorker({
      workerId: 'worker-1',
      hostname: 'here',
      status: 'online',
      types: ['test'],
      slots: 10,
      cpuUnits: 10,
      memoryMb: 1_000,
      running: 3,
      jobsProcessed: 0,
    }),
  )
  await seedJobs(
    run,
    ada,
    Array.from({ length: 10 }, (_, n) => newJob({ name: `job ${n % 2}` })),
  )
  await sql(`update jobs set created_at = created_at - interval '10 seconds'`)
  for (const [n, job] of (await claimTypes(run, ['test'])).entries()) {
    await end(run, job, n < 2 ? FAILED : COMPLETED, 1_000)
  }
  const states = ['pending', 'blocked', 'ready', 'running', 'retrying', 'cancelled'] as const
  for (const state of states) await jobInState(run, ada, state)
  await rollUpAll(run, sql, term)
  await run(sampleDepths(term, 15))
  // 1,200 s of predicted work, of which a worker gets 10 × 0.8 × 60 s done in time.
  await sql(`
    insert into autoscale_snapshots (
      queued_seconds, running_seconds, arriving_per_second, scheduled_seconds, workers, slots_per_worker,
      drain_goal_seconds, lead_seconds, min_workers, max_workers
    )
    values (1000, 200, 0, 0, 1, 10, 60, 75, 1, 5)`)

  const summary = await get('summary')
  assert.deepEqual(summary.depth, { pending: 2, blocked: 1, ready: 1, running: 1, retrying: 1 })
  assert.ok(summary.oldest_ready_seconds >= 0)
  assert.ok(summary.throughput_per_minute > 0 && summary.submitted_per_minute > 0, 'at once')
  const { wait_p50_ms, wait_p90_ms, ...period } = summary.last_hour
  // One more for each that came into its state, and the parent of the blocked one.
  assert.deepEqual(period, {
    submitted: 17,
    completed: 8,
    failed: 2,
    cancelled: 1,
    success_rate: 0.8,
    runtime_mean_ms: 1_000,
  })
  // They became ready ten seconds ago, and started a second before they ended.
  assert.ok(wait_p50_ms > 8_000 && wait_p50_ms < 12_000, `${wait_p50_ms}`)
  assert.ok(wait_p90_ms >= wait_p50_ms && wait_p90_ms < 12_000)
  assert.deepEqual(summary.last_24h, summary.last_hour)
  assert.deepEqual(summary.workers, { online: 1, draining: 0, slots: 10, running: 3, wanted: 3 })
  const { predicted_seconds, drain_seconds, slots } = summary.backlog
  assert.ok(predicted_seconds > 0)
  assert.equal(slots, 10)
  // Both are rounded to milliseconds, each by itself.
  assert.ok(
    Math.abs(drain_seconds - predicted_seconds / 10) <= 0.001,
    `${drain_seconds} of ${predicted_seconds}`,
  )
  assert.ok(summary.forecast.depth >= 0 && summary.forecast.work_seconds >= 0)

  for (const [range, seconds, count] of [
    ['1h', 60, 60],
    ['7d', 3600, 168],
    ['30d', 21_600, 120],
  ] as const) {
    const { items, bucket_seconds } = await get(`throughput?range=${range}`)
    assert.deepEqual([bucket_seconds, items.length], [seconds, count])
    const total = (key: string): number =>
      items.reduce((sum: number, item: Record<string, number>) => sum + (item[key] ?? 0), 0)
    assert.deepEqual(
      [total('submitted'), total('completed'), total('failed'), total('cancelled')],
      [17, 8, 2, 1],
    )
  }

  const accuracy = await get('prediction-accuracy?range=7d')
  assert.equal(accuracy.overall.jobs, 8)
  assert.equal(accuracy.samples.length, 8)
  const [sample] = accuracy.samples
  assert.deepEqual([sample.type, sample.actual_ms], ['test', 1_000])
  const error = Math.abs(Math.log(sample.actual_ms / sample.predicted_ms))
  assert.ok(Math.abs(accuracy.overall.mean_abs_log_error - error) < 1, `${error}`)
  assert.equal((await get('prediction-accuracy?type=test')).overall.jobs, 8)
  assert.equal((await get('prediction-accuracy?type=other')).overall.jobs, 0)

  const depth = await get('queue-depth?range=24h')
  assert.deepEqual([depth.bucket_seconds, depth.items.length, depth.forecast.length], [900, 96, 12])
  assert.ok(depth.items.at(-1).ready > 0)
  assert.ok(depth.forecast.every((one: Record<string, number>) => (one.depth_p90 ?? 0) >= (one.depth ?? 0)))

  const [stretch] = await run(measureStretch({ rows: 1, jobs: 1 }))
  assert.ok(stretch)
  const gains = { jobs: 4, wait_ms: 30_000, fifo_wait_ms: 120_000, max_wait_ms: 1, fifo_max_wait_ms: 2 }
  await run(
    storeGains(term, stretch.start, stretch.next, [{ org_id: ada.orgId, at_ms: Date.now(), ...gains }]),
  )
  const gain = await get('scheduling-gain?range=1h')
  assert.deepEqual([gain.mean_wait_ms, gain.fifo_mean_wait_ms, gain.gain], [7_500, 30_000, 0.75])
  assert.equal(gain.points.length, 1)

  const foreign = await get('summary', bob)
  assert.deepEqual([foreign.last_24h, foreign.depth.ready], [EMPTY_PERIOD, 0])
  assert.equal(foreign.workers.online, 1, 'workers are there for all')
  assert.equal((await get('prediction-accuracy', bob)).samples.length, 0)
  assert.equal((await get('scheduling-gain', bob)).jobs, 0)
  assert.ok((await get('queue-depth', bob)).items.every((one: { ready: number }) => one.ready === 0))
})

test('delayed jobs and ticks of schedules are foreseen', async () => {
  const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString()
  const delayed = Array.from({ length: 5 }, () => newJob({ run_at: inMinutes(10) }))
  await seedJobs(database.run, bob, delayed)
  await database.sql(`update jobs set predicted_ms = 3600000 where org_id = $1`, [bob.orgId])
  const json = { name: 's', cron: '* * * * *', job: { type: 'test', payload: {} } }
  const forecast = async () => (await get('queue-depth?range=1h', bob)).forecast
  const before = await forecast()
  assert.equal(before[5].depth, 0)
  assert.ok(before[11].depth > 4.5 && before[11].depth <= 5, `${before[11].depth}`)
  const made = await edge.request('POST', '/schedules', { token: bob.token, json })
  assert.equal(made.status, 201, made.text)
  // No run of it is known: a second each.
  assert.ok((await forecast())[5].predicted_seconds >= 0)
  await edge.request('POST', '/queue/pause', { token: bob.token, json: {} })
  const paused = await forecast()
  assert.ok(paused[20].depth >= 5 + 20 - 1, 'what comes while it is paused stays')
  assert.equal((await get('summary', bob)).paused, true)
})

test('a range that there is not is refused', async () => {
  for (const path of ['throughput?range=2d', 'queue-depth?range=30d', 'prediction-accuracy?type=']) {
    const answer = await edge.request('GET', `/analytics/${path}`, { token: ada.token })
    assert.equal(answer.status, 422, answer.text)
  }
  assertProblem(await edge.request('GET', '/analytics/summary'), 401, 'unauthenticated')
})
