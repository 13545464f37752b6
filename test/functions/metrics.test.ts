import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sampleDepths } from '../../db/queries/analytics-depth.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import type { MetricsRow } from '../../db/queries/metrics.ts'
import { reportWorker } from '../../db/queries/workers.ts'
import type { Query, Run } from '../../db/query.ts'
import { createEdgeTotals } from '../../functions/metrics/edge-totals.ts'
import { createMetrics } from '../../functions/metrics/metrics.ts'
import { histogramOf, renderMetrics } from '../../functions/metrics/prometheus-text.ts'
import { registerUser, type TestAccount } from '../support/accounts.ts'
import { rollUpAll } from '../support/analytics.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Edge, startEdge } from '../support/edge.ts'
import { claim, completed, end, lead, newJob, seedJobs } from '../support/jobs.ts'
import {
  documentedMetrics,
  lintMetrics,
  readMetrics,
  servedMetrics,
  WITH_PROMTOOL,
} from '../support/metrics.ts'
import { assertProblem } from '../support/problem.ts'
import { waitFor } from '../support/wait-for.ts'
import { send, webhooksOf } from '../support/webhooks.ts'

const TOKEN = 'a-token-for-operators'

let database: TestDatabase
let edge: Edge
let ada: TestAccount
before(async () => {
  database = await createTestDatabase()
  await database.run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  edge = await startEdge({ databaseUrl: database.url, bindings: { OPERATIONS_TOKEN: TOKEN } })
  ada = await registerUser(edge)
})
after(async () => {
  await edge.stop()
  await database.drop()
})

const scrape = async (): Promise<string> => {
  const answer = await edge.request('GET', '/metrics', { token: TOKEN })
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  return answer.text
}

/** The database is asked every five seconds. */
const until = (what: string, isSo: (values: ReadonlyMap<string, number>) => boolean): Promise<string> =>
  waitFor(what, async () => {
    const text = await scrape()
    return isSo(readMetrics(text).values) && text
  })

test('where a token is bound metrics need it', async () => {
  for (const headers of [{}, { authorization: 'Bearer another' }, { authorization: `Basic ${TOKEN}` }]) {
    const answer = await edge.request('GET', '/metrics', { headers: headers as Record<string, string> })
    assertProblem(answer, 401, 'unauthenticated')
    assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
  }
  assertProblem(await edge.request('GET', '/metrics', { token: ada.token }), 401, 'unauthenticated')
  await scrape()
})

test('a system in which nothing has happened has metrics too', async () => {
  const text = await scrape()
  const { values } = readMetrics(text)
  assert.equal(values.get('smartqueue_jobs_submitted_total'), 0)
  assert.equal(values.get('smartqueue_backlog_drain_seconds'), 0)
  assert.equal(values.get('smartqueue_webhook_deliveries_total{outcome="accepted"}'), 0)
  assert.equal(values.get('smartqueue_load_forecast_usable'), 0)
  assert.equal(values.has('smartqueue_prediction_mape'), false)
})

