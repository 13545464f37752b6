/**
 * What people look at. Each is one statement that reads rollups by their key, and of the queue a bounded part: with a million
 * finished jobs each takes a few milliseconds, see `npm run bench -- analytics`.
 */
import type { Query } from '../query.ts'
import { APE_BUCKETS } from '../rules/log-histogram.ts'
import { QUEUE_SUMS, type QueueSums, SILENT_SECONDS } from './queue-facts.ts'

/** Rows of so many seconds, put together to buckets of so many, and how many of those: the last one is the present. */
export type Buckets = { span: 60 | 3600; seconds: number; count: number }

/** The buckets, oldest first: `$2` seconds each, and `$3` of them. */
const SERIES = `generate_series(
      date_bin($2::int * interval '1 second', now(), 'epoch') - ($3::int - 1) * $2::int * interval '1 second',
      date_bin($2::int * interval '1 second', now(), 'epoch'), $2::int * interval '1 second'
    )`
const SINCE = `date_bin($2::int * interval '1 second', now(), 'epoch') - ($3::int - 1) * $2::int * interval '1 second'`
const BUCKET = `date_bin($2::int * interval '1 second', at, 'epoch')`

/** Of `depth_of_queue`. */
export type DepthSums = {
  pending: number
  blocked: number
  ready: number
  running: number
  retrying: number
  predicted_ms: number
  oldest_ready_seconds: number | null
}

/** Of `load_ahead`. */
export type LoadAhead = {
  slots: number
  paused: boolean
  /** Jobs that came in each of the last 60 minutes, oldest first; the present one is not among them. */
  minutes: number[]
  /** Jobs in an hour: at this time of the day and at the next hour, on other days. */
  same_hour: number | null
  next_hour: number | null
  mean_ms: number | null
  waking: { in_seconds: number; predicted_ms: number }[]
  schedules: { cron: string; timezone: string; predicted_ms: number | null }[]
}

export type JobSums = {
  submitted: number
  completed: number
  failed: number
  cancelled: number
  ran: number
  runtime_ms: number
  waits: number[] | null
}

export type SummaryRow = {
  at: Date
  depth: DepthSums
  last_hour: JobSums
  last_24h: JobSums
  workers: { online: number; draining: number; slots: number; running: number }
  load: LoadAhead
  queue: QueueSums | null
  finished_5m: number
  submitted_5m: number
}

/** Hours, and single minutes for the one that is only partly among the last 24. */
const jobSums = (since: string): string => `(
        select jsonb_build_object(
          'submitted', coalesce(sum(submitted), 0), 'completed', coalesce(sum(completed), 0), 'failed', coalesce(sum(failed), 0),
          'cancelled', coalesce(sum(cancelled), 0), 'ran', coalesce(sum(ran), 0), 'runtime_ms', coalesce(sum(runtime_ms), 0),
          'waits', (
            select jsonb_agg(count order by bucket)
            from (
              select bucket, sum(count) as count
              from recent
              cross join lateral unnest(waits) with ordinality as u (count, bucket)
              where ${since}
              group by bucket
            ) counts
          )
        )
        from recent
        where ${since}
      )`

export const getSummary = (orgId: string): Query<SummaryRow> => ({
  name: 'get-summary',
  text: `
    with recent as materialized (
      select span, at, submitted, completed, failed, cancelled, ran, runtime_ms, waits
      from job_rollups
      where org_id = $1::uuid
        and span = 60
        and at > now() - interval '1 hour'
      union all
      select 0, at, submitted, completed, failed, cancelled, ran, runtime_ms, waits
      from job_rollups
      where org_id = $1::uuid
        and span = 60
        and at > now() - interval '24 hours'
        and at < date_bin('1 hour', now(), 'epoch') - interval '23 hours'
      union all
      select span, at, submitted, completed, failed, cancelled, ran, runtime_ms, waits
      from job_rollups
      where org_id = $1::uuid
        and span = 3600
        and at >= date_bin('1 hour', now(), 'epoch') - interval '23 hours'
    )
    select
      now() as at, depth_of_queue($1::uuid) as depth,
      ${jobSums('span = 60')} as last_hour,
      ${jobSums('span <> 60')} as last_24h,
      (
        select jsonb_build_object(
          'online', count(*) filter (where status = 'online'), 'draining', count(*) filter (where status = 'draining'),
          'slots', coalesce(sum(slots) filter (where status = 'online'), 0), 'running', coalesce(sum(running), 0)
        )
        from workers
        where status <> 'offline'
          and last_seen > now() - ${SILENT_SECONDS} * interval '1 second'
      ) as workers,
      load_ahead($1::uuid) as load, ${QUEUE_SUMS} as queue,
      (
        select coalesce(sum(completed + failed + cancelled), 0)::double precision
        from recent
        where span = 60 and ${LAST_5_MINUTES}
      ) as finished_5m,
      (
        select coalesce(sum(submitted), 0)::double precision
        from recent
        where span = 60 and ${LAST_5_MINUTES}
      ) as submitted_5m`,
  values: [orgId],
})

