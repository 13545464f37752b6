import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { SubmittedJob } from '../../db/queue/submit.ts'
import { nextPlace, rescoreJobs, SWEEP_START, takeMovedSeries } from '../../db/queue/upkeep.ts'
import { sampleOf } from '../../db/rules/estimate.ts'
import { priorityScore, rankTerms } from '../../db/rules/priority.ts'
import {
  DEFAULT_ESTIMATE,
  type Estimate,
  foldSample,
  MOST_LOG,
  P90_DEVIATIONS,
} from '../../functions/prediction/estimate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { foldEnds, type SeriesEstimate } from '../support/estimates.ts'
import {
  claim,
  clearJobs,
  completed,
  end,
  exchange,
  failed,
  lead,
  newJob,
  retrying,
  seedJobs,
  seedTenant,
  submitAll,
  type Tenant,
  timedOut,
} from '../support/jobs.ts'

let database: TestDatabase
let tenant: Tenant
let term: string

before(async () => {
  database = await createTestDatabase()
  tenant = await seedTenant(database.run)
})
after(() => database.drop())
beforeEach(async () => {
  await clearJobs(database.sql)
  term = await lead(database.run)
})

const submit = async (...overrides: Parameters<typeof newJob>[0][]): Promise<SubmittedJob[]> =>
  (await submitAll(database.run, [{ ...tenant, jobs: overrides.map(newJob) }])) as SubmittedJob[]
/** Runs jobs of one name, which end together; some of them by their timeout. */
const runTogether = async (name: string, runtimesMs: number[], timeoutsMs: number[] = []): Promise<void> => {
  const runtimes = [...runtimesMs, ...timeoutsMs]
  await submit(...runtimes.map(() => ({ name })))
  const claimed = await claim(database.run, 'worker-1', runtimes.length)
  const ends = claimed.map((job, n) =>
    n < runtimesMs.length ? completed(job, null, runtimes[n]) : timedOut(job, runtimes[n] ?? 0),
  )
  await end(database.run, ...ends)
  await database.sql('delete from waiting_jobs')
}
const estimateOf = async (name: string): Promise<SeriesEstimate> => {
  const [row] = await database.sql<{
    runs: string
    mean_log: number
    deviation_log: number
    drift_log: number
  }>('select runs, mean_log, deviation_log, drift_log from series where name = $1', [name])
  assert.ok(row)
  return {
    runs: Number(row.runs),
    meanLog: row.mean_log,
    deviationLog: row.deviation_log,
    driftLog: row.drift_log,
  }
}
/** What the learner stores of a type; the empty type stands for all of them. */
const learn = (type: string, { meanMs, medianMs }: { meanMs: number; medianMs: number }) =>
  database.sql(
    `insert into type_estimates (type, runs, mean_log, deviation_log, median_log)
    values ($1, 3, ln($2::double precision), 0.3, ln($3::double precision))`,
    [type, meanMs, medianMs],
  )
const near = (actual: number, expected: number, what: string) =>
  assert.ok(
    Math.abs(actual - expected) < 1e-9 * Math.max(1, Math.abs(expected)),
    `${what}: ${actual} is not ${expected}`,
  )

/** Seeded, so that a failure can be looked at again. */
const randomSource = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
  return seed / 2 ** 31
}

/** As precise as runtimes are sent. */
const toMicroseconds = (ms: number): number => Math.round(ms * 1000) / 1000

test('the estimate in SQL is the one in TypeScript, over random groups of runtimes', async () => {
  const random = randomSource(7)
  let expected: SeriesEstimate = { ...DEFAULT_ESTIMATE, driftLog: 0 }
  for (let n = 0; n < 60; n++) {
    const size = 1 + Math.floor(random() * random() * 30)
    // Mostly alike, now and then wild, sometimes nothing at all.
    const runtimes = Array.from({ length: size }, () =>
      toMicroseconds(random() < 0.1 ? random() * 1e6 : 100 * Math.exp(random())),
    )
    if (n % 9 === 8) runtimes[0] = 0
    // Alone, and far below or above the mean: both ends of the clip.
    if (n % 7 === 3) runtimes.splice(0, size, n % 2 === 0 ? 0.2 : 1e7)
    // And some that were cut off: beside others or alone, below the mean or above.
    const timeouts = n % 3 === 1 ? [90, toMicroseconds(5_000 * random()), 150].slice(0, 1 + (n % 2) * 2) : []
    if (n % 6 === 4) runtimes.length = 0
    await runTogether('random', runtimes, timeouts)
    expected = foldEnds(
      expected,
      sampleOf(runtimes),
      timeouts.map((ms) => Math.log(ms)),
    )
    const actual = await estimateOf('random')
    assert.equal(actual.runs, expected.runs)
    near(actual.meanLog, expected.meanLog, `mean after group ${n}`)
    near(actual.deviationLog, expected.deviationLog, `deviation after group ${n}`)
    near(actual.driftLog, expected.driftLog, `drift after group ${n}`)
  }
})

