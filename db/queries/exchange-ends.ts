import { INSERT_EVENTS } from '../event-groups.ts'
import { TIMEOUT } from '../rules/estimate.ts'
import { RENEWED } from './exchange-completions.ts'
import type { ExchangeShape } from './exchange-shape.ts'

/**
 * Records attempts that ended in any way, each only if its lease still names it. The lease rows are locked for the same
 * reason as in `exchange-completions.ts`. Arrays by their subscripts and not by unnest, which stores each of them once
 * more.
 */
export const recordEnds = ({ results }: ExchangeShape): string => `
    lease as materialized (
      select token, job_ids, org_ids, attempts, started_ats
      from smartqueue.leases
      where token = any (:tokens! || :started_tokens!)
      order by token
      for update
    ),
    held as materialized (
      select
        (:job_ids!)[n] as job_id,
        (:orgs!)[(:org_numbers!)[n]] as org_id,
        (:series_ids!)[n] as series_id,
        (:attempts!)[n] as attempt,
        (:ran_ms!)[n] as ran_ms,
        now() - (:ran_ms!)[n] * interval '1 millisecond' as started_at,
        (:announced!)[n] as announced,
        (:states!)[n] as state,
        (:errors!)[n] as error,
        (:delays_ms!)[n] as delay_ms${
          results
            ? `,
        (:results!)[n] as result`
            : ''
        }
      from generate_series(1, cardinality(:job_ids!)) as n
      where (
        (:job_ids!)[n] in (select unnest(job_ids) from lease where token = any (:tokens!))
      ) is true
    ),
    completed as (
      insert into smartqueue.finished_jobs (
        org_id, job_id, series_id, state, attempts, worker_id, started_at, runtime_ms${results ? ', result' : ''}
      )
      select
        org_id, job_id, series_id, 'completed', attempt, :worker_id!, started_at, ran_ms${results ? ', result' : ''}
      from held
      where state = 'completed'
    ),
    closed as (
      delete from smartqueue.leases
      where token = any (:closed!)
    ),${RECORD_FAILURES},${RECORD_EXECUTIONS},${REVISE_LEASES},
    end_event as (
      ${INSERT_EVENTS}
      from (
        select org_id, job_id, 'running'::smartqueue.job_state as state, attempt, null as reason, started_at as at
        from held
        where not announced
        union all
        select org_id, job_id, 'running', attempt, null, started_at
        from begun
        union all
        select
          org_id, job_id, state, case state when 'pending' then attempt - 1 else attempt end,
          case state when 'pending' then 'snoozed' else error ->> 'code' end, now()
        from held
      ) transition
      group by org_id
    )`

/** A group of which a part came too late teaches nothing. */
export const ALL_HELD = `(select count(*) from held) = cardinality(:job_ids!)`

const RECORD_FAILURES = `
    failed as (
      insert into smartqueue.finished_jobs (
        org_id, job_id, series_id, state, attempts, error, fingerprint, worker_id, started_at, runtime_ms
      )
      select
        org_id, job_id, series_id, state, attempt, error, smartqueue.error_fingerprint(error), :worker_id!, started_at, ran_ms
      from held
      where state = 'failed'
    ),
    unfinished as (
      insert into smartqueue.attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select
        org_id, job_id, attempt, case state when 'pending' then 'snoozed' else 'failed' end, error, :worker_id!,
        started_at
      from held
      where state in ('retrying', 'pending')
    ),
    waiting as (
      insert into smartqueue.waiting_jobs (job_id, org_id, state, attempts, wake_at, error)
      select
        job_id, org_id, state, case state when 'pending' then attempt - 1 else attempt end,
        now() + delay_ms * interval '1 millisecond', error
      from held
      where state in ('retrying', 'pending')
    )`

/** What ran to its end, whichever that was. A snoozed attempt did not. */
const RECORD_EXECUTIONS = `
    execution as (
      insert into smartqueue.executions (org_id, series_id, outcome, job_ids, ran_ms)
      select org_id, series_id, outcome, array_agg(job_id), array_agg(ran_ms)
      from (
        select
          org_id, series_id, job_id, ran_ms,
          case
            when state = 'completed' then 'completed'
            when error ->> 'code' = '${TIMEOUT}' then 'timed_out'
            else 'failed'
          end as outcome
        from held
        where state <> 'pending'
      ) ended
      group by org_id, series_id, outcome
    )`

/**
 * A job that comes back leaves its lease: only a completed one, which cannot, may stay in it until it is closed.
 * Started jobs get their time.
 */
const REVISE_LEASES = `
    begun as materialized (
      select
        l.token, h.org_id, h.job_id, h.attempt,
        now() - (:started_ms!)[array_position(:started_ids!, h.job_id)] * interval '1 millisecond' as started_at
      from lease l
      cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where l.token = any (:started_tokens!)
        and h.job_id = any (:started_ids!)
        and h.started_at is null
    ),
    revised as (
      update smartqueue.leases l
      set
        expires_at = ${RENEWED},
        (job_ids, org_ids, attempts, started_ats) = (
          select
            coalesce(array_agg(h.job_id order by n), '{}'), coalesce(array_agg(h.org_id order by n), '{}'),
            coalesce(array_agg(h.attempt order by n), '{}'),
            coalesce(array_agg(coalesce(h.started_at, b.started_at) order by n), '{}')
          from unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
            with ordinality as h (job_id, org_id, attempt, started_at, n)
          left join begun b on b.token = l.token and b.job_id = h.job_id
          where h.job_id not in (select job_id from held where state <> 'completed')
        )
      where l.token = any (:tokens! || :started_tokens!)
        and l.token <> all (:closed!)
    )`
