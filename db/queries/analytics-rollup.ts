/**
 * Rollups: what analytics read instead of jobs. The leader follows the rows of `job_event_groups` in the order of their
 * transactions, up to the oldest that still runs, and adds a page of them to the sums of each organisation, and of all
 * together (`rollup-totals.ts`). The rule that makes every event count once: the cursor is locked, read and moved by the very
 * statement that adds. One that dies has done nothing; of two at the same time the second goes on where the first has stopped.
 */
import type { Query } from '../query.ts'
import { SHORTEST_MS } from '../rules/estimate.ts'
import { APE_BUCKETS } from '../rules/log-histogram.ts'
import { ADD_TOTALS, addLoad, countOf } from './rollup-totals.ts'

/** How long there are rows for single minutes: the last 24 hours to the minute, and some to spare. */
export const MINUTES_KEPT = `interval '26 hours'`

/** How many rows of events a page has at most; and how many of their jobs, but for those of its last row. */
export type RollupLimits = { groups: number; jobs: number }

export type RollupPage = { groups: number; jobs: number /** There is more to count. */; more: boolean }

/** Only a submission leaves the times of its events empty (record_events). */
const IS_SUBMISSION = `times = 0 and attempts = '{0}' and states[1] in ('pending', 'blocked', 'ready')`

/**
 * How long a job waited: from the moment it could have started (submitted, its run_at, the end of the last job that it
 * depended on) to its start; of jobs that ended with their first attempt, as later ones waited for other reasons.
 */
export const READY_AT = `greatest(
          j.created_at, j.run_at,
          case
            when (select true from smartqueue.job_dependencies limit 1) then (
              select max(p.finished_at)
              from smartqueue.job_dependencies d
              join smartqueue.finished_jobs p on p.org_id = d.org_id and p.job_id = d.parent_id
              where d.child_id = j.id
            )
          end
        )`

/** An attempt of the job ended before the one that `e` tells of; also one before somebody retried it. */
export const IS_LATER_TRY = `exists (
          select
          from smartqueue.attempts a
          where a.org_id = e.org_id
            and a.job_id = e.job_id
            and a.finished_at < e.at
        )`

/**
 * Of a row with more jobs than so many, some are looked up, at equal distances, each for those before it: a worker that drains
 * a queue ends a thousand at a time, which are alike. They are counted all the same.
 */
const LOOKED_UP = 100

/**
 * Adds the next page of events. Jobs are looked up by their key, where they have just been written. `finished_at` tells the
 * end that an event is about from one that came after a retry; of that nothing but the count is known any more.
 *
 * Of a month of jobs in rows of twenty 86,000 are added a second, of a drain in rows of a thousand 700,000.
 */
