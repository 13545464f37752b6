/** Facts about the queue as one organisation sees it (`queue_sums`), and the live workers. */

import type { Query } from '../query.ts'

export type LiveWorker = {
  worker_id: string
  types: string[]
  slots: number
  running: number
  cpu_units: number
  memory_mb: number
}

export type QueueSums = {
  /** Since they were taken, and how long that took. */
  age_ms: number
  took_ms: number
  /** Ready jobs of all organisations. */
  depth: number
  /** What remains of each running job of any organisation. */
  running_ms: number[]
  stretch: number
  /** The organisation's own jobs. */
  lanes: number[]
  lane_jobs: number[]
  lane_ms: number[]
  recent_lanes: number[]
  recent_loads: number[]
  running_jobs: number
  weight: number
  /** Its part of the workers' time, as long as the same organisations have work, and the part that it had lately. */
  share: number
  used: number
  short_since: string | null
  /** Sums over all others with about the same waiting work for their weight. */
  others: { jobs: number; ms: number; weight: number; load: number }[]
}

/** Takes the sums again if it is time. That may take a while, and nobody should wait for it. */
export const refreshQueueSums = () => ({
  name: 'refresh-queue-sums',
  text: `
    select took_ms
    from smartqueue.queue_snapshot(true)`,
  values: [],
})

/** The paused types (null is the whole queue), and the queue as the organisation sees it. */
export const getQueue = (
  orgId: string,
): Query<{ paused_types: (string | null)[]; queue: QueueSums | null }> => ({
  name: 'get-queue',
  text: `
    select
      array(select type from smartqueue.pauses where org_id = $1::uuid order by type) as paused_types,
      smartqueue.queue_sums($1::uuid) as queue`,
  values: [orgId],
})

export type OrgQueueRow = {
  id: string
  name: string
  weight: number
  share: number
  used: number
  waiting_jobs: number
  waiting_ms: number
  running_jobs: number
  short_since: string | null
}

/** The organisations that use the workers most. Only admins see more than their own. */
export const listOrgQueues = (limit: number): Query<OrgQueueRow> => ({
  name: 'list-org-queues',
  text: `
    select
      q.org_id as id, o.name, q.weight,
      q.weight / (q.weights + case when q.is_active then 0 else q.weight end) as share,
      coalesce(q.used_ms / nullif(q.all_used_ms, 0), 0) as used,
      q.waiting_jobs, q.waiting_ms, cardinality(q.running_ms) as running_jobs, q.short_since
    from (
      select
        *, waiting_jobs > 0 or running_ms <> '{}' as is_active, sum(used_ms) over () as all_used_ms,
        coalesce(sum(weight::double precision) filter (where waiting_jobs > 0 or running_ms <> '{}') over (), 0)
          as weights
      from smartqueue.org_queues
    ) q
    join smartqueue.orgs o on o.id = q.org_id
    order by q.used_ms desc, q.waiting_ms desc, q.org_id
    limit $1::integer`,
  values: [limit],
})
