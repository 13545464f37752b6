import type { ExchangeShape } from './exchange-shape.ts'

/**
 * Who exchanges is alive. It also keeps the watchdog away from a lease of which jobs have just completed: it would not
 * see that yet, and take them for held.
 */
export const RENEWED = `now() + :lease_seconds! * interval '1 second'`

/**
 * Records a group of which every attempt has completed. A job leaves its lease in every other way but this one, so
 * leases that name as many jobs as they were made with still hold all of them: nothing need be looked up for each job.
 * Leases that do not leave everything as it was, and the worker asks for each job (`exchange-ends.ts`).
 *
 * Jobs come in stretches of one organisation and series, whose events and executions are slices of the very arrays that
 * were sent.
 * Lease rows are locked, so that a cancellation, which takes a job out of one, comes before or after and not between;
 * in the order of their tokens, as a renewal does: whoever locks several must not wait crosswise.
 */
export const recordCompletions = ({ results }: ExchangeShape): string => `
    lease as materialized (
      select token, cardinality(job_ids) as jobs
      from smartqueue.leases
      where token = any (:tokens!)
      order by token
      for update
    ),
    verdict as materialized (
      select count(*) = cardinality(:tokens!) and sum(jobs) = :lease_jobs! as intact
      from lease
    ),
    stretch as materialized (
      select
        (:stretch_orgs!)[s] as org_id, (:stretch_series!)[s] as series_id, (:stretch_announced!)[s] as announced,
        (:stretch_firsts!)[s] as first, (:stretch_lasts!)[s] as last
      from generate_series(1, cardinality(:stretch_orgs!)) as s
      where (select intact from verdict)
    ),
    completed as (
      insert into smartqueue.finished_jobs (
        org_id, job_id, series_id, state, attempts, worker_id, started_at, runtime_ms${results ? ', result' : ''}
      )
      select
        org_id, (:job_ids!)[n], series_id, 'completed', (:common_attempts!)[least(n, cardinality(:common_attempts!))],
        :worker_id!, now() - (:ran_ms!)[n] * interval '1 millisecond', (:ran_ms!)[n]${results ? ', (:results!)[n]' : ''}
      from stretch
      cross join lateral generate_series(first, last) as n
    ),
    closed as (
      delete from smartqueue.leases
      where token = any (:closed!)
        and (select intact from verdict)
    ),
    renewed as (
      update smartqueue.leases
      set expires_at = ${RENEWED}
      where token = any (:tokens!)
        and token <> all (:closed!)
    ),
    execution as (
      insert into smartqueue.executions (org_id, series_id, outcome, job_ids, ran_ms)
      select org_id, series_id, 'completed', (:job_ids!)[first:last], (:ran_ms!)[first:last]
      from stretch
    ),
    completion_event as (
      insert into smartqueue.job_event_groups (org_id, job_ids, states, attempts, reasons, ats, ran_ms)
      select
        org_id, (:job_ids!)[min(first):max(last)], '{completed}',
        case
          when cardinality(:common_attempts!) > 1 then (:common_attempts!)[min(first):max(last)]
          else :common_attempts!
        end,
        '{}', '{}', case when announced then '{}' else (:ran_ms!)[min(first):max(last)] end
      from stretch
      group by org_id, announced
    )`

export const RECORDED = `(select intact from verdict)`
