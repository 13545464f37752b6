/**
 * What of a page of events concerns all organisations together: the work that came, by the minute, for those who forecast it;
 * and sums since the beginning, for metrics. Parts of `roll-up`, which see what its other parts have looked up.
 */
import { CALLBACK_TYPE } from '../rules/callbacks.ts'

/** How many of the jobs of a row went to a state. */
export const countOf = (state: string): string => `case
          when cardinality(states) = 1 then case states[1] when '${state}' then jobs else 0 end
          else cardinality(array_positions(states, '${state}'))
        end`

/** Of a page with more submissions than so many some are looked up, at equal distances, each for those before it. */
const LOOKED_UP = 500

/**
 * Work that nobody has announced: not to be run later, not of schedules, and not callbacks, which follow from other jobs. While
 * few jobs come it is exact; while so many come that pages are full, each has its share of a minute.
 */
export const addLoad = (isSubmission: string): string => `
    submissions as materialized (
      select org_id, date_trunc('minute', at) as at, job_ids, states, jobs, sum(jobs) over (order by xid, id) - jobs as before
      from page
      where ${isSubmission}
    ),
    -- Odd: jobs of two kinds may come by turns.
    distance as materialized (
      select sum(jobs) as jobs, 2 * (sum(jobs)::bigint / ${2 * LOOKED_UP}) + 1 as step
      from submissions
    ),
    arrived as materialized (
      select s.org_id, s.at, s.job_ids[e.n] as job_id, e.weight
      from distance d
      cross join submissions s
      -- By subscripts: to unnest them all takes several times as long.
      cross join lateral (
        select n::integer as n, d.step as weight
        from generate_series(d.step - s.before % d.step, s.jobs, d.step) as n
        union all
        select s.jobs, d.jobs % d.step
        where s.before + s.jobs = d.jobs
          and d.jobs % d.step > 0
      ) e
      where s.states[least(e.n, cardinality(s.states))] <> 'pending'
    ),
    loaded as (
      insert into smartqueue.load_minutes as m (at, jobs, work_ms)
      select a.at, sum(a.weight), sum(a.weight * j.predicted_ms)
      from arrived a
      cross join lateral (
        select type, triggered_by, predicted_ms
        from smartqueue.jobs
        where org_id = a.org_id
          and id = a.job_id
        offset 0
      ) j
      where j.type <> '${CALLBACK_TYPE}'
        and j.triggered_by ->> 'kind' is distinct from 'schedule'
      group by a.at
      order by a.at
      on conflict (at) do update
      set
        jobs = m.jobs + excluded.jobs,
        work_ms = m.work_ms + excluded.work_ms
    )`

/**
 * Of events that say why, one by one: there are few. An attempt whose worker was lost has not failed, and a job has none that
 * fails with another that it depended on. Handlers give codes to their errors, also these: so the state counts, too.
 */
const NOTABLE = `
    notable as materialized (
      select
        count(*) filter (where reason = 'worker_lost' and state in ('ready', 'failed')) as lost,
        count(*) filter (where reason = 'retried' and state in ('pending', 'blocked', 'ready')) as retried,
        count(*) filter (
          where state = 'failed' and (reason = 'worker_lost' or reason = 'dependency_failed' and attempt = 0)
        ) as without_failure
      from (
        select
          coalesce(e.state, g.states[1]) as state, coalesce(e.attempt, g.attempts[1]) as attempt,
          coalesce(e.reason, case cardinality(g.reasons) when 1 then g.reasons[1] end) as reason
        from page g
        cross join lateral unnest(g.job_ids, g.states, g.attempts, g.reasons) as e (job_id, state, attempt, reason)
        where g.reasons && '{worker_lost,retried,dependency_failed}'
      ) said
    )`

const HISTOGRAMS = `
    runtimes as materialized (
      select
        coalesce(smartqueue.histogram_of(array_agg(bucket), array_agg(jobs)), '{}')::bigint[] as counts,
        coalesce(sum(ms), 0) as ms
      from (
        select smartqueue.log_bucket(runtime_ms) as bucket, sum(weight)::bigint as jobs, sum(weight * runtime_ms) as ms
        from looked_up
        where runtime_ms is not null
        group by 1
      ) bucketed
    ),
    all_waits as materialized (
      select
        coalesce(smartqueue.histogram_of(array_agg(bucket), array_agg(jobs)), '{}')::bigint[] as counts,
        coalesce(sum(ms), 0) as ms
      from (
        select bucket, sum(waited)::bigint as jobs, sum(wait_ms) as ms
        from measures
        where waited > 0
        group by 1
      ) bucketed
    )`

const SUMS = [
  'submitted',
  'completed',
  'failed_attempts',
  'dead',
  'retried',
  'cancelled',
  'lost_leases',
  'runtime_ms',
  'wait_ms',
]

/** The one row of sums. */
export const ADD_TOTALS = `${NOTABLE},${HISTOGRAMS},
    totalled as (
      insert into smartqueue.job_totals as t (${SUMS.join(', ')}, runtimes, waits)
      select
        c.submitted, c.completed, c.retrying + c.failed - n.without_failure, c.failed, c.retrying + n.retried, c.cancelled,
        n.lost, r.ms, w.ms, r.counts, w.counts
      from (
        select
          sum(submitted) as submitted, sum(completed) as completed, sum(failed) as failed, sum(retrying) as retrying,
          sum(cancelled) as cancelled
        from counts
      ) c
      cross join notable n
      cross join runtimes r
      cross join all_waits w
      where exists (select from page)
      on conflict (only_row) do update
      set
        ${SUMS.map((sum) => `${sum} = t.${sum} + excluded.${sum}`).join(',\n        ')},
        runtimes = smartqueue.add_counts(t.runtimes, excluded.runtimes),
        waits = smartqueue.add_counts(t.waits, excluded.waits)
    )`
