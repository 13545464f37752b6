import { INSERT_EVENTS } from '../event-groups.ts'
import type { Query } from '../query.ts'
import type { LeaseKey } from './exchange.ts'

/**
 * Running attempts have taken longer than their p99: an event says so. Answers those that are held under these leases,
 * were started, and have not ended; the lock of the lease keeps them from ending in between.
 */
export const reportSlowJobs = (held: readonly LeaseKey[]): Query<{ job_id: string }> => ({
  name: 'report-slow-jobs',
  text: `
    with lease as materialized (
      select token, job_ids, org_ids, attempts, started_ats
      from smartqueue.leases
      where token = any ($2::bigint[])
      order by token
      for update
    ),
    slow as materialized (
      select h.job_id, h.org_id, h.attempt
      from lease l
      cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where (l.token, h.job_id) in (select token, job_id from unnest($1::uuid[], $2::bigint[]) as g (job_id, token))
        and h.started_at is not null
        and not smartqueue.has_finished(h.org_id, h.job_id)
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, 'running'::smartqueue.job_state as state, attempt, 'slow' as reason, now() as at
        from slow
      ) transition
      group by org_id
    )
    select job_id
    from slow`,
  values: [held.map(({ job_id }) => job_id), held.map(({ token }) => token)],
})
