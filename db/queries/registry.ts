import type { Page, Query } from '../query.ts'
import type { LiveWorker } from './queue-facts.ts'
import type { WorkerStatus } from './workers.ts'

export type WorkerRow = LiveWorker & {
  /** Null if the caller may not see it. */
  hostname: string | null
  status: WorkerStatus
  jobs_processed: string | null
  started_at: string
  last_seen: string
}

/**
 * Ordered by id. An organisation sees only its own jobs as running, and no hosts and totals; without one, for platform
 * admins, the answer has everything.
 */
export const listWorkers = (orgId: string | null, page: Page): Query<WorkerRow> => ({
  name: 'list-workers',
  text: `
    select
      w.worker_id, case when $3::uuid is null then w.hostname end as hostname,
      case when smartqueue.is_silent(w.last_seen) then 'offline' else w.status end as status,
      w.types, w.slots, w.cpu_units, w.memory_mb,
      case when $3::uuid is null then w.running else coalesce(own.running, 0) end as running,
      case when $3::uuid is null then w.jobs_processed end as jobs_processed, w.started_at, w.last_seen
    from smartqueue.workers w
    left join (
      select worker_id, count(*)::int as running
      from smartqueue.held_jobs
      where org_id = $3::uuid
      group by worker_id
    ) own on own.worker_id = w.worker_id
    where w.worker_id > coalesce($1::text, '')
    order by w.worker_id
    limit $2::int`,
  values: [page.after, page.limit, orgId],
})

export type LeaderRow = {
  worker_id: string
  term: string
  elected_at: string
  last_seen: string
  alive: boolean
  /** Newest first, this one included. */
  elections: { term: number; worker_id: string; elected_at: string }[]
}

/** Of the newest term, alive or not. No row: nobody has led yet. */
export const getLeader = (): Query<LeaderRow> => ({
  name: 'get-leader',
  text: `
    select
      worker_id, term, elected_at, last_seen, not smartqueue.is_silent(last_seen) as alive,
      jsonb_build_object('term', term, 'worker_id', worker_id, 'elected_at', elected_at) || earlier_terms as elections
    from smartqueue.scheduler_leader`,
  values: [],
})

export type PodLoad = { hostname: string; status: WorkerStatus; running: number; leads: boolean }

/** Of hosts that have been heard of lately. In a pod that has started anew only the newest worker counts. */
export const listPodLoads = (): Query<PodLoad> => ({
  name: 'list-pod-loads',
  text: `
    select distinct on (w.hostname)
      w.hostname, w.status, w.running, l.worker_id is not null as leads
    from smartqueue.workers w
    left join smartqueue.scheduler_leader l on l.worker_id = w.worker_id
    where not smartqueue.is_silent(w.last_seen)
    order by w.hostname, w.started_at desc`,
  values: [],
})