/** Full ones. */
const LAST_5_MINUTES = `at >= date_trunc('minute', now()) - interval '5 minutes' and at < date_trunc('minute', now())`

export type ThroughputRow = {
  at: Date
  submitted: number
  completed: number
  failed: number
  cancelled: number
  runtime_mean_ms: number | null
  wait_mean_ms: number | null
}

export const getThroughput = (orgId: string, buckets: Buckets): Query<ThroughputRow> => ({
  name: 'get-throughput',
  text: `
    select
      b.at, coalesce(r.submitted, 0)::double precision as submitted, coalesce(r.completed, 0)::double precision as completed,
      coalesce(r.failed, 0)::double precision as failed, coalesce(r.cancelled, 0)::double precision as cancelled,
      r.runtime_mean_ms, r.wait_mean_ms
    from ${SERIES} as b (at)
    left join (
      select
        ${BUCKET} as at, sum(submitted) as submitted, sum(completed) as completed, sum(failed) as failed,
        sum(cancelled) as cancelled, sum(runtime_ms) / nullif(sum(ran), 0)::double precision as runtime_mean_ms,
        sum(wait_ms) / nullif(sum(waited), 0)::double precision as wait_mean_ms
      from job_rollups
      where org_id = $1::uuid
        and span = $4::smallint
        and at >= ${SINCE}
      group by 1
    ) r using (at)
    order by at`,
  values: [orgId, buckets.seconds, buckets.count, buckets.span],
})

export type PredictionSums = {
  at: string
  jobs: number
  log_error: number
  abs_log_error: number
  baseline_abs_log_error: number
  within_p50: number
  within_p90: number
}

export type PredictionSample = {
  job_id: string
  name: string
  type: string
  predicted_ms: number
  predicted_p90_ms: number
  actual_ms: number
  at: string
  source: string
}

export type PredictionAccuracyRow = {
  points: PredictionSums[]
  apes: number[]
  samples: PredictionSample[]
}

/** One by one: to unnest 720 arrays takes four times as long. */
const APES = Array.from({ length: APE_BUCKETS }, (_, n) => `coalesce(sum(apes[${n + 1}]), 0)`).join(', ')

const SAMPLES = 500
/** Finished jobs that are looked at for them, the newest submission first. */
const SAMPLED_FROM = 2_000

export const getPredictionAccuracy = (
  orgId: string,
  type: string | null,
  buckets: Omit<Buckets, 'span'>,
): Query<PredictionAccuracyRow> => ({
  name: 'get-prediction-accuracy',
  text: `
    with recent as materialized (
      select at, jobs, log_error, abs_log_error, baseline_abs_log_error, within_p50, within_p90, apes
      from prediction_rollups
      where org_id = $1::uuid
        and type = coalesce($4::text, '')
        and at >= ${SINCE}
    )
    select
      (
        select coalesce(jsonb_agg(to_jsonb(point) order by at), '[]')
        from (
          select
            ${BUCKET} as at, sum(jobs) as jobs, sum(log_error) as log_error, sum(abs_log_error) as abs_log_error,
            sum(baseline_abs_log_error) as baseline_abs_log_error, sum(within_p50) as within_p50,
            sum(within_p90) as within_p90
          from recent
          group by 1
        ) point
      ) as points,
(select jsonb_build_array(${APES}) from recent) as apes,
      (
        select coalesce(jsonb_agg(to_jsonb(sample) order by sample.at desc), '[]')
        from (
          select
            f.job_id, j.name, j.type, j.predicted_ms, j.predicted_p90_ms, f.runtime_ms as actual_ms, f.finished_at as at,
            j.prediction_source as source
          from (
            select job_id, state, runtime_ms, finished_at
            from finished_jobs
            where org_id = $1::uuid
            order by job_id desc
            limit ${SAMPLED_FROM}
          ) f
          cross join lateral (
            select name, type, predicted_ms, predicted_p90_ms, prediction_source
            from jobs
            where org_id = $1::uuid
              and id = f.job_id
            offset 0
          ) j
          where f.state = 'completed'
            and f.runtime_ms is not null
            and f.finished_at >= ${SINCE}
            and j.type = coalesce($4::text, j.type)
          order by f.job_id desc
          limit ${SAMPLES}
        ) sample
      ) as samples`,
  values: [orgId, buckets.seconds, buckets.count, type],
})