test('metrics tell what is known, all that is documented and nothing else, and of no organisation', async () => {
  const { run, sql } = database
  const term = await lead(run)
  const worker = { workerId: 'w', hostname: 'h', status: 'online' as const, types: ['test'], slots: 4 }
  await run(reportWorker({ ...worker, cpuUnits: 4, memoryMb: 64, running: 0, jobsProcessed: 0 }))
  const [slow = ''] = await seedJobs(run, ada, [newJob({ priority: 'high', name: 'slow one' })])
  await claim(run, 'w', 1)
  const [expired = ''] = await seedJobs(run, ada, [newJob({ priority: 'high' })])
  await claim(run, 'w', 1)
  await sql(`update jobs set predicted_p99_ms = 1 where id = $1`, [slow])
  await sql(`update leases set claimed_at = now() - interval '1 minute'`)
  await sql(`update leases set expires_at = now() where $1 = any (job_ids)`, [expired])
  await seedJobs(run, ada, [newJob(), newJob({ priority: 'low' })])
  const [quick] = await claim(run, 'w', 1)
  assert.ok(quick)
  await end(run, completed(quick, null, 100))
  await sql(`insert into models (version, status, weights, trained_on) values (2, 'champion', '\\x00', 2000)`)
  await sql(
    `update learning_state set learned = 2500, by_source = '{"lstm": 400, "series": 100}',
      accuracy = '{"errors": {"lstm": 0.21, "series": 0.3}, "coverage": 0.9, "mape": 25, "drift": 0.125, "executions": 9}'`,
  )
  await sql(`insert into prediction_faults (reason, faults) values ('timeout', 7), ('made up', 1)`)
  await sql(`insert into load_forecasts (from_at, p50_ms, p90_ms, evaluation)
    values (now(), '{1}', '{2}', '{"errors": {"lstm": 0.5, "last_hour": 0.75, "seasonal": 1, "other": 3}}')`)
  await sql(`insert into autoscale_snapshots (queued_seconds, running_seconds, arriving_per_second,
      scheduled_seconds, workers, slots_per_worker, drain_goal_seconds, lead_seconds, min_workers, max_workers)
    values (1000, 20, 0.5, 0, 1, 10, 60, 75, 1, 5)`)
  await run(sampleDepths(term, 15))
  await rollUpAll(run, sql, term)
  const text = await until('the counts', (values) => {
    const backlog = values.get('smartqueue_predicted_backlog_seconds') ?? 0
    return values.get('smartqueue_jobs_submitted_total') === 4 && backlog > 0
  })
  assert.deepEqual(servedMetrics(text), documentedMetrics('The whole system'))
  const lines = text.trimEnd().split('\n')
  for (const line of [
    'smartqueue_jobs_completed_total 1',
    'smartqueue_jobs_in_flight 2',
    'smartqueue_slow_jobs 1',
    'smartqueue_waiting_orgs 1',
    'smartqueue_org_share_shortfall_seconds 0',
    'smartqueue_expired_leases 1',
    'smartqueue_queue_depth{class="high",status="running"} 2',
    'smartqueue_queue_depth{class="normal",status="ready"} 0',
    'smartqueue_job_execution_seconds_bucket{le="0.064"} 0',
    'smartqueue_job_execution_seconds_bucket{le="0.128"} 1',
    'smartqueue_job_execution_seconds_sum 0.1',
    'smartqueue_job_execution_seconds_count 1',
    'smartqueue_job_wait_seconds_bucket{le="+Inf"} 1',
    'smartqueue_prediction_mape 0.25',
    'smartqueue_prediction_p90_coverage 0.9',
    'smartqueue_prediction_drift 0.125',
    'smartqueue_prediction_mean_abs_log_error{predictor="lstm"} 0.21',
    'smartqueue_predictions_total{source="lstm"} 400',
    'smartqueue_predictions_total{source="default"} 0',
    'smartqueue_prediction_faults_total{reason="timeout"} 7',
    'smartqueue_executions_learned_total 2500',
    '# TYPE smartqueue_executions_learned_total counter',
    'smartqueue_model_version 2',
    'smartqueue_workers{status="online"} 1',
    'smartqueue_slots 4',
    `smartqueue_leader_term ${term}`,
    'smartqueue_autoscale_backlog_seconds 1020',
    'smartqueue_autoscale_desired_workers 3',
    'smartqueue_autoscale_max_workers 5',
    'smartqueue_load_forecast_usable 1',
    'smartqueue_load_forecast_error{forecast="seasonal"} 1',
  ]) {
    assert.ok(lines.includes(line), `${line}\n${text}`)
  }
  const { values } = readMetrics(text)
  assert.ok((values.get('smartqueue_backlog_drain_seconds') ?? 0) > 0)
  assert.ok((values.get('smartqueue_leader_silent_seconds') ?? -1) >= 0)
  for (const secret of [ada.orgId, ada.userId, slow, 'slow one', 'made up']) assert.ok(!text.includes(secret))
})

test('promtool check metrics passes on those of the functions', WITH_PROMTOOL, async () => {
  assert.equal(lintMetrics(await scrape()), '')
})

test('repeated submissions and deliveries are counted by what became of them', async () => {
  const json = { name: 'once', type: 'test', payload: {} }
  for (let n = 0; n < 3; n++) {
    const headers = { 'idempotency-key': 'the same' }
    const { status } = await edge.request('POST', '/jobs', { token: ada.token, json, headers })
    assert.equal(status, n === 0 ? 201 : 200)
  }
  const jobs = ['a', 'b'].map((key) => ({ ...json, idempotency_key: key }))
  await edge.request('POST', '/jobs/batch', { token: ada.token, json: { jobs: jobs.slice(0, 1) } })
  await edge.request('POST', '/jobs/batch', { token: ada.token, json: { jobs } })

  const hooks = webhooksOf(edge, ada)
  const source = await hooks.make({ filter: { path: '$.type', eq: 'wanted' } })
  await send(edge, source, { type: 'wanted' }, { id: 'first' })
  await send(edge, source, { type: 'wanted' }, { id: 'first' })
  await send(edge, source, { type: 'other' })
  await send(edge, { ...source, secret: 'not the secret' }, { type: 'wanted' })
  const strict = await hooks.make({ template: { name: 'x', type: 'unheard of', payload: {} } })
  await send(edge, strict, {})

  const outcomes = ['accepted', 'duplicate', 'filtered', 'rejected', 'quarantined']
  await until('what the edge has seen', (values) => {
    const counted = outcomes.map((outcome) =>
      values.get(`smartqueue_webhook_deliveries_total{outcome="${outcome}"}`),
    )
    return counted.join() === '1,1,1,1,1' && values.get('smartqueue_jobs_duplicate_total') === 3
  })
})

