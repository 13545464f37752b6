import pg from 'pg'
import { getQueueDepth, getSchedulingGain, getThroughput } from '../../db/queries/analytics.ts'
import { getPredictionAccuracy } from '../../db/queries/analytics-accuracy.ts'
import { sampleDepths } from '../../db/queries/analytics-depth.ts'
import { measureStretch, readCapacity, readStretch, storeGains } from '../../db/queries/analytics-gain.ts'
import { findUncounted, rollUp } from '../../db/queries/analytics-rollup.ts'
import { getSummary } from '../../db/queries/analytics-summary.ts'
import { getLeader } from '../../db/queries/registry.ts'
import { enter } from '../../db/queries/scope.ts'
import type { Query } from '../../db/query.ts'
import { weighOrder } from '../../worker-runtime/analytics/scheduling-gain.ts'
import { asLogin, type TestDatabase } from '../support/database.ts'
import { lead, seedTenant, type Tenant } from '../support/jobs.ts'
import { seedFinishedJobs, seedQueuedJobs } from './analytics-seed.ts'
import { withOwnPostgres } from './own-postgres.ts'
import { type BenchOptions, type BenchReport, percentile } from './report.ts'

/** What any tuning guide sets first. */
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '8GB' }

const FINISHED = 1_000_000
const QUICK_FINISHED = 50_000
const ROUNDS = 50
const PAGE = { groups: 300, jobs: 50_000 }
const STRETCH = { rows: 10_000, jobs: 10_000 }

type Timed = { what: string; cold_ms: number; p50_ms: number; max_ms: number }

/**
 * What analytics cost with a million finished jobs of one organisation and a tenth of that of another: how fast the leader
 * counts them, and how long each route's transaction takes, as the functions run it: entered, planned anew, under row-level
 * security. Cold is the first on a new connection.
 */
export const benchAnalytics = ({ say, quick }: BenchOptions): Promise<BenchReport> =>
  withOwnPostgres(async (database) => {
    const finished = quick ? QUICK_FINISHED : FINISHED
    const [large, small] = [await seedTenant(database.run), await seedTenant(database.run)]
    say(`Seeding ${finished} finished jobs of one organisation, and ${finished / 10} of another…`)
    await seedFinishedJobs(database, large, { count: finished })
    await seedFinishedJobs(database, small, { count: finished / 10 })
    await database.sql('vacuum analyze')
    const term = await lead(database.run)
    say('Rolling them up, as the leader does…')
    const history = await rollUpAll(database, term)
    say('A drain: groups of a thousand jobs that ended within a minute…')
    await seedFinishedJobs(database, small, { count: finished / 5, days: 0.0005, group: 1_000 })
    const drain = await rollUpAll(database, term)
    const idleMs = await timeOf(() => database.run(findUncounted()))
    const replayed = await weigh(database, term)
    say('Asking each route…')
    const routes = await timeRoutes(database, large)
    const queued = finished / 5
    say(`The same with ${queued} queued jobs…`)
    await seedQueuedJobs(database, large, queued)
    await database.sql('analyze ready_jobs')
    const sampleMs = await timeOf(() => database.run(sampleDepths(term, 15)))
    const deep = await timeRoutes(database, large)
    const data = {
      finished,
      rollup: { history, drain, idle_ms: idleMs },
      replay: replayed,
      sample_ms: { queued, ms: sampleMs },
      routes,
      routes_with_queue: deep,
    }
    return { data, text: textOf(data) }
  }, SETTINGS)

const textOf = (data: {
  finished: number
  rollup: { history: Counted; drain: Counted; idle_ms: number }
  replay: { attempts: number; read_ms: number; replay_ms: number }
  sample_ms: { queued: number; ms: number }
  routes: Timed[]
  routes_with_queue: Timed[]
}): string => {
  const counted = (what: string, { jobs, seconds, jobs_per_second }: Counted): string =>
    `${what.padEnd(34)} ${jobs} jobs in ${seconds} s, ${jobs_per_second} jobs/s`
  const table = (rows: readonly Timed[]): string[] =>
    rows.map(
      ({ what, cold_ms, p50_ms, max_ms }) =>
        `${what.padEnd(34)} cold ${cold_ms} ms, p50 ${p50_ms} ms, max ${max_ms} ms`,
    )
  return [
    counted('rollup of a month', data.rollup.history),
    counted('rollup of a drain', data.rollup.drain),
    `${'rollup, nothing new'.padEnd(34)} ${data.rollup.idle_ms} ms`,
    `${'replay'.padEnd(34)} ${data.replay.attempts} attempts read in ${data.replay.read_ms} ms, replayed twice in ${data.replay.replay_ms} ms`,
    `${'look at all queues'.padEnd(34)} ${data.sample_ms.ms} ms with ${data.sample_ms.queued} ready jobs`,
    '',
    `Routes, with ${data.finished} finished jobs:`,
    ...table(data.routes),
    '',
    `And with ${data.sample_ms.queued} ready ones:`,
    ...table(data.routes_with_queue),
  ].join('\n')
}

