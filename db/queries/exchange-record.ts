import type { ExchangeShape } from './exchange-shape.ts'

/**
 * Who exchanges is alive. It also keeps the watchdog away from a lease of which jobs have just completed: it would not
 * see that yet, and take them for held.
 */
const RENEWED = `now() + :lease_seconds! * interval '1 second'`

/**
 * The lease row is locked, so that a cancellation, which takes a job out of it, comes before or after and not between.
 * All at once and in the order of their tokens, as a renewal does: whoever locks several must not wait crosswise.
 * Arrays by their subscripts and not by unnest, which stores each of them once more.
 */
export const recordEnds = ({ results, revises }: ExchangeShape): string => `
    lease as materialized (
      select token, job_ids
      from leases
      where token = any (${revises ? ':tokens! || :started_tokens!' : ':tokens!'})
      order by token
      for update
    ),
    held as materialized (
      select
        (:job_ids!)[n] as job_id,
        (:orgs!)[(:org_numbers!)[n]] as org_id,
        (:stream_ids!)[n] as stream_id,
        (:attempts!)[n] as attempt,
        (:ran_ms!)[n] as ran_ms,
        now() - (:ran_ms!)[n] * interval '1 millisecond' as started_at,
        (:announced!)[n] as announced${
          revises
            ? `,
        (:states!)[n] as state,
        (:errors!)[n] as error,
        (:delays_ms!)[n] as delay_ms`
            : ''
        }${
          results
            ? `,
        (:results!)[n] as result`
            : ''
        }
      from generate_series(1, cardinality(:job_ids!)) as n
      where (
        (:job_ids!)[n] in (select unnest(job_ids) from lease${revises ? ' where token = any (:tokens!)' : ''})
      ) is true
    ),
    completed as (
      insert into finished_jobs (
        org_id, job_id, stream_id, state, attempts, worker_id, started_at, runtime_ms${results ? ', result' : ''}
      )
      select
        org_id, job_id, stream_id, 'completed', attempt, :worker_id!, started_at, ran_ms${results ? ', result' : ''}
      from held${
        revises
          ? `
      where state = 'completed'`
          : ''
      }
    ),
    closed as (
      delete from leases
      where token = any (:closed!)
    )${
      revises
        ? ''
        : `,
    renewed as (
      update leases
      set expires_at = ${RENEWED}
      where token = any (:tokens!)
        and token <> all (:closed!)
    )`
    }`

export const recordFailures = `
    failed as (
      insert into finished_jobs (
        org_id, job_id, stream_id, state, attempts, error, fingerprint, worker_id, started_at, runtime_ms
      )
      select
        org_id, job_id, stream_id, state, attempt, error, error_fingerprint(error), :worker_id!, started_at, ran_ms
      from held
      where state = 'failed'
    ),
    unfinished as (
      insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select
        org_id, job_id, attempt, case state when 'pending' then 'snoozed' else 'failed' end, error, :worker_id!,
        started_at
      from held
      where state in ('retrying', 'pending')
    ),
    waiting as (
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at, error)
      select
        job_id, org_id, state, case state when 'pending' then attempt - 1 else attempt end,
        now() + delay_ms * interval '1 millisecond', error
      from held
      where state in ('retrying', 'pending')
    )`

/**
 * A job that comes back leaves its lease: only a completed one, which cannot, may stay in it until it is closed.
 * Started jobs get their time.
 */
export const reviseLeases = `
    begun as materialized (
      select
        l.token, h.org_id, h.job_id, h.attempt,
        now() - (:started_ms!)[array_position(:started_ids!, h.job_id)] * interval '1 millisecond' as started_at
      from leases l
      cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
        as h (job_id, org_id, attempt, started_at)
      where l.token = any (:started_tokens!)
        and h.job_id = any (:started_ids!)
        and h.started_at is null
    ),
    revised as (
      update leases l
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

/** Half as long again, or two thirds: then the queued jobs of a stream are scored again. */
const MOVED = Math.log(1.5).toFixed(3)

/** db/rules/estimate.ts says why. A group of which a part came too late teaches nothing. */
export const learn = `
    learned as (
      update streams s
      set
        (runs, mean_log, deviation_log, moved) = (
          select
            s.runs + m, mean_log, deviation_log,
            s.scored_log is null or abs(mean_log - s.scored_log) > ${MOVED}
          from (
            select
              m,
              case s.runs when 0 then log else s.mean_log + step * surprise end as mean_log,
              case s.runs
                when 0 then 0.5
                else greatest(s.deviation_log + step * (abs(surprise) + spread - s.deviation_log), 0.01)
              end as deviation_log
            from (
              select
                m, log, spread,
                greatest(1 - 0.9::double precision ^ m, m / (s.runs + m)) as step,
                least(
                  greatest(log - s.mean_log, -greatest(0.3, 3 * s.deviation_log)),
                  greatest(0.3, 3 * s.deviation_log)
                ) as surprise
              from (
                select
                  (:sample_runs!)[n] as m, (:sample_means!)[n] as log, (:sample_spreads!)[n] as spread
                from array_position(:sample_streams!, s.id) as n
              ) sample
            ) weighed
          ) folded
        )
      where s.id = any (:sample_streams!)
        and (select count(*) from held) = cardinality(:job_ids!)
    )`
