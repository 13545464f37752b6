import { INSERT_EVENTS } from '../event-groups.ts'
import type { Query } from '../query.ts'
import { auditJobs } from './audit.ts'

export type RetryableState = 'failed' | 'cancelled'

export type RetriedJob = { job_id: string; type: string; status: 'pending' | 'blocked' | 'ready' }

/** Without an id: there was no room in the queue for all of them. */
export type RetryRow = RetriedJob | { job_id: null; type: null; status: null }

export const isRetried = (row: RetryRow): row is RetriedJob => row.job_id !== null

/**
 * Failed and cancelled jobs go back into the queue, with all their attempts to spend again, as far as the organisation's
 * quota has room. Others have no row in the answer. The last attempt moves from finished_jobs to attempts.
 *
 * Parents that have not completed block a job again, whatever its on_parent_failure says: who retries a job of which a
 * parent has failed retries that, too, or has done so. Parents that are retried by the same statement are in no place
 * while it runs, and lock_parents would look for them for ever.
 */
export const retryJobs = (
  orgId: string,
  jobIds: readonly string[],
  states: readonly RetryableState[] = ['failed', 'cancelled'],
): Query<RetryRow> => ({
  name: 'retry-jobs',
  text: `
    with found as materialized (
      select org_id, job_id
      from smartqueue.finished_jobs
      where org_id = $1::uuid
        and job_id = any ($2::uuid[])
        and state = any ($3::smartqueue.job_state[])
      order by job_id
      for update
    ),
    dependency as materialized (
      select d.child_id, d.parent_id, (d.parent_id in (select job_id from found)) is true as inside
      from smartqueue.job_dependencies d
      where d.child_id = any (array(select job_id from found))
    ),
    parent as materialized (
      select p.job_id, p.state
      from smartqueue.lock_parents($1::uuid, array(select parent_id from dependency where not inside)) p
    ),
    -- When all jobs are locked: everybody locks jobs first, and then the quotas.
    room as materialized (
      select smartqueue.queue_room($1::uuid, found_jobs) as jobs, found_jobs
      from (select count(*) as found_jobs from found) f, (select count(*) from parent) p
      where found_jobs > 0
    ),
    chosen as materialized (
      select org_id, job_id
      from found
      limit (select jobs from room)
    ),
    retried as (
      delete from smartqueue.finished_jobs f
      using chosen
      where f.org_id = chosen.org_id
        and f.job_id = chosen.job_id
      returning f.org_id, f.job_id, f.state, f.attempts, f.error, f.worker_id, f.started_at, f.finished_at
    ),
    history as (
      insert into smartqueue.attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at, finished_at)
      select
        org_id, job_id, attempts, case error ->> 'code' when 'worker_lost' then 'lost' else state::text end, error,
        worker_id, started_at, finished_at
      from retried
      where worker_id is not null
        and started_at is not null
    ),
    obstacle as materialized (
      select d.child_id, count(*)::integer as remaining
      from dependency d
      left join parent p on p.job_id = d.parent_id
      where d.inside or p.state <> 'completed'
      group by d.child_id
    ),
    placed as materialized (
      select
        q.job_id, q.org_id, q.series_id, q.type, q.lane, q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by, q.run_at,
        o.remaining, j.on_parent_failure,
        (case when o.remaining > 0 then 'blocked' when q.run_at > now() then 'pending' else 'ready' end)::smartqueue.job_state as status
      from retried r
      join smartqueue.queue_entries q on q.org_id = r.org_id and q.job_id = r.job_id
      join smartqueue.jobs j on j.org_id = r.org_id and j.id = r.job_id
      left join obstacle o on o.child_id = r.job_id
      order by r.job_id
    ),
    audit as (${auditJobs('jobs.retried', 'placed')}
    ),
    blocked as (
      insert into smartqueue.blocked_jobs (job_id, org_id, remaining, on_parent_failure)
      select job_id, org_id, remaining, on_parent_failure
      from placed
      where status = 'blocked'
    ),
    pending as (
      insert into smartqueue.waiting_jobs (job_id, org_id, state, attempts, wake_at)
      select job_id, org_id, status, 0, run_at
      from placed
      where status = 'pending'
    ),
    ready as (
      insert into smartqueue.ready_jobs (job_id, org_id, series_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
      select job_id, org_id, series_id, type, lane, 0, cpu_units, memory_mb, predicted_ms, start_by
      from placed
      where status = 'ready'
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, status as state, 0 as attempt, 'retried' as reason, now() as at
        from placed
      ) transition
      group by org_id
    )
    select job_id, type, status
    from placed
    union all
    select null, null, null
    from room
    where jobs < found_jobs`,
  values: [orgId, jobIds, states],
})