test('executions are recorded while the estimate decays towards zero', async () => {
  await submit({ name: 'fast' })
  for (const tiny of ['5e-324', '-5e-324', '1e-300']) {
    await database.sql(
      `update series set runs = 9, mean_log = $1::double precision, deviation_log = 0.01, drift_log = $1::double precision`,
      [tiny],
    )
    await runTogether('fast', [0], [0])
    const { meanLog, driftLog } = await estimateOf('fast')
    assert.deepEqual([meanLog, driftLog], [0, 0])
  }
})

test('a group of completions that is recorded as a whole teaches the same as one that is looked up', async () => {
  const whole = async (name: string, leaseJobs: boolean) => {
    for (const ms of [100, 300, 200]) {
      await submit({ name })
      const [job] = await claim(database.run)
      assert.ok(job)
      const ended = [completed(job, null, ms)]
      await exchange(database.run, { ended, closed: [job.token], ...(leaseJobs && { leaseJobs: 1 }) })
    }
    return estimateOf(name)
  }
  assert.deepEqual(await whole('whole', true), await whole('looked up', false))
})

test('groups of several series end in one statement, each for itself', async () => {
  await submit({ name: 'a' }, { name: 'b' }, { name: 'b' })
  const claimed = await claim(database.run)
  await end(database.run, ...claimed.map((job) => completed(job, null, job.name === 'a' ? 100 : 5_000)))
  near((await estimateOf('a')).meanLog, Math.log(100), 'a')
  assert.deepEqual([(await estimateOf('b')).runs, (await estimateOf('a')).runs], [2, 1])
})

test('workers that end jobs of one series at the same time lose none', async () => {
  await submit(...Array.from({ length: 80 }, () => ({ name: 'shared' })))
  const batches = await Promise.all(
    Array.from({ length: 8 }, (_, n) => claim(database.run, `worker-${n}`, 10)),
  )
  await Promise.all(
    batches.flatMap((batch) =>
      [batch.slice(0, 5), batch.slice(5)].map((half) =>
        end(database.run, ...half.map((job) => completed(job, null, 100))),
      ),
    ),
  )
  const estimate = await estimateOf('shared')
  assert.equal(estimate.runs, 80)
  near(estimate.meanLog, Math.log(100), 'mean')
})

test('failed attempts teach nothing', async () => {
  await submit({ name: 'x' }, { name: 'x' })
  const [one, two] = await claim(database.run)
  assert.ok(one && two)
  await end(database.run, failed(one), retrying(two))
  const [series] = await database.sql('select runs::int, mean_log from series')
  assert.deepEqual(series, { runs: 0, mean_log: null })
})

test('a timeout is a lower bound: it never makes a series look faster, and teaches a new one nothing', async () => {
  await runTogether('s', [], [1_000])
  const [series] = await database.sql('select runs::int, mean_log, deviation_log, moved from series')
  assert.deepEqual(series, { runs: 0, mean_log: null, deviation_log: null, moved: false })
  await runTogether('s', [1_000, 1_000])
  const known = await estimateOf('s')
  await runTogether('s', [], [50])
  const after = await estimateOf('s')
  assert.deepEqual([after.meanLog, after.deviationLog], [known.meanLog, known.deviationLog])
  for (let n = 0; n < 10; n++) await runTogether('s', [], [20_000])
  assert.ok((await estimateOf('s')).meanLog > Math.log(5_000), 'what is always cut off at 20 s is slow')
})

test('drift tells that a series is getting slower, and that it has settled', () => {
  let series: SeriesEstimate = { runs: 100, meanLog: Math.log(100), deviationLog: 0.1, driftLog: 0 }
  for (let n = 0; n < 5; n++) series = foldEnds(series, sampleOf([130]), [])
  assert.ok(series.driftLog > 0.1, `${series.driftLog}`)
  for (let n = 0; n < 60; n++) series = foldEnds(series, sampleOf([130]), [])
  assert.ok(Math.abs(series.driftLog) < 0.01, `${series.driftLog}`)
  const together = foldEnds(
    { ...series, driftLog: 1 },
    { runs: 3, meanLog: series.meanLog, spreadLog: 0 },
    [],
  )
  near(together.driftLog, 0.8 ** 3, 'three at once weigh as much as three')
})

test('one wild execution hardly moves an estimate, a lasting change does within about ten', () => {
  let estimate: Estimate = { runs: 100, meanLog: Math.log(100), deviationLog: 0.1 }
  assert.ok(Math.exp(foldSample(estimate, sampleOf([1e9])).meanLog) < 105)
  for (let n = 0; n < 15; n++) estimate = foldSample(estimate, sampleOf([400]))
  assert.ok(Math.exp(estimate.meanLog) > 250, `${Math.exp(estimate.meanLog)}`)
})

