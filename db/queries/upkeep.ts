import { INSERT_EVENTS } from '../event-groups.ts'
import { IN_TERM } from '../in-term.ts'
import type { Query } from '../query.ts'
import { FIRST_PARKED_LANE, PARKING } from '../rules/lanes.ts'

const READY_COLUMNS = `
        job_id, org_id, series_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by`

/**
 * The last unfinished attempt of a job: its outcome and worker. Attempts that were given back say nothing
 * about the job.
 */
const LAST_EXECUTION = (of: 'h' | 'r'): string => `
        select outcome, worker_id
        from smartqueue.attempts
        where org_id = ${of}.org_id
          and job_id = ${of}.job_id
          and outcome <> 'given_back'
        order by id desc
        limit 1`

export type ReclaimedJob = {
  job_id: string
  /** Null if the job failed. */
  type: string | null
  worker_id: string
  state: 'ready' | 'failed'
  /** Whether the attempt counts. */
  counts: boolean
  /** Whether it runs alone from now on. */
  suspect: boolean
  /** Types of jobs that no longer have to run alone. */
  acquitted_types: string[]
}

/** Jobs whose time has come, run_at or backoff, become ready. */
export const wakeDueJobs = (term: string, limit: number): Query<{ job_id: string; type: string }> => ({
  name: 'wake-due-jobs',
  text: `
    with due as materialized (
      select job_id, org_id, attempts
      from smartqueue.waiting_jobs
      where wake_at <= now()
        and ${IN_TERM}
      order by wake_at
      limit $2::int
      for update skip locked
    ),
    woken as (
      delete from smartqueue.waiting_jobs
      where job_id = any (array(select job_id from due))
    ),
    ready as (
      insert into smartqueue.ready_jobs (${READY_COLUMNS}
      )
      select
        q.job_id, q.org_id, q.series_id, q.type, q.lane, due.attempts, q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by
      from due
      join smartqueue.queue_entries q on q.org_id = due.org_id and q.job_id = due.job_id
      returning job_id, org_id, type, attempts
    ),
    event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, 'ready'::smartqueue.job_state as state, attempts as attempt, null as reason, now() as at
        from ready
      ) transition
      group by org_id
    )
    select job_id, type
    from ready`,
  values: [term, limit],
})

/**
 * The watchdog: takes jobs back from workers that stopped renewing their leases.
 *
 * A started attempt counts if its job was the only one its worker held, so that a job that keeps killing its
 * worker ends up `failed`. If the worker held several jobs, any of them or none may have been the cause, so
 * no attempt counts. A job that is lost twice in a row becomes a suspect and runs alone from then on (ADR
 * 22). Once a suspect kills a worker that it had to itself, the cause is known: the jobs that were lost with
 * it before no longer have to run alone.
 *
 * The leases of one worker expire at slightly different times. `workers.lost_at` keeps the last of them from
 * looking like the only one: a token begins with the time at which its lease was created.
 *
 * An attempt that was not reported as started does not count either. But the job may have killed its worker
 * before the start was reported, so its next claim counts as started from the outset, as for every job that
 * may have been the cause.
 */
