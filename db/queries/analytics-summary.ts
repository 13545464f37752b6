import type { Query } from '../query.ts'
import { type ScalingState, STALE_SECONDS } from './autoscale.ts'
import { QUEUE_SUMS, type QueueSums, SILENT_SECONDS } from './queue-facts.ts'

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
  /** Null: the leader's is too old, or there is none. */
  autoscale: ScalingState | null
  load: LoadAhead
  queue: QueueSums | null
  this_minute: MinuteSums
  last_minute: MinuteSums
}

export type MinuteSums = { submitted: number; finished: number }

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
      from smartqueue.job_rollups
      where org_id = $1::uuid
        and span = 60
        and at > now() - interval '1 hour'
      union all
      select 0, at, submitted, completed, failed, cancelled, ran, runtime_ms, waits
      from smartqueue.job_rollups
      where org_id = $1::uuid
        and span = 60
        and at > now() - interval '24 hours'
        and at < date_bin('1 hour', now(), 'epoch') - interval '23 hours'
      union all
      select span, at, submitted, completed, failed, cancelled, ran, runtime_ms, waits
      from smartqueue.job_rollups
      where org_id = $1::uuid
        and span = 3600
        and at >= date_bin('1 hour', now(), 'epoch') - interval '23 hours'
    )
    select
      now() as at, smartqueue.depth_of_queue($1::uuid) as depth,
      ${jobSums('span = 60')} as last_hour,
      ${jobSums('span <> 60')} as last_24h,
      (
        select jsonb_build_object(
          'online', count(*) filter (where status = 'online'), 'draining', count(*) filter (where status = 'draining'),
          'slots', coalesce(sum(slots) filter (where status = 'online'), 0), 'running', coalesce(sum(running), 0)
        )
        from smartqueue.workers
        where status <> 'offline'
          and last_seen > now() - ${SILENT_SECONDS} * interval '1 second'
      ) as workers,
      (
        select to_jsonb(s)
        from smartqueue.autoscale_snapshots s
        where taken_at > now() - ${STALE_SECONDS} * interval '1 second'
      ) as autoscale,
      smartqueue.load_ahead($1::uuid) as load, ${QUEUE_SUMS} as queue,
      ${minuteSums(`date_trunc('minute', now())`)} as this_minute,
      ${minuteSums(`date_trunc('minute', now()) - interval '1 minute'`)} as last_minute`,
  values: [orgId],
})

const minuteSums = (at: string): string => `(
        select jsonb_build_object(
          'submitted', coalesce(sum(submitted), 0), 'finished', coalesce(sum(completed + failed + cancelled), 0)
        )
        from recent
        where span = 60
          and at = ${at}
      )`
