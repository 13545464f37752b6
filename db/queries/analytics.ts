/**
 * What people look at. Each is one statement that reads rollups by their key, and of the queue a bounded part: with a million
 * finished jobs each takes a few milliseconds, see `npm run bench -- analytics`.
 */
import type { Query } from '../query.ts'
import { BUCKET, type Buckets, SERIES, SINCE } from './analytics-buckets.ts'
import type { DepthSums, LoadAhead } from './analytics-summary.ts'
import { QUEUE_SUMS, type QueueSums, SILENT_SECONDS } from './queue-facts.ts'

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
      from smartqueue.job_rollups
      where org_id = $1::uuid
        and span = $4::smallint
        and at >= ${SINCE}
      group by 1
    ) r using (at)
    order by at`,
  values: [orgId, buckets.seconds, buckets.count, buckets.span],
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
          left join smartqueue.depth_rollups r
            on r.org_id = $1::uuid
            and r.span = $4::smallint
            and r.at >= b.at
            and r.at < b.at + $2::int * interval '1 second'
          group by b.at
        ) item
      ) as items,
      smartqueue.depth_of_queue($1::uuid) as depth,
      smartqueue.load_ahead($1::uuid) as load, ${QUEUE_SUMS} as queue`,
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
          from smartqueue.leader_terms
          order by term desc
          limit ${ELECTIONS}
        ) one
      ) as elections
    from smartqueue.scheduler_leader`,
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
    from smartqueue.scheduling_gains
    where org_id = $1::uuid
      and at >= ${SINCE}
    group by 1
    order by 1`,
  values: [orgId, buckets.seconds, buckets.count],
})
