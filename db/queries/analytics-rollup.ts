/**
 * Rollups: what analytics read instead of jobs. The leader reads `job_event_groups` in commit order and adds a page of
 * it to the sums. Every event counts once, because the statement that adds also locks and moves the cursor.
 */
import type { Query } from '../query.ts'

/** The most rows of events that a page has, and the most jobs, not counting those of its last row. */
export type RollupLimits = { groups: number; jobs: number }

export type RollupPage = { groups: number; jobs: number /** There is more to count. */; more: boolean }

/**
 * Adds the next page of events. `finished_at` tells the end that an event is about from one after a retry, of which
 * only the count is still known. Only submissions write one time and attempt 0 for all their jobs.
 *
 * Of a row with 200 jobs or more, evenly spaced ones are looked up and stand for those before them; all are counted.
 * Measured: 86,000 jobs a second in rows of twenty, 700,000 in rows of a thousand.
 */
export const rollUp = (term: string, limits: RollupLimits): Query<RollupPage> => ({
  name: 'roll-up',
  text: `
    with start as materialized (
      select xid, id, foreign_id
      from smartqueue.event_cursors
      where reader = 'rollups'
        and (select smartqueue.in_term($1::bigint))
      for update
    ),
    span as materialized (
      select
        g.xid, g.id, g.org_id, g.at, g.job_ids, g.states, g.attempts, g.reasons,
        cardinality(g.job_ids) as jobs,
        cardinality(g.ats) = 0 and g.attempts = '{0}' and g.states[1] in ('pending', 'blocked', 'ready')
          as is_submission
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
      -- Odd: jobs of two kinds may come by turns.
      select *, (jobs / 100) | 1 as step
      from (select *, sum(jobs) over (order by xid, id) - jobs as before from span) s
      where before < $3::int
    ),
    moved as (
      update smartqueue.event_cursors
      set (xid, id) = (select xid, id from page order by xid desc, id desc limit 1)
      where reader = 'rollups'
        and exists (select from page)
    ),
    -- By the minute: what follows is about few rows.
    counts as materialized (
      select
        org_id, date_trunc('minute', at) as at,
        coalesce(sum(jobs) filter (where is_submission), 0) as submitted,
        coalesce(sum(smartqueue.count_in_state(states, jobs, 'pending')) filter (where is_submission), 0) as delayed,
        sum(smartqueue.count_in_state(states, jobs, 'completed')) as completed,
        sum(smartqueue.count_in_state(states, jobs, 'failed')) as failed,
        sum(smartqueue.count_in_state(states, jobs, 'cancelled')) as cancelled,
        sum(smartqueue.count_in_state(states, jobs, 'retrying')) as retrying
      from page
      group by 1, 2
    ),
    drawn as materialized (
      select
        g.org_id, g.at, g.is_submission, e.job_id, coalesce(e.state, g.states[1]) as state,
        coalesce(e.attempt, g.attempts[1]) as attempt,
        case when e.n % g.step = 0 then g.step else e.n % g.step end as weight
      from page g
      cross join lateral unnest(g.job_ids, g.states, g.attempts) with ordinality as e (job_id, state, attempt, n)
      where (g.is_submission or g.states && '{completed,failed}')
        and (e.n % g.step = 0 or e.n = g.jobs)
    ),
    looked_up as materialized (
      select
        e.org_id, e.at, e.weight, j.type, greatest(j.predicted_ms, 1) as predicted_ms, j.predicted_p90_ms,
        j.residual_log,
        case when e.state = 'completed' then greatest(f.runtime_ms, 1) end as runtime_ms,
        case
          when e.attempt = 1 and not r.is_later_try
          then greatest(0, extract(epoch from f.started_at - r.ready_at)::double precision * 1000)
        end as wait_ms
      from drawn e
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
      cross join lateral smartqueue.readiness_of(e.org_id, e.job_id, j.created_at, j.run_at, e.at) r
      where e.state in ('completed', 'failed')
    ),
    measures as materialized (
      select
        org_id, date_trunc('minute', at) as at, smartqueue.log_bucket(wait_ms) as bucket,
        coalesce(sum(weight) filter (where runtime_ms is not null), 0) as ran,
        coalesce(sum(weight * runtime_ms), 0) as runtime_ms,
        coalesce(sum(weight) filter (where wait_ms is not null), 0) as waited,
        coalesce(sum(weight * wait_ms), 0) as wait_ms
      from looked_up
      group by 1, 2, 3
    ),
    rolled_up as (
      insert into smartqueue.job_rollups as r (
        org_id, span, at, submitted, delayed, completed, failed, cancelled, ran, runtime_ms, waited, wait_ms, waits
      )
      select
        org_id, span, date_bin(span * interval '1 second', at, 'epoch'), sum(submitted), sum(delayed), sum(completed),
        sum(failed), sum(cancelled), sum(ran), sum(runtime_ms), sum(waited), sum(wait_ms),
        smartqueue.histogram_of(
          array_agg(bucket) filter (where waited > 0), array_agg(waited::bigint) filter (where waited > 0)
        )
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
        or at > now() - interval '26 hours'
      group by 1, 2, 3
      order by 1, 2, 3
      on conflict (org_id, span, at) do update
      set
        submitted = r.submitted + excluded.submitted, delayed = r.delayed + excluded.delayed,
        completed = r.completed + excluded.completed, failed = r.failed + excluded.failed,
        cancelled = r.cancelled + excluded.cancelled,
        ran = r.ran + excluded.ran, runtime_ms = r.runtime_ms + excluded.runtime_ms,
        waited = r.waited + excluded.waited, wait_ms = r.wait_ms + excluded.wait_ms,
        waits = smartqueue.add_counts(r.waits, excluded.waits)
    ),
    errors as materialized (
      select
        org_id, type, at, least(smartqueue.log_bucket(ape * 1000), 62) as bucket, sum(weight) as jobs,
        sum(weight * log_error) as log_error,
        sum(weight * abs(log_error)) as abs_log_error,
        sum(weight * abs(log_error + residual_log)) as baseline_abs_log_error,
        coalesce(sum(weight) filter (where runtime_ms <= predicted_ms), 0) as within_p50,
        coalesce(sum(weight) filter (where runtime_ms <= predicted_p90_ms), 0) as within_p90
      from (
        select
          org_id, type, date_bin('1 hour', at, 'epoch') as at, weight, runtime_ms, predicted_ms, predicted_p90_ms,
          residual_log, ln(runtime_ms / predicted_ms) as log_error, abs(predicted_ms - runtime_ms) / runtime_ms as ape
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
        org_id, coalesce(type, ''), at, sum(jobs), sum(log_error), sum(abs_log_error), sum(baseline_abs_log_error),
        sum(within_p50), sum(within_p90), smartqueue.histogram_of(array_agg(bucket), array_agg(jobs::bigint))
      from errors
      group by grouping sets ((org_id, type, at), (org_id, at))
      order by 1, 2, 3
      on conflict (org_id, type, at) do update
      set
        jobs = r.jobs + excluded.jobs, log_error = r.log_error + excluded.log_error,
        abs_log_error = r.abs_log_error + excluded.abs_log_error,
        baseline_abs_log_error = r.baseline_abs_log_error + excluded.baseline_abs_log_error,
        within_p50 = r.within_p50 + excluded.within_p50, within_p90 = r.within_p90 + excluded.within_p90,
        apes = smartqueue.add_counts(r.apes, excluded.apes)
    ),
    -- For the forecast: work that nobody announced, so not delayed, of a schedule or a callback.
    loaded as (
      insert into smartqueue.load_minutes as m (at, jobs, work_ms)
      select date_trunc('minute', d.at), sum(d.weight), sum(d.weight * j.predicted_ms)
      from drawn d
      cross join lateral (
        select type, triggered_by, predicted_ms
        from smartqueue.jobs
        where org_id = d.org_id
          and id = d.job_id
        offset 0
      ) j
      where d.is_submission
        and d.state <> 'pending'
        and j.type <> 'callback'
        and j.triggered_by ->> 'kind' is distinct from 'schedule'
      group by 1
      order by 1
      on conflict (at) do update
      set jobs = m.jobs + excluded.jobs, work_ms = m.work_ms + excluded.work_ms
    ),
    -- An attempt whose worker was lost has not failed, and a job that fails with its parent had no attempt. Handlers
    -- may use these codes too, so the state counts as well.
    notable as materialized (
      select
        count(*) filter (where reason = 'worker_lost' and state in ('ready', 'failed')) as lost,
        count(*) filter (where reason = 'retried' and state in ('pending', 'blocked', 'ready')) as retried,
        count(*) filter (
          where state = 'failed' and (reason = 'worker_lost' or reason = 'dependency_failed' and attempt = 0)
        ) as without_failure
      from page g
      cross join lateral smartqueue.unpack_events(
        g.job_ids, g.states, g.attempts, g.reasons, '{}', g.at, 0, g.jobs
      ) e
      where g.reasons && '{worker_lost,retried,dependency_failed}'
    ),
    histograms as materialized (
      select
        smartqueue.histogram_of(
          array_agg(smartqueue.log_bucket(runtime_ms)) filter (where runtime_ms is not null),
          array_agg(weight::bigint) filter (where runtime_ms is not null)
        ) as runtimes,
        smartqueue.histogram_of(
          array_agg(smartqueue.log_bucket(wait_ms)) filter (where wait_ms is not null),
          array_agg(weight::bigint) filter (where wait_ms is not null)
        ) as waits,
        coalesce(sum(weight * runtime_ms), 0) as runtime_ms, coalesce(sum(weight * wait_ms), 0) as wait_ms
      from looked_up
    ),
    totalled as (
      update smartqueue.job_totals t
      set
        submitted = t.submitted + c.submitted, completed = t.completed + c.completed, dead = t.dead + c.failed,
        failed_attempts = t.failed_attempts + c.retrying + c.failed - n.without_failure,
        retried = t.retried + c.retrying + n.retried, cancelled = t.cancelled + c.cancelled,
        lost_leases = t.lost_leases + n.lost, runtime_ms = t.runtime_ms + h.runtime_ms, wait_ms = t.wait_ms + h.wait_ms,
        runtimes = smartqueue.add_counts(t.runtimes, h.runtimes), waits = smartqueue.add_counts(t.waits, h.waits)
      from (
        select
          sum(submitted) as submitted, sum(completed) as completed, sum(failed) as failed, sum(retrying) as retrying,
          sum(cancelled) as cancelled
        from counts
        having count(*) > 0
      ) c
      cross join notable n
      cross join histograms h
    )
    select
      (select count(*)::int from page) as groups, (select coalesce(sum(jobs), 0)::int from page) as jobs,
      (select count(*) from span) = $2::int or (select count(*) from page) < (select count(*) from span) as more`,
  values: [term, limits.groups, limits.jobs],
})

/** The time of the first event that is not added yet. Takes less than 1 ms; planning `rollUp` takes several. */
export const findUncounted = (): Query<{ at: string | null }> => ({
  name: 'find-uncounted',
  text: 'select smartqueue.first_uncounted_at() as at',
  values: [],
})