test('a prediction comes from the series, else from its type, else from the default', async () => {
  const [first] = await submit({ name: 'new' })
  assert.deepEqual(
    [first?.prediction_source, Math.round(first?.predicted_ms ?? 0), first?.model_version],
    ['default', 1_000, null],
  )
  near(
    first?.predicted_p90_ms ?? 0,
    Math.exp(DEFAULT_ESTIMATE.meanLog + P90_DEVIATIONS * DEFAULT_ESTIMATE.deviationLog),
    'p90',
  )
  await claim(database.run)

  await runTogether('known', [200, 200, 200])
  const [known] = await submit({ name: 'known' })
  assert.deepEqual([known?.prediction_source, Math.round(known?.predicted_ms ?? 0)], ['series', 200])
  assert.ok(known && known.predicted_p90_ms > known.predicted_ms)

  const [before] = await submit({ name: 'sibling' })
  assert.equal(before?.prediction_source, 'default', 'the learner does not know the type yet')
  await learn('test', { meanMs: 200, medianMs: 200 })
  const [sibling] = await submit({ name: 'another sibling' })
  assert.deepEqual([sibling?.prediction_source, Math.round(sibling?.predicted_ms ?? 0)], ['type', 200])
  const [stranger] = await submit({ type: 'other', name: 'x' })
  assert.deepEqual(
    [stranger?.prediction_source, Math.round(stranger?.predicted_ms ?? 0)],
    ['default', 1_000],
    'other types say nothing about a type that never ran',
  )
})

test('the database estimates with the same constants as the rules', async () => {
  const [start] = await database.sql('select * from smartqueue.starting_estimate($1, $2)', [
    tenant.orgId,
    'never ran',
  ])
  const { meanLog, deviationLog } = DEFAULT_ESTIMATE
  assert.deepEqual(start, { source: 'default', mean_log: meanLog, deviation_log: deviationLog })

  const submitWith = async (name: string, estimate: { mean: number; deviation: number }) => {
    await submit({ name })
    await database.sql('update smartqueue.series set mean_log = $2, deviation_log = $3 where name = $1', [
      name,
      estimate.mean,
      estimate.deviation,
    ])
    const [job] = await submit({ name })
    return [Math.log(job?.predicted_ms ?? 0), Math.log(job?.predicted_p90_ms ?? 0)] as const
  }
  const [usual, usualP90] = await submitWith('usual', { mean: 5, deviation: 0.5 })
  near(usual, 5, 'the mean')
  near(usualP90, 5 + P90_DEVIATIONS * 0.5, 'p90')
  const [long, longP90] = await submitWith('corrupt and long', { mean: 1e300, deviation: 1e300 })
  near(long, MOST_LOG, 'the most')
  near(longP90, MOST_LOG, 'the most of p90')
  const [short] = await submitWith('corrupt and short', { mean: -1e300, deviation: 0 })
  near(short, -MOST_LOG, 'the least')
})

test('the median that the learner knows of a type is what its new series start from', async () => {
  await learn('test', { meanMs: 100, medianMs: 5_000 })
  const [job] = await submit({ name: 'unknown' })
  near(job?.predicted_ms ?? 0, 5_000, 'the median')
})

test('a deadline that cannot be met is said so at submission and in the events', async () => {
  const at = (s: number) => new Date(Date.now() + s * 1000).toISOString()
  const [risky, safe, none] = await submit({ deadline: at(2) }, { deadline: at(3_600) }, {})
  assert.deepEqual(
    [risky?.deadline_at_risk, safe?.deadline_at_risk, none?.deadline_at_risk],
    [true, false, false],
  )
  const events = await database.sql('select reason from job_events order by id, position')
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ['deadline_at_risk', null, null],
  )
})

test('a deadline is judged from the time a job may run, also of one that waits for another', async () => {
  const at = (s: number) => new Date(Date.now() + s * 1000).toISOString()
  const [parent] = await submit({})
  const submitted = await submit(
    { deadline: at(3_600), run_at: at(1_800) },
    { deadline: at(3_600), run_at: at(3_599) },
    { deadline: at(2), depends_on: [parent?.id ?? ''] },
  )
  assert.deepEqual(
    submitted.map(({ status, deadline_at_risk }) => [status, deadline_at_risk]),
    [
      ['pending', false],
      ['pending', true],
      ['blocked', true],
    ],
  )
  const events = await database.sql(
    `select state, reason from job_events where state <> 'ready' order by id, position`,
  )
  assert.deepEqual(events, [
    { state: 'pending', reason: null },
    { state: 'pending', reason: 'deadline_at_risk' },
    { state: 'blocked', reason: 'deadline_at_risk' },
  ])
})