test('counts of an isolate are written together, and again after a failure', async () => {
  const written: string[] = []
  const pauses: (() => void)[] = []
  const held: Promise<unknown>[] = []
  let fails = false
  const run: Run = async <Row>({ values }: Query<Row>): Promise<Row[]> => {
    if (fails) throw new Error('away')
    written.push(JSON.stringify(values))
    return []
  }
  const pause = () => new Promise<void>((resolve) => pauses.push(resolve))
  let nowMs = 0
  const totals = createEdgeTotals(run, () => nowMs, pause)
  const hold = (work: Promise<unknown>): void => void held.push(work)
  const rest = async (): Promise<void> => {
    for (const resolve of pauses.splice(0)) resolve()
    await Promise.all(held.splice(0))
  }
  totals.duplicates(0, hold)
  assert.equal(held.length, 0, 'nothing to count')
  for (let n = 0; n < 3; n++) totals.delivery('accepted', hold)
  totals.duplicates(2, hold)
  assert.equal(held.length, 1, 'one write is on its way')
  fails = true
  await rest()
  assert.deepEqual(written, [])
  fails = false
  totals.delivery('rejected', hold)
  await rest()
  assert.deepEqual(written, [
    JSON.stringify([
      ['webhook_deliveries', 'duplicates', 'webhook_deliveries'],
      ['accepted', '', 'rejected'],
      [3, 2, 1],
    ]),
  ])
  totals.delivery('filtered', hold)
  // The request that was to write it is gone, and its timer with it.
  pauses.length = 0
  held.length = 0
  nowMs += 5_000
  totals.delivery('filtered', hold)
  await rest()
  assert.equal(written.at(-1), JSON.stringify([['webhook_deliveries'], ['filtered'], [2]]))
})

test('a histogram counts what is below each bound, and labels are escaped', () => {
  // Below 1 ms, from 1 ms on, and beyond all bounds.
  const counts = [1, 2, ...Array<number>(118).fill(0), 4, 8]
  const samples = histogramOf(counts, 5_000)
  const read = (le: string) => samples.find(({ labels }) => labels?.le === le)?.value
  assert.deepEqual([read('0.001'), read('0.002'), read('4194.304'), read('+Inf')], [1, 3, 3, 15])
  assert.deepEqual(samples.slice(-2), [
    { suffix: '_sum', value: 5 },
    { suffix: '_count', value: 15 },
  ])
  const labels = { said: 'a "quoted" \\ one\n' }
  const text = renderMetrics([
    { name: 'm', help: 'Of a test.', type: 'gauge', samples: [{ labels, value: Infinity }] },
    { name: 'none', help: 'Left out.', type: 'gauge', samples: [] },
  ])
  assert.equal(text, '# HELP m Of a test.\n# TYPE m gauge\nm{said="a \\"quoted\\" \\\\ one\\n"} +Inf\n')
})

const NOTHING: MetricsRow = {
  ...{ totals: null, edge: [], queue: null, leader: null, forecast: null },
  ...{
    in_flight: 0,
    expired_leases: 0,
    slow_jobs: 0,
    sums: { backlog_ms: 0, waiting_orgs: 0, shortfall_seconds: 0 },
    workers: {},
    slots: 0,
  },
  learning: { learned: 0, by_source: {}, accuracy: {}, version: 0, faults: {} },
}

test('who asks while the database is asked gets the text before, unless counters of another isolate may be newer', async () => {
  let nowMs = 0
  const answers: ((error?: Error) => void)[] = []
  const transaction = () =>
    new Promise<never>((resolve, reject) => {
      const rows = [[{ ...NOTHING, in_flight: answers.length }], []]
      answers.push((error) => (error ? reject(error) : resolve(rows as never)))
    })
  const metrics = createMetrics({ transaction }, () => nowMs)
  const inFlight = async (text: Promise<string>) =>
    readMetrics(await text).values.get('smartqueue_jobs_in_flight')
  const first = metrics.read()
  answers[0]?.()
  assert.equal(await inFlight(first), 0)
  nowMs = 4_999
  assert.equal(await inFlight(metrics.read()), 0)
  nowMs = 5_000
  const second = metrics.read()
  assert.equal(await inFlight(metrics.read()), 0, 'meanwhile')
  answers[1]?.()
  assert.equal(await inFlight(second), 1)

  nowMs = 60_000
  const [third, fourth] = [metrics.read(), metrics.read()]
  for (const answer of answers.slice(2)) answer()
  assert.deepEqual([await inFlight(third), await inFlight(fourth)], [2, 3], 'both ask')
  nowMs = 70_000
  const failing = metrics.read()
  answers[4]?.(new Error('away'))
  await assert.rejects(failing, /away/)
  const after = metrics.read()
  answers[5]?.()
  assert.equal(await inFlight(after), 5)
})
