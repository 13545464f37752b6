/**
 * Queries of the analytics pages. Each reads rollups by key and a bounded part of the queue: a few milliseconds with a
 * million finished jobs, see `npm run bench -- analytics`.
 */
import type { Query } from '../query.ts'
import type { Gain } from './analytics-gain.ts'
import type { DepthCounts, JobCounts, QueueOutlook } from './analytics-summary.ts'

/** Rows of so many seconds, added up to buckets of so many, and how many buckets: the last one contains the present. */
export type Buckets = { span: 60 | 3600; seconds: number; count: number }

export type ThroughputRow = JobCounts & {
  at: string
  runtime_mean_ms: number | null
  wait_mean_ms: number | null
}

export const getThroughput = (orgId: string, buckets: Buckets): Query<ThroughputRow> => ({
  name: 'get-throughput',
  text: `
    select
      b.at, coalesce(r.submitted, 0)::double precision as submitted,
      coalesce(r.completed, 0)::double precision as completed, coalesce(r.failed, 0)::double precision as failed,
      coalesce(r.cancelled, 0)::double precision as cancelled, r.runtime_mean_ms, r.wait_mean_ms
    from smartqueue.buckets($2::int, $3::int) as b (at)
    left join (
      select
        date_bin($2::int * interval '1 second', at, 'epoch') as at, sum(submitted) as submitted,
        sum(completed) as completed, sum(failed) as failed, sum(cancelled) as cancelled,
        sum(runtime_ms) / nullif(sum(ran), 0)::double precision as runtime_mean_ms,
        sum(wait_ms) / nullif(sum(waited), 0)::double precision as wait_mean_ms
      from smartqueue.job_rollups
      where org_id = $1::uuid
        and span = $4::smallint
        and at >= smartqueue.bucket_start($2::int, $3::int)
      group by 1
    ) r using (at)
    order by at`,
  values: [orgId, buckets.seconds, buckets.count, buckets.span],
})

export type QueueDepthRow = QueueOutlook & {
  items: (DepthCounts & { at: string; predicted_seconds: number })[]
}

/** The average over the part of a bucket that is past. A minute or hour without a row was without jobs. */
export const getQueueDepth = (orgId: string, buckets: Buckets): Query<QueueDepthRow> => ({
  name: 'get-queue-depth',
  text: `
    select
      now() as at,
      (
        select jsonb_agg(to_jsonb(item) order by at)
        from (
          select
            b.at,
            round((coalesce(sum(r.pending::double precision / r.samples), 0) / max(b.rows))::numeric, 2) as pending,
            round((coalesce(sum(r.blocked::double precision / r.samples), 0) / max(b.rows))::numeric, 2) as blocked,
            round((coalesce(sum(r.ready::double precision / r.samples), 0) / max(b.rows))::numeric, 2) as ready,
            round((coalesce(sum(r.running::double precision / r.samples), 0) / max(b.rows))::numeric, 2) as running,
            round((coalesce(sum(r.retrying::double precision / r.samples), 0) / max(b.rows))::numeric, 2) as retrying,
            round((coalesce(sum(r.predicted_seconds / r.samples), 0) / max(b.rows))::numeric, 2) as predicted_seconds
          from (
            select
              at,
              least($2::int / $4::int, 1 + floor(extract(epoch from now() - at) / $4::int))::double precision as rows
            from smartqueue.buckets($2::int, $3::int) as s (at)
          ) b
          left join smartqueue.job_rollups r
            on r.org_id = $1::uuid
            and r.span = $4::smallint
            and r.at >= b.at
            and r.at < b.at + $2::int * interval '1 second'
            and r.samples > 0
          group by b.at
        ) item
      ) as items,
      smartqueue.depth_of_queue($1::uuid) as depth,
      smartqueue.load_ahead($1::uuid) as load, smartqueue.queue_sums($1::uuid) as queue`,
  values: [orgId, buckets.seconds, buckets.count, buckets.span],
})

export type GainPointRow = Gain & { at: string }

/** Only buckets in which jobs ended. */
export const getSchedulingGain = (orgId: string, buckets: Omit<Buckets, 'span'>): Query<GainPointRow> => ({
  name: 'get-scheduling-gain',
  text: `
    select
      date_bin($2::int * interval '1 second', at, 'epoch') as at, sum(jobs)::double precision as jobs,
      sum(wait_ms) as wait_ms, sum(fifo_wait_ms) as fifo_wait_ms, max(max_wait_ms) as max_wait_ms,
      max(fifo_max_wait_ms) as fifo_max_wait_ms
    from smartqueue.scheduling_gains
    where org_id = $1::uuid
      and at >= smartqueue.bucket_start($2::int, $3::int)
    group by 1
    order by 1`,
  values: [orgId, buckets.seconds, buckets.count],
})