test('when an estimate moves, queued jobs of the series move to their new lane', async () => {
  await runTogether('moving', [1_000])
  await database.run(takeMovedSeries(term, 10))
  assert.deepEqual(await database.run(takeMovedSeries(term, 10)), [], 'taken once')
  await seedJobs(database.run, tenant, [
    newJob({ name: 'standing' }),
    newJob({ name: 'moving' }),
    newJob({ name: 'moving', priority: 'low' }),
  ])
  // The next thirty executions turn out to be a hundred times as short.
  const [series] = await database.sql<{ id: string }>(
    `update series set mean_log = ln(10), moved = true where name = 'moving' returning id`,
  )
  const seriesIds = (await database.run(takeMovedSeries(term, 10))).map(({ id }) => id)
  assert.deepEqual(seriesIds, [series?.id])
  const [step] = await database.run(rescoreJobs({ term, seriesIds, after: SWEEP_START, limit: 100 }))
  assert.deepEqual([step?.looked_at, step?.moved], [3, 2])
  const lanes = await database.sql<{ lane: number }>('select lane from ready_jobs order by lane')
  assert.deepEqual(
    lanes.map(({ lane }) => lane),
    [23, 43, 69],
  )
  assert.deepEqual(
    (await claim(database.run)).map(({ name }) => name),
    ['moving', 'moving', 'standing'],
  )
})

test('a series whose estimate changed by half has moved, one that wobbles has not', async () => {
  const moved = async () => (await database.sql(`select moved from series where name = 's'`))[0]?.moved
  await runTogether('s', [1_000])
  // Series are only looked at while there is an order to mend.
  await submit({ type: 'other' }, { type: 'other', priority: 'low' })
  assert.equal(await moved(), true, 'what was never scored')
  await database.run(takeMovedSeries(term, 10))
  await runTogether('s', [1_100, 900])
  assert.equal(await moved(), false)
  for (let n = 0; n < 6; n++) await runTogether('s', [10_000])
  assert.equal(await moved(), true)
})

test('while all queued jobs stand in one lane nothing is scored again', async () => {
  await runTogether('s', [1_000])
  await submit({ name: 's' }, { name: 's' })
  assert.deepEqual(await database.run(takeMovedSeries(term, 10)), [])
  await submit({ name: 's', priority: 'low' })
  assert.equal((await database.run(takeMovedSeries(term, 10))).length, 1)
})

test('of many series that have moved some are taken at a time', async () => {
  for (const name of ['a', 'b', 'c']) await runTogether(name, [1_000])
  await submit({ type: 'other' }, { type: 'other', priority: 'low' })
  const take = async () => (await database.run(takeMovedSeries(term, 2))).length
  assert.deepEqual([await take(), await take(), await take()], [2, 1, 0])
})

test('re-scoring goes on from where it stopped', async () => {
  await submit(...Array.from({ length: 5 }, () => ({ name: 'x' })))
  await database.sql('update series set mean_log = ln(10)')
  const seriesIds = (await database.sql<{ id: string }>('select id from series')).map(({ id }) => id)
  let after = SWEEP_START
  const moved: number[] = []
  for (let n = 0; n < 3; n++) {
    const [step] = await database.run(rescoreJobs({ term, seriesIds, after, limit: 2 }))
    moved.push(step?.moved ?? 0)
    after = nextPlace(step, 2) ?? after
  }
  assert.deepEqual(moved, [2, 2, 1])
})

test('the rank is ln(p50) less the weight of the class, blended with a timeout', () => {
  const rank = (priority: Parameters<typeof rankTerms>[0], timeout: number | null, ms: number) => {
    const { rank_base, rank_slope } = rankTerms(priority, timeout)
    return rank_base + rank_slope * Math.log(ms)
  }
  near(rank('normal', null, 500), Math.log(500), 'normal')
  near(rank('critical', null, 500), Math.log(500 / 64), 'critical')
  near(rank('high', null, 500), Math.log(500 / 8), 'high')
  near(rank('low', null, 500), Math.log(500 * 8), 'low')
  near(rank('normal', 60, 500), Math.log(500 ** 0.7 * 60_000 ** 0.3), 'timeout')
  near(priorityScore(rank('normal', null, 1_000)), 0.5, 'score')
  assert.ok(priorityScore(rank('critical', null, 1_000)) > priorityScore(rank('high', null, 1_000)))
})

test('the lane in the queue is the rank that submission answers', async () => {
  const submitted = await submit({ priority: 'high', timeout_seconds: 30 }, { priority: 'low' })
  const rows = await database.sql<{ lane: number }>('select lane from ready_jobs order by key')
  assert.deepEqual(
    rows.map(({ lane }) => lane),
    submitted.map(({ rank }) => Math.floor(rank * 10)),
  )
})
