import { INSERT_EVENTS } from '../event-groups.ts'
import { withoutJobs } from '../lease-arrays.ts'
import type { Query } from '../query.ts'
import { PARKING } from '../rules/lanes.ts'
import type { LeaseKey } from './exchange.ts'

/** Renews leases, each with all of its jobs. Answers what they still hold; a job that is missing has been lost. */
export const renewLeases = (
  tokens: readonly string[],
  leaseSeconds: number,
): Query<{ token: string; job_ids: string[] }> => ({
  name: 'renew-leases',
  text: `
    with lease as materialized (
      select token
      from smartqueue.leases
      where token = any ($1::bigint[])
      order by token
      for update
    )
    update smartqueue.leases l
    set expires_at = now() + $2::int * interval '1 second'
    from lease
    where l.token = lease.token
    returning l.token, l.job_ids`,
  values: [tokens, leaseSeconds],
})

/**
 * Gives jobs back that the worker did not finish, or did not even start. They are ready again, at the end of their
 * lane, and an attempt that was started does not count. A suspect remains one.
 */
export const releaseJobs = (
  held: readonly LeaseKey[],
  reason: string,
): Query<{ job_id: string; type: string }> => ({
  name: 'release-jobs',
  text: `
    with lease as materialized (
      select token, worker_id, alone, job_ids, org_ids, attempts, started_ats
      from smartqueue.leases
      where token = any ($2::bigint[])
      order by token
      for update
    ),
    held as materialized (
      select l.token, l.worker_id, l.alone, h.job_id, h.org_id, h.attempt, h.started_at
      from lease l
      cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where (l.token, h.job_id) in (select token, job_id from unnest($1::uuid[], $2::bigint[]) as g (job_id, token))
    ),
    revised as (
      update smartqueue.leases l
      set
        ${withoutJobs('held')}
      where l.token in (select token from held)
    ),
    unfinished as (
      insert into smartqueue.attempts (org_id, job_id, attempt, outcome, worker_id, started_at)
      select org_id, job_id, attempt, 'given_back', worker_id, started_at
      from held
      where started_at is not null
    ),
    ready as (
      insert into smartqueue.ready_jobs (
        job_id, org_id, series_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by, alone
      )
      select
        q.job_id, q.org_id, q.series_id, q.type, case when h.alone then q.lane + ${PARKING} else q.lane end, h.attempt - 1,
        q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by, h.alone
      from held h
      join smartqueue.queue_entries q on q.org_id = h.org_id and q.job_id = h.job_id
      returning job_id, type
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, 'ready'::smartqueue.job_state as state, attempt - 1 as attempt, $3::text as reason, now() as at
        from held
        where started_at is not null
      ) transition
      group by org_id
    )
    select job_id, type
    from ready`,
  values: [held.map(({ job_id }) => job_id), held.map(({ token }) => token), reason],
})
