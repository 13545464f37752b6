import { NOTIFY_READY } from '../channels.ts'
import type { Query } from '../query.ts'

/** Jobs whose time has come, run_at or backoff, become ready. */
export const wakeDueJobs = (limit: number): Query<{ job_id: string }> => ({
  name: 'wake-due-jobs',
  text: `
    with due as materialized (
      select job_id
      from waiting_jobs
      where wake_at <= now()
      order by wake_at
      limit $1::int
      for update skip locked
    ),
    woken as (
      delete from waiting_jobs w
      using due
      where w.job_id = due.job_id
      returning w.job_id, w.org_id, w.state, w.attempts
    ),
    ready as (
      insert into ready_jobs (job_id, org_id, type, rank, attempts)
      select w.job_id, w.org_id, j.type, j.rank, w.attempts
      from woken w
      join jobs j on j.id = w.job_id
      returning job_id, org_id, type, attempts
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt)
      select org_id, job_id, 'ready', attempts
      from ready
    ),${NOTIFY_READY}
    select job_id, (select count(*) from notified) as notified
    from ready`,
  values: [limit],
})

/**
 * Takes jobs from workers that stopped renewing. The attempt counts, so that a job that keeps killing its
 * worker ends in `failed` and not in an endless loop.
 */
export const reclaimExpiredLeases = (
  limit: number,
): Query<{ job_id: string; worker_id: string; state: 'ready' | 'failed' }> => ({
  name: 'reclaim-expired-leases',
  text: `
    with expired as materialized (
      select job_id
      from leases
      where expires_at <= now()
      order by expires_at
      limit $1::int
      for update skip locked
    ),
    lost as (
      delete from leases l
      using expired e
      where l.job_id = e.job_id
      returning l.job_id, l.org_id, l.worker_id, l.attempt, l.started_at
    ),
    judged as (
      select
        l.job_id, l.org_id, l.worker_id, l.attempt, l.started_at, j.type, j.rank,
        case when l.attempt >= j.max_attempts then 'failed' else 'ready' end as state,
        jsonb_build_object(
          'code', 'worker_lost',
          'message', 'Worker ' || l.worker_id || ' stopped answering during attempt ' || l.attempt || '.'
        ) as error
      from lost l
      join jobs j on j.id = l.job_id
    ),
    attempt as (
      insert into attempts (job_id, org_id, attempt, outcome, error, worker_id, started_at)
      select job_id, org_id, attempt, 'lost', error, worker_id, started_at
      from judged
    ),
    line as (
      insert into job_logs (org_id, job_id, attempt, at, level, message)
      select org_id, job_id, attempt, now(), 'error', error ->> 'message'
      from judged
    ),
    failed as (
      insert into finished_jobs (job_id, org_id, state, attempts, error, worker_id, started_at)
      select job_id, org_id, state, attempt, error, worker_id, started_at
      from judged
      where state = 'failed'
    ),
    ready as (
      insert into ready_jobs (job_id, org_id, type, rank, attempts)
      select job_id, org_id, type, rank, attempt
      from judged
      where state = 'ready'
      returning type
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt, reason)
      select org_id, job_id, state, attempt, 'worker_lost'
      from judged
    ),${NOTIFY_READY}
    select job_id, worker_id, state, (select count(*) from notified) as notified
    from judged`,
  values: [limit],
})
