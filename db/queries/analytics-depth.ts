import type { Query } from '../query.ts'

/**
 * Samples the queues of all organisations and adds them to their minute and hour. A queue that became empty counts as
 * empty until the hour is over. Also keeps changes of the live slots, and the gauges for metrics.
 *
 * Priorities stand with the jobs, so about 5,000 of each status are drawn by their ids (20,000 at most) and stand for
 * all; the sums are exact. Counting a million ready jobs takes half a second.
 */
export const sampleDepths = (term: string, everySeconds: number): Query<{ orgs: number }> => ({
  name: 'sample-depths',
  text: `
    -- The sample before decides which share of each status is looked up.
    with step as materialized (
      select
        greatest(1, coalesce(sum(jobs) filter (where status = 'pending'), 0)::bigint / 5000) as pending,
        greatest(1, coalesce(sum(jobs) filter (where status = 'blocked'), 0)::bigint / 5000) as blocked,
        greatest(1, coalesce(sum(jobs) filter (where status = 'ready'), 0)::bigint / 5000) as ready,
        greatest(1, coalesce(sum(jobs) filter (where status = 'retrying'), 0)::bigint / 5000) as retrying
      from smartqueue.queue_gauges
      cross join jsonb_to_recordset(depths) as d (status text, jobs bigint)
    ),
    part as materialized (
      select
        org_id, state::text as status, count(*) as jobs, 0::double precision as predicted_ms,
        null::timestamptz as oldest_ready_at,
        array_agg(job_id) filter (
          where smartqueue.is_drawn(
            job_id, case state when 'pending' then (select pending from step) else (select retrying from step) end
          )
        ) as drawn
      from smartqueue.waiting_jobs
      group by org_id, state
      union all
      select
        org_id, 'blocked', count(*), 0, null,
        array_agg(job_id) filter (where smartqueue.is_drawn(job_id, (select blocked from step)))
      from smartqueue.blocked_jobs
      group by org_id
      union all
      select
        -- From lane 5,000 on jobs are parked.
        org_id, 'ready', count(*), sum(predicted_ms), min(ready_at) filter (where lane < 5000),
        array_agg(job_id) filter (where smartqueue.is_drawn(job_id, (select ready from step)))
      from smartqueue.ready_jobs
      group by org_id
      union all
      select
        h.org_id, 'running', count(*),
        sum(smartqueue.remaining_ms(h.started_at, j.predicted_ms, j.predicted_p90_ms)), null,
        array_agg(h.job_id)
      from smartqueue.held_jobs h
      join smartqueue.jobs j on j.org_id = h.org_id and j.id = h.job_id
      group by h.org_id
    ),
    seen as materialized (
      select
        org_id,
        coalesce(sum(jobs) filter (where status = 'pending'), 0)::bigint as pending,
        coalesce(sum(jobs) filter (where status = 'blocked'), 0)::bigint as blocked,
        coalesce(sum(jobs) filter (where status = 'ready'), 0)::bigint as ready,
        coalesce(sum(jobs) filter (where status = 'running'), 0)::bigint as running,
        coalesce(sum(jobs) filter (where status = 'retrying'), 0)::bigint as retrying,
        sum(predicted_ms) / 1000 as predicted_seconds
      from part
      where (select smartqueue.in_term($1::bigint))
      group by org_id
    ),
    spans as materialized (
      select span, date_bin(span * interval '1 second', now(), 'epoch') as at
      from (values (60::smallint), (3600::smallint)) as s (span)
    ),
    sampled as (
      insert into smartqueue.job_rollups as r (
        org_id, span, at, samples, pending, blocked, ready, running, retrying, predicted_seconds, newest_sample
      )
      select
        org_id, span, at, 1 + floor(extract(epoch from now() - at) / $2::double precision), pending, blocked, ready,
        running, retrying, predicted_seconds, to_jsonb(seen)
      from seen
      cross join spans
      union all
      -- Queues that have become empty.
      select org_id, span, at, 1, 0, 0, 0, 0, 0, 0, '{}'
      from smartqueue.job_rollups
      join spans using (span, at)
      where samples > 0
        and org_id not in (select org_id from seen)
        and (select smartqueue.in_term($1::bigint))
      -- In the order of roll-up, which adds to the same rows.
      order by 1, 2
      on conflict (org_id, span, at) do update
      set
        samples = case r.samples when 0 then excluded.samples else r.samples + 1 end,
        pending = r.pending + excluded.pending, blocked = r.blocked + excluded.blocked,
        ready = r.ready + excluded.ready, running = r.running + excluded.running,
        retrying = r.retrying + excluded.retrying,
        predicted_seconds = r.predicted_seconds + excluded.predicted_seconds, newest_sample = excluded.newest_sample
    ),
    slots as (
      insert into smartqueue.slot_changes (slots)
      select live.slots
      from smartqueue.live_slots() as live (slots)
      where live.slots is distinct from (select slots from smartqueue.slot_changes order by at desc limit 1)
        and (select smartqueue.in_term($1::bigint))
      on conflict (at) do update
      set slots = excluded.slots
    ),
    totals as materialized (
      select status, sum(jobs) as jobs
      from part
      group by status
    ),
    drawn as materialized (
      select p.status, p.org_id, d.job_id
      from part p
      cross join lateral unnest(p.drawn) as d (job_id)
      limit 20000
    ),
    classes as materialized (
      select d.status, j.priority as class, count(*) / sum(count(*)) over (partition by d.status) as share
      from drawn d
      cross join lateral (
        select priority
        from smartqueue.jobs
        where org_id = d.org_id
          and id = d.job_id
        offset 0
      ) j
      group by d.status, j.priority
    ),
    gauged as (
      insert into smartqueue.queue_gauges (taken_at, depths, oldest_ready_at)
      select
        now(),
        (
          select coalesce(
            jsonb_agg(
              jsonb_build_object(
                'class', coalesce(c.class, 'normal'), 'status', t.status, 'jobs', round(t.jobs * coalesce(c.share, 1))
              )
            ),
            '[]'
          )
          from totals t
          left join classes c on c.status = t.status
        ),
        (select min(oldest_ready_at) from part)
      where (select smartqueue.in_term($1::bigint))
      on conflict (only_row) do update
      set taken_at = excluded.taken_at, depths = excluded.depths, oldest_ready_at = excluded.oldest_ready_at
    )
    select count(*)::int as orgs
    from seen`,
  values: [term, everySeconds],
})
