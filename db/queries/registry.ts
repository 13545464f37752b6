import type { Page, Query } from '../query.ts'

export type WorkerRow = {
  worker_id: string
  /** Null if the caller may not see it. */
  hostname: string | null
  status: 'online' | 'draining' | 'offline'
  types: string[]
  slots: number
  cpu_units: number
  memory_mb: number
  running: number
  jobs_processed: string | null
  started_at: string
  last_seen: string
}

/** Ordered by id, with hosts and totals across all organisations. For platform admins. */
export const listWorkers = (page: Page): Query<WorkerRow> => ({
  name: 'list-workers',
  text: `
    select
      worker_id, hostname,
      case when smartqueue.is_silent(last_seen) then 'offline' else status end as status,
      types, slots, cpu_units, memory_mb, running, jobs_processed, started_at, last_seen
    from smartqueue.workers
    where worker_id > coalesce($1::text, '')
    order by worker_id
    limit $2::int`,
  values: [page.after, page.limit],
})

/** The workers as an organisation sees them: only its own jobs count as running; hosts and totals are hidden. */
export const listWorkersFor = (orgId: string, page: Page): Query<WorkerRow> => ({
  name: 'list-workers-for',
  text: `
    select
      w.worker_id, null as hostname,
      case when smartqueue.is_silent(w.last_seen) then 'offline' else w.status end as status,
      w.types, w.slots, w.cpu_units, w.memory_mb, coalesce(own.running, 0) as running, null as jobs_processed,
      w.started_at, w.last_seen
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

export type LeaderRow = { worker_id: string; term: string; elected_at: string; last_seen: string }

/** Of the newest term, alive or not. No row: there never was one. */
export const getLeader = (): Query<LeaderRow> => ({
  name: 'get-leader',
  text: `
    select worker_id, term, elected_at, last_seen
    from smartqueue.scheduler_leader`,
  values: [],
})

export type PodLoad = {
  hostname: string
  status: 'online' | 'draining' | 'offline'
  running: number
  leads: boolean
}

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