export const rollUp = (term: string, limits: RollupLimits): Query<RollupPage> => ({
  name: 'roll-up',
  text: `
    with start as materialized (
      select xid, id, foreign_id
      from smartqueue.analytics_cursors
      where reader = 'rollups'
        and (select smartqueue.in_term($1::bigint))
      for update
    ),
    span as materialized (
      select
        g.xid, g.id, g.org_id, g.at, g.job_ids, g.states, g.attempts, g.reasons, cardinality(g.ats) as times,
        cardinality(g.job_ids) as jobs
      from start s
      cross join lateral (
        select xid, id, org_id, at, job_ids, states, attempts, reasons, ats
        from smartqueue.job_event_groups
        where (xid, id) > (s.xid, s.id)
          and xid < pg_snapshot_xmin(pg_current_snapshot())
          -- Not for an index: nearly all rows are beyond it.
          and (id > s.foreign_id) is true
        order by xid, id
        limit $2::int
      ) g
    ),
    page as materialized (
      select *, ceil(jobs::double precision / ${LOOKED_UP})::int as step
      from (select *, sum(jobs) over (order by xid, id) - jobs as before from span) s
      where before < $3::int
    ),
    moved as (
      update smartqueue.analytics_cursors
      set (xid, id) = (select xid, id from page order by xid desc, id desc limit 1)
      where reader = 'rollups'
        and exists (select from page)
    ),
    -- By the minute: what follows is about few rows.
    counts as materialized (
      select
        org_id, date_trunc('minute', at) as at,
        coalesce(sum(jobs) filter (where ${IS_SUBMISSION}), 0) as submitted,
        coalesce(sum(${countOf('pending')}) filter (where ${IS_SUBMISSION}), 0) as delayed,
        sum(${countOf('completed')}) as completed, sum(${countOf('failed')}) as failed,
        sum(${countOf('cancelled')}) as cancelled, sum(${countOf('retrying')}) as retrying
      from page
      group by 1, 2
    ),
    ended as materialized (
      select
        g.org_id, g.at, e.job_id, coalesce(e.state, g.states[1]) as state, coalesce(e.attempt, g.attempts[1]) as attempt,
        case when e.n % g.step = 0 then g.step else e.n % g.step end as weight
      from page g
      cross join lateral unnest(g.job_ids, g.states, g.attempts) with ordinality as e (job_id, state, attempt, n)
      where g.states && '{completed,failed}'
        and (e.n % g.step = 0 or e.n = g.jobs)
    ),
    looked_up as materialized (
      select
        e.org_id, e.at, e.weight, j.type, greatest(j.predicted_ms, ${SHORTEST_MS}) as predicted_ms, j.predicted_p90_ms,
        j.residual_log,
        case when e.state = 'completed' then greatest(f.runtime_ms, ${SHORTEST_MS}) end as runtime_ms,
        case
          when e.attempt = 1 and not ${IS_LATER_TRY}
          then greatest(0, extract(epoch from f.started_at - ${READY_AT})::double precision * 1000)
        end as wait_ms
      from ended e
      cross join lateral (
        select started_at, runtime_ms
        from smartqueue.finished_jobs
        where org_id = e.org_id
          and job_id = e.job_id
          and finished_at = e.at
          and started_at is not null
        offset 0
      ) f
      cross join lateral (
        select id, type, created_at, run_at, predicted_ms, predicted_p90_ms, residual_log
        from smartqueue.jobs
        where org_id = e.org_id
          and id = e.job_id
        offset 0
      ) j
      where e.state in ('completed', 'failed')
    ),
    measures as materialized (
      select
        org_id, date_trunc('minute', at) as at, smartqueue.log_bucket(wait_ms) as bucket,
        coalesce(sum(weight) filter (where runtime_ms is not null), 0) as ran,
        coalesce(sum(weight * runtime_ms), 0) as runtime_ms,
        coalesce(sum(weight) filter (where wait_ms is not null), 0) as waited, coalesce(sum(weight * wait_ms), 0) as wait_ms
      from looked_up
      group by 1, 2, 3
    ),
    rolled_up as (
      insert into smartqueue.job_rollups as r (
        org_id, span, at, submitted, delayed, completed, failed, cancelled, ran, runtime_ms, waited, wait_ms, waits
      )
      select
        org_id, span, at, sum(submitted), sum(delayed), sum(completed), sum(failed), sum(cancelled), sum(ran),
        sum(runtime_ms), sum(waited), sum(wait_ms),
        coalesce(
          smartqueue.histogram_of(
            array_agg(bucket) filter (where waited > 0), array_agg(waited) filter (where waited > 0)
          ),
          '{}'
        )
      from (
        select
          org_id, span, date_bin(span * interval '1 second', at, 'epoch') as at, bucket, sum(submitted) as submitted,
          sum(delayed) as delayed, sum(completed) as completed, sum(failed) as failed, sum(cancelled) as cancelled,
          sum(ran) as ran, sum(runtime_ms) as runtime_ms, sum(waited)::bigint as waited, sum(wait_ms) as wait_ms
        from (
          select
            org_id, at, null as bucket, submitted, delayed, completed, failed, cancelled, 0 as ran, 0 as runtime_ms,
            0 as waited, 0 as wait_ms
          from counts
          where submitted + completed + failed + cancelled > 0
          union all
          select org_id, at, bucket, 0, 0, 0, 0, 0, ran, runtime_ms, waited, wait_ms
          from measures
        ) minutely
        cross join (values (60::smallint), (3600::smallint)) as spans (span)
        where span = 3600
          or at > now() - ${MINUTES_KEPT}
        group by 1, 2, 3, 4
      ) bucketed
      group by org_id, span, at
      order by org_id, span, at
      on conflict (org_id, span, at) do update
      set
        submitted = r.submitted + excluded.submitted,
        delayed = r.delayed + excluded.delayed,
        completed = r.completed + excluded.completed,
        failed = r.failed + excluded.failed,
        cancelled = r.cancelled + excluded.cancelled,
        ran = r.ran + excluded.ran,
        runtime_ms = r.runtime_ms + excluded.runtime_ms,
        waited = r.waited + excluded.waited,
        wait_ms = r.wait_ms + excluded.wait_ms,
        waits = smartqueue.add_counts(r.waits, excluded.waits)
    ),
    errors as materialized (
      select
        org_id, type, at, least(smartqueue.log_bucket(ape * 1000), ${APE_BUCKETS}) as bucket, sum(weight) as jobs,
        sum(weight * log_error) as log_error,
        sum(weight * abs(log_error)) as abs_log_error,
        sum(weight * abs(log_error + residual_log)) as baseline_abs_log_error,
        coalesce(sum(weight) filter (where runtime_ms <= predicted_ms), 0) as within_p50,
        coalesce(sum(weight) filter (where runtime_ms <= predicted_p90_ms), 0) as within_p90
      from (
        select
          org_id, type, date_bin('1 hour', at, 'epoch') as at, weight, runtime_ms, predicted_ms, predicted_p90_ms, residual_log,
          ln(runtime_ms / predicted_ms) as log_error, abs(predicted_ms - runtime_ms) / runtime_ms as ape
        from looked_up
        where runtime_ms is not null
      ) predicted
      group by 1, 2, 3, 4
    ),
    judged as (
      insert into smartqueue.prediction_rollups as r (
        org_id, type, at, jobs, log_error, abs_log_error, baseline_abs_log_error, within_p50, within_p90, apes
      )
      select
        org_id, type, at, sum(jobs), sum(log_error), sum(abs_log_error), sum(baseline_abs_log_error), sum(within_p50),
        sum(within_p90), smartqueue.histogram_of(array_agg(bucket), array_agg(jobs::bigint))
      from (
        select
          org_id, coalesce(type, '') as type, at, bucket, sum(jobs) as jobs, sum(log_error) as log_error,
          sum(abs_log_error) as abs_log_error, sum(baseline_abs_log_error) as baseline_abs_log_error,
          sum(within_p50) as within_p50, sum(within_p90) as within_p90
        from errors
        group by grouping sets ((org_id, type, at, bucket), (org_id, at, bucket))
      ) bucketed
      group by org_id, type, at
      order by org_id, type, at
      on conflict (org_id, type, at) do update
      set
        jobs = r.jobs + excluded.jobs,
        log_error = r.log_error + excluded.log_error,
        abs_log_error = r.abs_log_error + excluded.abs_log_error,
        baseline_abs_log_error = r.baseline_abs_log_error + excluded.baseline_abs_log_error,
        within_p50 = r.within_p50 + excluded.within_p50,
        within_p90 = r.within_p90 + excluded.within_p90,
        apes = smartqueue.add_counts(r.apes, excluded.apes)
    ),${addLoad(IS_SUBMISSION)},${ADD_TOTALS}
    select
      (select count(*)::int from page) as groups, (select coalesce(sum(jobs), 0)::int from page) as jobs,
      (select count(*) from span) = $2::int or (select count(*) from page) < (select count(*) from span) as more`,
  values: [term, limits.groups, limits.jobs],
})

