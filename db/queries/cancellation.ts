import type { Query } from '../query.ts'

/** `worker_id`: who holds the job and must let go of it. */
export type CancelledJob = { job_id: string; worker_id: string | null }

/** What every place answers of the jobs taken from it. */
const TAKEN = 'q.job_id, q.org_id'

/**
 * Takes jobs from wherever they wait or run, and finishes them as cancelled; whoever depends on them fails or waits.
 * A job that moves to another place while the statement waits for its row is not found any more: it has no row in the
 * answer, and the caller tries again. Those that have finished have none either.
 *
 * Rows are locked in the order of their ids, as others do who lock many.
 */
export const cancelJobs = (orgId: string, jobIds: readonly string[]): Query<CancelledJob> => ({
  name: 'cancel-jobs',
  text: `
    with ready as (
      delete from ready_jobs q
      using (${lockIn('ready_jobs')}
      ) found
      where q.job_id = found.job_id
      returning ${TAKEN}, q.attempts, null as worker_id, null::timestamptz as started_at
    ),
    leased as (
      delete from leases q
      using (${lockIn('leases')}
      ) found
      where q.job_id = found.job_id
      returning ${TAKEN}, case when q.started_at is null then q.attempt - 1 else q.attempt end, q.worker_id, q.started_at
    ),
    waiting as (
      delete from waiting_jobs q
      using (${lockIn('waiting_jobs')}
      ) found
      where q.job_id = found.job_id
      returning ${TAKEN}, q.attempts, null, null::timestamptz
    ),
    blocked as (
      delete from blocked_jobs q
      using (${lockIn('blocked_jobs')}
      ) found
      where q.job_id = found.job_id
      returning ${TAKEN}, 0, null, null::timestamptz
    ),
    cancelled as materialized (
      select * from ready
      union all
      select * from leased
      union all
      select * from waiting
      union all
      select * from blocked
    ),
    finished as (
      insert into finished_jobs (org_id, job_id, stream_id, state, attempts, worker_id, started_at)
      select
        c.org_id, c.job_id, j.stream_id, 'cancelled', c.attempts,
        case when c.started_at is not null then c.worker_id end, c.started_at
      from cancelled c
      join jobs j on j.org_id = c.org_id and j.id = c.job_id
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt)
      select org_id, job_id, 'cancelled', attempts
      from cancelled
    ),
    unreserved as (
      delete from reservations
      where job_id in (select job_id from cancelled)
    ),
    settled as materialized (
      select settle_dependents('{}', array(select job_id from cancelled))
      where exists (select from cancelled)
    )
    select c.job_id, c.worker_id, (select count(*) from settled) as settled
    from cancelled c`,
  values: [orgId, jobIds],
})

function lockIn(table: string): string {
  return `
        select job_id
        from ${table}
        where org_id = $1::uuid
          and job_id = any ($2::uuid[])
        order by job_id
        for update`
}
