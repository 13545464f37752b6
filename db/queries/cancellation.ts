import { INSERT_EVENTS } from '../event-groups.ts'
import { withoutJobs } from '../lease-arrays.ts'
import type { Query } from '../query.ts'
import { auditJobs } from './audit.ts'

/** `worker_id`: who holds the job and must let go of it. */
export type CancelledJob = { job_id: string; worker_id: string | null }

const takeFrom = (table: string, attempts: string, condition = ''): string => `
      delete from ${table} q
      where q.ctid = any (
        array(
          select ctid
          from ${table}
          where org_id = $1::uuid
            and job_id = any ($2::uuid[])${condition}
          order by job_id
          for update
        )
      )
      returning q.job_id, q.org_id, ${attempts} as attempts, null as worker_id, null::timestamptz as started_at`

/**
 * Takes jobs from wherever they wait or run, and finishes them as cancelled; whoever depends on them fails or waits.
 * A job that moves to another place while the statement waits for its row is not found any more: it has no row in the
 * answer, and the caller tries again. Those that have finished have none either.
 *
 * A lease may still name a job that has completed, perhaps so recently that this statement does not see it: then the
 * insertion conflicts, and the job is left as it is. Rows are locked in the order of their ids, as others do who lock
 * many, and blocked jobs after leases: whoever ends a job locks first its lease and then those that wait for it.
 */
export const cancelJobs = (orgId: string, jobIds: readonly string[]): Query<CancelledJob> => ({
  name: 'cancel-jobs',
  text: `
    with ready as (${takeFrom('smartqueue.ready_jobs', 'q.attempts')}
    ),
    waiting as (${takeFrom('smartqueue.waiting_jobs', 'q.attempts')}
    ),
    lease as materialized (
      select token, worker_id, job_ids, org_ids, attempts, started_ats
      from smartqueue.leases
      where job_ids && $2::uuid[]
      order by token
      for update
    ),
    blocked as (${takeFrom('smartqueue.blocked_jobs', '0', ' and (select count(*) from lease) >= 0')}
    ),
    held as materialized (
      select distinct on (h.job_id) l.token, l.worker_id, h.job_id, h.org_id, h.attempt, h.started_at
      from lease l
      cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where h.org_id = $1::uuid
        and h.job_id = any ($2::uuid[])
        and h.job_id not in (select job_id from ready union all select job_id from waiting)
      order by h.job_id, l.token desc
    ),
    candidate as materialized (
      select * from ready
      union all
      select * from waiting
      union all
      select * from blocked
      union all
      select job_id, org_id, case when started_at is null then attempt - 1 else attempt end, worker_id, started_at
      from held
    ),
    finished as (
      insert into smartqueue.finished_jobs (org_id, job_id, series_id, state, attempts, worker_id, started_at)
      select
        c.org_id, c.job_id, j.series_id, 'cancelled', c.attempts,
        case when c.started_at is not null then c.worker_id end, c.started_at
      from candidate c
      join smartqueue.jobs j on j.org_id = c.org_id and j.id = c.job_id
      on conflict do nothing
      returning job_id, org_id, series_id, started_at
    ),
    execution as (
      insert into smartqueue.executions (org_id, series_id, outcome, job_ids, ran_ms)
      select
        org_id, series_id, 'cancelled', array_agg(job_id), array_agg(extract(epoch from now() - started_at) * 1000)
      from finished
      where started_at is not null
      group by org_id, series_id
    ),
    cancelled as materialized (
      select job_id, org_id, attempts, worker_id
      from candidate
      where job_id in (select job_id from finished)
    ),
    revised as (
      update smartqueue.leases l
      set
        ${withoutJobs('cancelled')}
      where l.token in (select token from held)
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, 'cancelled'::smartqueue.job_state as state, attempts as attempt, null as reason, now() as at
        from cancelled
      ) transition
      group by org_id
    ),
    audit as (${auditJobs('jobs.cancelled', 'cancelled')}
    ),
    unreserved as (
      delete from smartqueue.reservations
      where job_id in (select job_id from cancelled)
    ),
    settled as materialized (
      select smartqueue.settle_dependents('{}', array(select job_id from cancelled))
      where exists (select from cancelled)
    )
    select job_id, worker_id, (select count(*) from settled) as settled
    from cancelled`,
  values: [orgId, jobIds],
})