export const reclaimExpiredLeases = (term: string, limit: number): Query<ReclaimedJob> => ({
  name: 'reclaim-expired-leases',
  text: `
    with expired as materialized (
      select token, worker_id, alone, job_ids, org_ids, attempts, started_ats
      from smartqueue.leases
      where expires_at <= now()
        and ${IN_TERM}
      order by token
      limit $2::int
      for update skip locked
    ),
    lost as (
      delete from smartqueue.leases
      where token = any (array(select token from expired))
    ),
    in_hand as materialized (
      select worker_id, count(*) as jobs
      from smartqueue.held_jobs
      where worker_id in (select worker_id from expired)
      group by worker_id
    ),
    -- Of the jobs that it does not hold any more, a lease names only completed ones.
    held as materialized (
      select
        e.worker_id, e.alone, h.job_id, h.org_id, h.attempt, h.started_at,
        h.started_at is not null
          and i.jobs = 1
          and (w.lost_at < to_timestamp((e.token >> 20) / 1000.0)) is not false as counts
      from expired e
      left join in_hand i on i.worker_id = e.worker_id
      left join smartqueue.workers w on w.worker_id = e.worker_id
      cross join lateral unnest(e.job_ids, e.org_ids, e.attempts, e.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where not smartqueue.has_finished(h.org_id, h.job_id)
    ),
    marked as (
      update smartqueue.workers w
      set lost_at = now()
      from (select worker_id from smartqueue.workers where worker_id in (select worker_id from held) order by worker_id for update) l
      where w.worker_id = l.worker_id
    ),
    judged as materialized (
      select
        h.job_id, h.org_id, h.worker_id, h.attempt, h.started_at, h.counts,
        case when h.counts then h.attempt else h.attempt - 1 end as attempts,
        (case when h.counts and h.attempt >= j.max_attempts then 'failed' else 'ready' end)::smartqueue.job_state as state,
        h.started_at is not null and (h.alone or before.outcome = 'lost') is true as suspect,
        case when h.alone then before.worker_id end as shared_worker,
        jsonb_build_object(
          'code', 'worker_lost',
          'message', 'Worker ' || h.worker_id || ' stopped answering during attempt ' || h.attempt
            || case when h.counts then '.' else '. The worker also held other jobs, so the attempt does not count.' end
        ) as error
      from held h
      join smartqueue.jobs j on j.org_id = h.org_id and j.id = h.job_id
      left join lateral (${LAST_EXECUTION('h')}
      ) before on true
    ),
    unfinished as (
      insert into smartqueue.attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select org_id, job_id, attempt, 'lost', error, worker_id, started_at
      from judged
      where started_at is not null
        and state = 'ready'
    ),
    line as (
      insert into smartqueue.job_logs (org_id, job_id, attempt, at, level, message)
      select org_id, job_id, attempt, now(), 'error', error ->> 'message'
      from judged
      where started_at is not null
    ),
    failed as (
      insert into smartqueue.finished_jobs (org_id, job_id, series_id, state, attempts, error, fingerprint, worker_id, started_at)
      select j.org_id, j.id, j.series_id, 'failed', d.attempts, d.error, smartqueue.error_fingerprint(d.error), d.worker_id, d.started_at
      from judged d
      join smartqueue.jobs j on j.org_id = d.org_id and j.id = d.job_id
      where d.state = 'failed'
    ),
    ready as (
      insert into smartqueue.ready_jobs (${READY_COLUMNS}, suspect, alone
      )
      select
        q.job_id, q.org_id, q.series_id, q.type, case when d.suspect then q.lane + ${PARKING} else q.lane end, d.attempts,
        q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by, not d.counts, d.suspect
      from judged d
      join smartqueue.queue_entries q on q.org_id = d.org_id and q.job_id = d.job_id
      where d.state = 'ready'
      returning job_id, type
    ),
    acquitted as (
      update smartqueue.ready_jobs r
      set alone = false, lane = r.lane - ${PARKING}, key = nextval('smartqueue.ready_keys')
      where r.alone
        -- A leader of the previous release brings back everything that is parked.
        and r.lane >= ${FIRST_PARKED_LANE}
        and (select worker_id from (${LAST_EXECUTION('r')}
        ) before) in (select shared_worker from judged)
      returning r.type
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
      d.job_id, r.type, d.worker_id, d.state, d.counts, d.suspect,
      array(select distinct type from acquitted) as acquitted_types,
      case when d.state = 'failed' then smartqueue.settle_dependents('{}', array[d.job_id]) end as settled
    from judged d
    left join ready r on r.job_id = d.job_id`,
  values: [term, limit],
})

/** Workers that have not been heard of are marked offline, and forgotten a day later. */
export const markSilentWorkers = (term: string, silentSeconds: number): Query<{ worker_id: string }> => ({
  name: 'mark-silent-workers',
  text: `
    with forgotten as (
      delete from smartqueue.workers
      where status = 'offline'
        and last_seen < now() - interval '1 day'
        and ${IN_TERM}
    )
    update smartqueue.workers w
    set status = 'offline', running = 0
    from (
      select worker_id
      from smartqueue.workers
      where status <> 'offline'
        and last_seen < now() - $2::int * interval '1 second'
        and ${IN_TERM}
      order by worker_id
      for update
    ) silent
    where w.worker_id = silent.worker_id
    returning w.worker_id`,
  values: [term, silentSeconds],
})

/**
 * What a series without executions of its own starts from: the mean over the series of its type, and over all. Only until
 * the learner knows the type: rows with a median are its own.
 */
export const estimateTypes = (term: string): Query<never> => ({
  name: 'estimate-types',
  text: `
    insert into smartqueue.type_estimates as t (type, runs, mean_log, deviation_log)
    select
      coalesce(type, ''), sum(runs),
      sum(weight * mean_log) / sum(weight),
      sum(weight * deviation_log) / sum(weight) + stddev_pop(mean_log)
    from (select type, runs, mean_log, deviation_log, least(runs, 100) as weight from smartqueue.series where runs > 0) s
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
