import type { Query } from '../query.ts'
import { type ScalingState, STALE_SECONDS } from './autoscale.ts'
import type { QueueSums } from './queue-facts.ts'

export type DepthCounts = Record<'pending' | 'blocked' | 'ready' | 'running' | 'retrying', number>

/** Of `depth_of_queue`. */
export type DepthSums = DepthCounts & { predicted_ms: number; oldest_ready_seconds: number | null }

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

export type JobCounts = Record<'submitted' | 'completed' | 'failed' | 'cancelled', number>

export type JobSums = JobCounts & { ran: number; runtime_ms: number; waits: number[] | null }

/** The queue of an organisation at a moment, and what its forecast goes by. */
export type QueueOutlook = { at: string; depth: DepthSums; load: LoadAhead; queue: QueueSums | null }

export type SummaryRow = QueueOutlook & {
  last_hour: JobSums
  last_24h: JobSums
  workers: { online: number; draining: number; slots: number; running: number }
  /** Null: the leader's is too old, or there is none. */
  autoscale: ScalingState | null
  this_minute: MinuteSums
  last_minute: MinuteSums
}

export type MinuteSums = { submitted: number; finished: number }

export const getSummary = (orgId: string): Query<SummaryRow> => ({
  name: 'get-summary',
  text: `
    select
      now() as at, smartqueue.depth_of_queue($1::uuid) as depth, smartqueue.job_sums($1::uuid, 1) as last_hour,
      smartqueue.job_sums($1::uuid, 24) as last_24h,
      (
        select jsonb_build_object(
          'online', count(*) filter (where status = 'online'), 'draining', count(*) filter (where status = 'draining'),
          'slots', coalesce(sum(slots) filter (where status = 'online'), 0), 'running', coalesce(sum(running), 0)
        )
        from smartqueue.workers
        where status <> 'offline'
          and not smartqueue.is_silent(last_seen)
      ) as workers,
      (
        select to_jsonb(s)
        from smartqueue.autoscale_snapshots s
        where taken_at > now() - $2::int * interval '1 second'
      ) as autoscale,
      smartqueue.load_ahead($1::uuid) as load, smartqueue.queue_sums($1::uuid) as queue,
      smartqueue.minute_sums($1::uuid, date_trunc('minute', now())) as this_minute,
      smartqueue.minute_sums($1::uuid, date_trunc('minute', now()) - interval '1 minute') as last_minute`,
  values: [orgId, STALE_SECONDS],
})