type Counted = { jobs: number; seconds: number; jobs_per_second: number }

/** Jobs count once as submitted and once as ended: told are those that ended. */
const rollUpAll = async (database: TestDatabase, term: string): Promise<Counted> => {
  const endedOf = async (): Promise<number> => {
    const [row] = await database.sql<{ jobs: number }>(
      `select coalesce(sum(completed + failed + cancelled), 0)::int as jobs from smartqueue.job_rollups where span = 3600`,
    )
    return row?.jobs ?? 0
  }
  const before = await endedOf()
  const startedAt = performance.now()
  for (let more: boolean | undefined = true; more; ) {
    const [page] = await database.run(rollUp(term, PAGE))
    more = page?.more
  }
  const seconds = (performance.now() - startedAt) / 1000
  const jobs = (await endedOf()) - before
  return { jobs, seconds: round(seconds), jobs_per_second: Math.round(jobs / seconds) }
}

const weigh = async (database: TestDatabase, term: string) => {
  const startedAt = performance.now()
  const [stretch] = await database.run(measureStretch(STRETCH))
  if (!stretch?.next) throw new Error('Nothing has ended')
  const attempts = await database.run(readStretch(STRETCH, stretch.next))
  const [capacity] = await database.run(readCapacity(0))
  const readAt = performance.now()
  const gains = await weighOrder(attempts, capacity ?? { slots: [], running_ms: [] }, async () => {})
  const replayedAt = performance.now()
  await database.run(storeGains(term, stretch.start, stretch.next, gains))
  return {
    attempts: attempts.length,
    read_ms: round(readAt - startedAt),
    replay_ms: round(replayedAt - readAt),
  }
}

const DAY = { span: 3600, seconds: 3600, count: 24 } as const

const timeRoutes = async (database: TestDatabase, tenant: Tenant): Promise<Timed[]> => {
  const { orgId } = tenant
  const routes: Record<string, Query<unknown>> = {
    '/analytics/summary': getSummary(orgId),
    '/analytics/throughput?range=1h': getThroughput(orgId, { span: 60, seconds: 60, count: 60 }),
    '/analytics/throughput?range=24h': getThroughput(orgId, DAY),
    '/analytics/throughput?range=30d': getThroughput(orgId, { span: 3600, seconds: 21_600, count: 120 }),
    '/analytics/prediction-accuracy?range=24h': getPredictionAccuracy(orgId, null, DAY),
    '/analytics/prediction-accuracy?range=30d': getPredictionAccuracy(orgId, 'type-1', {
      seconds: 21_600,
      count: 120,
    }),
    '/analytics/queue-depth?range=24h': getQueueDepth(orgId, { span: 60, seconds: 900, count: 96 }),
    '/analytics/scheduler-leader': getLeader(),
    '/analytics/scheduling-gain?range=7d': getSchedulingGain(orgId, { seconds: 21_600, count: 28 }),
  }
  const entry = enter(tenant, { leastRole: 'user' })
  const timed: Timed[] = []
  for (const [what, query] of Object.entries(routes)) {
    const client = new pg.Client(asLogin(database.url, 'functions'))
    await client.connect()
    const ask = async (): Promise<void> => {
      await client.query('begin')
      await client.query(entry.text, [...entry.values])
      await client.query(query.text, [...query.values])
      await client.query('commit')
    }
    const coldMs = await timeOf(ask)
    const samples: number[] = []
    for (let n = 0; n < ROUNDS; n++) samples.push(await timeOf(ask))
    await client.end()
    timed.push({ what, cold_ms: coldMs, p50_ms: percentile(samples, 0.5), max_ms: percentile(samples, 1) })
  }
  return timed
}

const timeOf = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now()
  await work()
  return round(performance.now() - startedAt)
}

const round = (value: number): number => Math.round(value * 10) / 10
