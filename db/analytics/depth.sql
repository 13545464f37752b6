-- The current and future queue depth of an organisation. Runs with the rights of the caller, who sees an empty queue
-- for another organisation.

create or replace function remaining_ms(
  started_at timestamptz, predicted_ms double precision, predicted_p90_ms double precision
) returns double precision
language sql stable
-- A job that has exceeded its median is expected to run longer, in proportion to its spread. A job that has not started
-- has its whole median left.
return greatest(
  predicted_ms - coalesce(extract(epoch from now() - started_at)::double precision * 1000, 0),
  extract(epoch from now() - started_at)::double precision * 1000 * (sqrt(predicted_p90_ms / predicted_ms) - 1), 1
);

create or replace function depth_of_queue(in_org uuid) returns jsonb
language sql stable
-- Counts up to 5,000 jobs in each state, which takes a few milliseconds; for a deeper queue it uses the leader's newest
-- sample. The oldest ready job is the oldest of the 5,000 that were submitted first.
begin atomic
  select jsonb_build_object(
    'pending', case when w.pending < 5000 then w.pending else greatest(w.pending, n.pending) end,
    'blocked', case when w.blocked < 5000 then w.blocked else greatest(w.blocked, n.blocked) end,
    'ready', case when r.jobs < 5000 then r.jobs else greatest(r.jobs, n.ready) end,
    'running', h.running,
    'retrying', case when w.retrying < 5000 then w.retrying else greatest(w.retrying, n.retrying) end,
    'predicted_ms', h.ms + case
      when r.jobs < 5000 then r.ms
      else greatest(r.ms, n.predicted_seconds * 1000 - h.ms)
    end,
    'oldest_ready_seconds', extract(epoch from now() - r.oldest)
  )
  from (
    select count(*) as jobs, coalesce(sum(predicted_ms), 0)::double precision as ms, min(ready_at) as oldest
    from (
      select predicted_ms, ready_at
      from ready_jobs
      where org_id = in_org
      order by job_id
      limit 5000
    ) first
  ) r
  cross join (
    select
      count(*) as running,
      coalesce(sum(remaining_ms(h.started_at, j.predicted_ms, j.predicted_p90_ms)), 0) as ms
    from held_jobs h
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    where h.org_id = in_org
  ) h
  cross join (
    select
      (
        select count(*)
        from (select from waiting_jobs where org_id = in_org and state = 'pending' limit 5000) counted
      ) as pending,
      (
        select count(*)
        from (select from waiting_jobs where org_id = in_org and state = 'retrying' limit 5000) counted
      ) as retrying,
      (select count(*) from (select from blocked_jobs where org_id = in_org limit 5000) counted) as blocked
  ) w
  left join lateral (
    select s.pending, s.blocked, s.ready, s.retrying, s.predicted_seconds
    from job_rollups r
    cross join lateral jsonb_to_record(r.newest_sample) as s (
      pending bigint, blocked bigint, ready bigint, retrying bigint, predicted_seconds double precision
    )
    where org_id = in_org
      and span = 60
      and at > now() - interval '10 minutes'
      and samples > 0
    order by at desc
    limit 1
  ) n on true;
end;

create or replace function load_ahead(in_org uuid) returns jsonb
language sql stable
-- The inputs of the depth forecast. The arrivals of the last hour exclude jobs of schedules, whose next ticks are
-- known, and delayed jobs, which wait for their time.
begin atomic
  select jsonb_build_object(
    'slots', live_slots(),
    'paused', exists (select from pauses where org_id = in_org and type is null),
    'minutes', (
      select jsonb_agg(greatest(0, coalesce(r.submitted - r.delayed, 0) - coalesce(t.fired, 0)) order by m.at)
      from generate_series(
        date_trunc('minute', now()) - interval '60 minutes', date_trunc('minute', now()) - interval '1 minute',
        interval '1 minute'
      ) as m (at)
      left join job_rollups r on r.org_id = in_org and r.span = 60 and r.at = m.at
      left join (
        select date_trunc('minute', t.fired_at) as at, count(*) as fired
        from schedules s
        join schedule_ticks t
          on t.schedule_id = s.id
          and t.tick_at > now() - interval '62 minutes'
          and t.outcome = 'fired'
        where s.org_id = in_org
        group by 1
      ) t on t.at = m.at
    ),
    'same_hour', h.same_hour,
    'next_hour', h.next_hour,
    'mean_ms', h.mean_ms,
    'waking', (
      select coalesce(
        jsonb_agg(
          jsonb_build_object('in_seconds', extract(epoch from w.wake_at - now()), 'predicted_ms', j.predicted_ms)
        ),
        '[]'
      )
      from (
        select job_id, wake_at
        from (
          (select job_id, wake_at from waiting_jobs where org_id = in_org and state = 'pending' limit 10000)
          union all
          (select job_id, wake_at from waiting_jobs where org_id = in_org and state = 'retrying' limit 10000)
        ) one
        where wake_at < now() + interval '1 hour'
        limit 2000
      ) w
      join jobs j on j.org_id = in_org and j.id = w.job_id
    ),
    'schedules', (
      select coalesce(
        jsonb_agg(jsonb_build_object('cron', s.cron, 'timezone', s.timezone, 'predicted_ms', exp(e.mean_log))), '[]'
      )
      from (
        select cron, timezone, job
        from schedules
        where org_id = in_org
          and next_at < now() + interval '1 hour'
        order by next_at
        limit 50
      ) s
      left join series e on e.org_id = in_org and e.type = s.job ->> 'type' and e.name = s.job ->> 'name'
    )
  )
  from (
    select
      -- The mean of the same hour a day ago and a week ago, and of the hour after it.
      avg(submitted - delayed) filter (where hours_ago in (24, 168)) as same_hour,
      avg(submitted - delayed) filter (where hours_ago in (23, 167)) as next_hour,
      sum(runtime_ms) filter (where hours_ago < 24) / nullif(sum(ran) filter (where hours_ago < 24), 0) as mean_ms
    from (
      select r.*, extract(epoch from date_bin('1 hour', now(), 'epoch') - at) / 3600 as hours_ago
      from job_rollups r
      where org_id = in_org
        and span = 3600
        and at >= bucket_start(3600, 169)
    ) hourly
  ) h;
end;

grant execute on function remaining_ms to smartqueue_functions, smartqueue_workers;
grant execute on function depth_of_queue, load_ahead to smartqueue_functions;