export type DepthPoint = {
  at: string
  pending: number
  blocked: number
  ready: number
  running: number
  retrying: number
  predicted_seconds: number
}

export type QueueDepthRow = {
  at: Date
  items: DepthPoint[]
  depth: DepthSums
  load: LoadAhead
  queue: QueueSums | null
}

/** How deep it was on average, over the part of a bucket that is past: a minute or hour without a row was without jobs. */
const average = (column: string): string =>
  `round((coalesce(sum(r.${column}::double precision / r.samples), 0) / max(b.rows))::numeric, 2) as ${column}`

export const getQueueDepth = (orgId: string, buckets: Buckets): Query<QueueDepthRow> => ({
  name: 'get-queue-depth',
  text: `
    select
      now() as at,
      (
        select jsonb_agg(to_jsonb(item) order by at)
        from (
          select
            b.at, ${['pending', 'blocked', 'ready', 'running', 'retrying', 'predicted_seconds'].map(average).join(', ')}
          from (
            select at, least($2::int / $4::int, 1 + floor(extract(epoch from now() - at) / $4::int))::double precision as rows
            from ${SERIES} as s (at)
          ) b
          left join depth_rollups r
            on r.org_id = $1::uuid
            and r.span = $4::smallint
            and r.at >= b.at
            and r.at < b.at + $2::int * interval '1 second'
          group by b.at
        ) item
      ) as items,
      depth_of_queue($1::uuid) as depth,
      load_ahead($1::uuid) as load, ${QUEUE_SUMS} as queue`,
  values: [orgId, buckets.seconds, buckets.count, buckets.span],
})

export type LeaderHistoryRow = {
  worker_id: string
  term: string
  elected_at: Date
  last_seen: Date
  alive: boolean
  elections: { term: number; worker_id: string; elected_at: string }[]
}

const ELECTIONS = 20

/** Nothing of it belongs to an organisation. No row: nobody has led yet. */
export const getLeaderHistory = (): Query<LeaderHistoryRow> => ({
  name: 'get-leader-history',
  text: `
    select
      worker_id, term, elected_at, last_seen, last_seen > now() - ${SILENT_SECONDS} * interval '1 second' as alive,
      (
        select coalesce(jsonb_agg(to_jsonb(one) order by one.term desc), '[]')
        from (
          select term, worker_id, elected_at
          from leader_terms
          order by term desc
          limit ${ELECTIONS}
        ) one
      ) as elections
    from scheduler_leader`,
  values: [],
})

export type GainPointRow = {
  at: Date
  jobs: number
  wait_ms: number
  fifo_wait_ms: number
  max_wait_ms: number
  fifo_max_wait_ms: number
}

/** Only buckets in which jobs ended. */
export const getSchedulingGain = (orgId: string, buckets: Omit<Buckets, 'span'>): Query<GainPointRow> => ({
  name: 'get-scheduling-gain',
  text: `
    select
      ${BUCKET} as at, sum(jobs)::double precision as jobs, sum(wait_ms) as wait_ms, sum(fifo_wait_ms) as fifo_wait_ms,
      max(max_wait_ms) as max_wait_ms, max(fifo_max_wait_ms) as fifo_max_wait_ms
    from scheduling_gains
    where org_id = $1::uuid
      and at >= ${SINCE}
    group by 1
    order by 1`,
  values: [orgId, buckets.seconds, buckets.count],
})
