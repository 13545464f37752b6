import { INSERT_EVENTS } from '../event-groups.ts'
import { IN_TERM } from '../in-term.ts'
import type { Query } from '../query.ts'

const READY_COLUMNS = `
        job_id, org_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by`

/** Jobs whose time has come, run_at or backoff, become ready. */
export const wakeDueJobs = (term: string, limit: number): Query<{ job_id: string; type: string }> => ({
  name: 'wake-due-jobs',
  text: `
    with due as materialized (
      select job_id, org_id, attempts
      from waiting_jobs
      where wake_at <= now()
        and ${IN_TERM}
      order by wake_at
      limit $2::int
      for update skip locked
    ),
    woken as (
      delete from waiting_jobs
      where job_id = any (array(select job_id from due))
    ),
    ready as (
      insert into ready_jobs (${READY_COLUMNS}
      )
      select
        q.job_id, q.org_id, q.stream_id, q.type, q.lane, due.attempts, q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by
      from due
      join queue_entries q on q.org_id = due.org_id and q.job_id = due.job_id
      returning job_id, org_id, type, attempts
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, 'ready'::job_state as state, attempts as attempt, null as reason, now() as at
        from ready
      ) transition
      group by org_id
    )
    select job_id, type
    from ready`,
  values: [term, limit],
})

/**
 * The watchdog: takes jobs from workers that stopped renewing. A started attempt counts, so that a job that keeps
 * killing its worker ends in `failed`. One that was held but not started does not count; but as it may have killed
 * its worker before that could be said, the next claim counts it as started from the outset.
 */
export const reclaimExpiredLeases = (
  term: string,
  limit: number,
): Query<{ job_id: string; type: string; worker_id: string; state: 'ready' | 'failed' }> => ({
  name: 'reclaim-expired-leases',
  text: `
    with expired as materialized (
      select token, worker_id, job_ids, org_ids, attempts, started_ats
      from leases
      where expires_at <= now()
        and ${IN_TERM}
      order by token
      limit $2::int
      for update skip locked
    ),
    lost as (
      delete from leases
      where token = any (array(select token from expired))
    ),
    -- Of the jobs that it does not hold any more, a lease names only completed ones.
    held as materialized (
      select e.worker_id, h.job_id, h.org_id, h.attempt, h.started_at
      from expired e
      cross join lateral unnest(e.job_ids, e.org_ids, e.attempts, e.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where not has_finished(h.org_id, h.job_id)
    ),
    judged as materialized (
      select
        e.job_id, e.org_id, e.worker_id, e.started_at,
        case when e.started_at is null then e.attempt - 1 else e.attempt end as attempts,
        (case when e.started_at is not null and e.attempt >= j.max_attempts then 'failed' else 'ready' end)::job_state as state,
        jsonb_build_object(
          'code', 'worker_lost',
          'message', 'Worker ' || e.worker_id || ' stopped answering during attempt ' || e.attempt || '.'
        ) as error
      from held e
      join jobs j on j.org_id = e.org_id and j.id = e.job_id
    ),
    unfinished as (
      insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select org_id, job_id, attempts, 'lost', error, worker_id, started_at
      from judged
      where started_at is not null
        and state = 'ready'
    ),
    line as (
      insert into job_logs (org_id, job_id, attempt, at, level, message)
      select org_id, job_id, attempts, now(), 'error', error ->> 'message'
      from judged
      where started_at is not null
    ),
    failed as (
      insert into finished_jobs (org_id, job_id, stream_id, state, attempts, error, fingerprint, worker_id, started_at)
      select j.org_id, j.id, j.stream_id, 'failed', d.attempts, d.error, error_fingerprint(d.error), d.worker_id, d.started_at
      from judged d
      join jobs j on j.org_id = d.org_id and j.id = d.job_id
      where d.state = 'failed'
    ),
    ready as (
      insert into ready_jobs (${READY_COLUMNS}, suspect
      )
      select
        q.job_id, q.org_id, q.stream_id, q.type, q.lane, d.attempts, q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by,
        d.started_at is null
      from judged d
      join queue_entries q on q.org_id = d.org_id and q.job_id = d.job_id
      where d.state = 'ready'
      returning job_id, type
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, state, attempts as attempt, 'worker_lost' as reason, now() as at
        from judged
        where started_at is not null
      ) transition
      group by org_id
    )
    select
      d.job_id, r.type, d.worker_id, d.state,
      case when d.state = 'failed' then settle_dependents('{}', array[d.job_id]) end as settled
    from judged d
    left join ready r on r.job_id = d.job_id`,
  values: [term, limit],
})

/** Workers that have not been heard of are marked offline, and forgotten a day later. */
export const markSilentWorkers = (term: string, silentSeconds: number): Query<{ worker_id: string }> => ({
  name: 'mark-silent-workers',
  text: `
    with forgotten as (
      delete from workers
      where status = 'offline'
        and last_seen < now() - interval '1 day'
        and ${IN_TERM}
    )
    update workers
    set status = 'offline', running = 0
    where status <> 'offline'
      and last_seen < now() - $2::int * interval '1 second'
      and ${IN_TERM}
    returning worker_id`,
  values: [term, silentSeconds],
})

/**
 * What a stream without executions of its own starts from: the mean over the streams of its type, and over all. Only until
 * the learner knows the type: rows with a median are its own.
 */
export const estimateTypes = (term: string): Query<never> => ({
  name: 'estimate-types',
  text: `
    insert into type_estimates as t (type, runs, mean_log, deviation_log)
    select
      coalesce(type, ''), sum(runs),
      sum(weight * mean_log) / sum(weight),
      sum(weight * deviation_log) / sum(weight) + stddev_pop(mean_log)
    from (select type, runs, mean_log, deviation_log, least(runs, 100) as weight from streams where runs > 0) s
    where ${IN_TERM}
    group by grouping sets ((type), ())
    having count(*) > 0
    order by 1
    on conflict (type) do update
    set runs = excluded.runs, mean_log = excluded.mean_log, deviation_log = excluded.deviation_log
    where t.median_log is null
      and t.runs <> excluded.runs`,
  values: [term],
})