/** Whether there is something to add: a look that takes less than a millisecond, where to plan the addition takes several. */
export const lookForEvents = (): Query<{ some: boolean }> => ({
  name: 'look-for-events',
  text: `
    select exists (
      select
      from smartqueue.analytics_cursors c
      cross join lateral (
        select
        from smartqueue.job_event_groups
        where (xid, id) > (c.xid, c.id)
          and xid < pg_snapshot_xmin(pg_current_snapshot())
          and (id > c.foreign_id) is true
        limit 1
      ) g
      where c.reader = 'rollups'
    ) as some`,
  values: [],
})

/** When the first of the events that are not added yet happened; also of those that wait for a transaction before them. Null: all are. */
export const FIRST_UNCOUNTED_AT = `(
        select g.at
        from smartqueue.analytics_cursors c
        cross join lateral (
          select at
          from smartqueue.job_event_groups
          where (xid, id) > (c.xid, c.id)
            -- The index has only those, and the line before does not say it.
            and xid is not null
            and (id > c.foreign_id) is true
          order by xid, id
          limit 1
        ) g
        where c.reader = 'rollups'
      )`

/**
 * Begins anew at the present, if the cursor is beyond all transactions that there have been: the database is the dump of
 * another server's. The rows that came with it are passed over for good, as one day transactions of this one will have their
 * numbers.
 */
export const restartRollups = (term: string): Query<{ reader: string }> => ({
  name: 'restart-rollups',
  text: `
    update smartqueue.analytics_cursors
    set
      xid = pg_snapshot_xmin(pg_current_snapshot()),
      id = 0,
      foreign_id = coalesce(
        case reader
          when 'rollups' then (
            select max(id)
            from smartqueue.job_event_groups
            where xid >= pg_snapshot_xmax(pg_current_snapshot())
          )
          else (select max(id) from smartqueue.executions where xid >= pg_snapshot_xmax(pg_current_snapshot()))
        end,
        foreign_id
      )
    where xid > pg_snapshot_xmax(pg_current_snapshot())
      and (select smartqueue.in_term($1::bigint))
    returning reader`,
  values: [term],
})
