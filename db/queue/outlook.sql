-- The state of the queue, from which start times are estimated: an organisation's own lanes, and sums by level over all
-- others.

create or replace function share_level(p_ms double precision, p_weight double precision) returns smallint
language sql immutable
-- Organisations of one level have the same waiting work per unit of weight, to within a factor of e^(1/4).
return floor(4 * ln(1 + p_ms / p_weight))::smallint;

create or replace function renew_org_queues(p_at timestamptz) returns void
language plpgsql
as $$
-- One pass over ready_jobs. `used_ms` and the loads come from the newest 1,000 rows of executions, at the right end of
-- the index. If they cover less than a minute, the numbers are extrapolated to a minute.
--
-- An organisation is short of its share if it used less than half of it and has more work waiting than it used. One that
-- needs little and gets it is not short, and neither is one at its limit of running jobs.
begin
  with waiting as (
    select
      w.org_id, array_agg(w.lane order by w.lane) as lanes, array_agg(w.jobs order by w.lane) as lane_jobs,
      array_agg(w.ms order by w.lane) as lane_ms, sum(w.jobs)::integer as jobs, sum(w.ms) as ms
    from (
      select r.org_id, r.lane, count(*)::integer as jobs, sum(r.predicted_ms)::double precision as ms
      from ready_jobs r
      where r.lane < 5000
      group by r.org_id, r.lane
    ) w
    group by w.org_id
  ),
  newest as materialized (
    -- All jobs of a row belong to one series, so the lane is taken from the first and the mean from the first eight.
    select
      e.org_id, e.job_ids[1] as job_id, e.at, cardinality(e.ran_ms) as jobs,
      (select avg(ms) from unnest(e.ran_ms[1:8]) ms) as mean_ms
    from executions e
    order by e.xid desc, e.id desc
    limit 1000
  ),
  span as materialized (
    select
      s.starts_at, extract(epoch from p_at - s.starts_at)::double precision * 1000 as ms
    from (
      select
        case
          when count(*) < 1000 then p_at - interval '1 minute'
          else least(greatest(min(n.at), p_at - interval '1 minute'), p_at - interval '1 second')
        end as starts_at
      from newest n
    ) s
  ),
  ended as (
    select
      by_lane.org_id, array_agg(by_lane.lane order by by_lane.lane) as lanes,
      array_agg(by_lane.load order by by_lane.lane) as loads,
      sum(by_lane.used_ms) as used_ms, sum(by_lane.ran_ms) as ran_ms, sum(by_lane.expected_ms) as expected_ms
    from (
      select
        n.org_id, lane_of(j.rank_base + j.rank_slope * ln(j.predicted_ms)) as lane,
        sum(n.jobs * n.mean_ms) / max(s.ms) as load,
        sum(n.jobs * least(n.mean_ms, extract(epoch from n.at - s.starts_at)::double precision * 1000)) as used_ms,
        sum(n.jobs * n.mean_ms) as ran_ms,
        sum(n.jobs * j.predicted_ms) as expected_ms
      from span s
      join newest n on n.at > s.starts_at
      join jobs j on j.org_id = n.org_id and j.id = n.job_id
      group by 1, 2
    ) by_lane
    group by by_lane.org_id
  ),
  running as (
    select h.org_id, array_agg(h.remaining_ms) as remaining_ms, sum(h.ran_ms) as ran_ms
    from (
      select
        h.org_id, remaining_ms(h.started_at, j.predicted_ms, j.predicted_p90_ms)::real as remaining_ms,
        least(s.ms, extract(epoch from p_at - h.started_at)::double precision * 1000) as ran_ms
      from span s
      join held_jobs h on h.expires_at > p_at
      join jobs j on j.org_id = h.org_id and j.id = h.job_id
      limit 5000
    ) h
    group by h.org_id
  ),
  present as materialized (
    select
      o.*, q.weight, q.running_jobs as running_limit,
      (o.ended_ms + o.running_ran_ms) * 60000 / s.ms as used_ms
    from (
      select
        org_id, coalesce(w.lanes, '{}') as lanes, coalesce(w.lane_jobs, '{}') as lane_jobs,
        coalesce(w.lane_ms, '{}') as lane_ms, coalesce(w.jobs, 0) as waiting_jobs, coalesce(w.ms, 0) as waiting_ms,
        coalesce(r.remaining_ms, '{}') as running_ms, coalesce(r.ran_ms, 0) as running_ran_ms,
        coalesce(e.lanes, '{}') as recent_lanes, coalesce(e.loads, '{}') as recent_loads,
        coalesce(e.used_ms, 0) as ended_ms, coalesce(e.ran_ms, 0) as ran_ms, coalesce(e.expected_ms, 0) as expected_ms
      from waiting w
      full join running r using (org_id)
      full join ended e using (org_id)
    ) o
    cross join span s
    cross join lateral quotas_of(o.org_id) as q
  ),
  gone as (
    delete from org_queues o
    where not exists (select from present p where p.org_id = o.org_id)
  )
  insert into org_queues as o (
    org_id, weight, lanes, lane_jobs, lane_ms, waiting_jobs, waiting_ms, running_ms, used_ms, recent_lanes,
    recent_loads, ran_ms, expected_ms, short_since
  )
  select
    p.org_id, p.weight, p.lanes, p.lane_jobs, p.lane_ms, p.waiting_jobs, p.waiting_ms, p.running_ms, p.used_ms,
    p.recent_lanes, p.recent_loads, p.ran_ms, p.expected_ms,
    case
      when p.used_ms < p.waiting_ms
        and p.used_ms < 0.5 * sum(p.used_ms) over () * p.weight
          / sum(p.weight) filter (where p.waiting_jobs > 0 or p.running_ms <> '{}') over ()
        and (p.running_limit is null or cardinality(p.running_ms) < p.running_limit)
        then p_at
    end
  from present p
  on conflict (org_id) do update
  set
    weight = excluded.weight,
    (lanes, lane_jobs, lane_ms) = row(excluded.lanes, excluded.lane_jobs, excluded.lane_ms),
    (waiting_jobs, waiting_ms) = row(excluded.waiting_jobs, excluded.waiting_ms),
    (running_ms, used_ms) = row(excluded.running_ms, excluded.used_ms),
    (recent_lanes, recent_loads) = row(excluded.recent_lanes, excluded.recent_loads),
    (ran_ms, expected_ms) = row(excluded.ran_ms, excluded.expected_ms),
    short_since = case when excluded.short_since is not null then coalesce(o.short_since, excluded.short_since) end;
end
$$;

create or replace function queue_snapshot(p_at_leisure boolean default false) returns queue_snapshots
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set max_parallel_workers_per_gather = 0
as $$
-- Refreshed at most once a second, and rarely enough to take no more than 5 % of the time: with a million ready jobs a
-- refresh takes 0.3 s, and 1.1 s if they belong to 10,000 organisations with 40 lanes each. One caller refreshes it
-- while the others get the previous one. If a refresh takes more than 20 ms, only p_at_leisure callers do it, and the
-- others get a snapshot that is up to a minute old.
declare
  v_snapshot queue_snapshots;
  v_began constant timestamptz := clock_timestamp();
begin
  select * into v_snapshot from queue_snapshots;
  if
    v_began - v_snapshot.taken_at < greatest(interval '1 second', 20 * v_snapshot.took_ms * interval '1 millisecond')
    or (not p_at_leisure and v_snapshot.took_ms > 20 and v_began - v_snapshot.taken_at < interval '1 minute')
  then
    return v_snapshot;
  end if;
  if v_snapshot.only_row is null then
    insert into queue_snapshots default values on conflict do nothing;
  end if;
  perform from queue_snapshots where taken_at = coalesce(v_snapshot.taken_at, 'epoch') for update skip locked;
  if not found then return v_snapshot; end if;

  perform renew_org_queues(v_began);

  select coalesce(array_agg(lane), '{}'), coalesce(array_agg(jobs), '{}'), coalesce(array_agg(ms), '{}')
  into v_snapshot.lanes, v_snapshot.lane_jobs, v_snapshot.lane_ms
  from (
    select l.lane, sum(l.jobs)::integer as jobs, sum(l.ms) as ms
    from org_queues o
    cross join lateral unnest(o.lanes, o.lane_jobs, o.lane_ms) as l (lane, jobs, ms)
    group by l.lane
    order by l.lane
  ) by_lane;
  select coalesce(array_agg(r.ms), '{}')
  into v_snapshot.running_ms
  from org_queues o
  cross join lateral unnest(o.running_ms) as r (ms);
  select
    coalesce(array_agg(o.level), '{}'), coalesce(array_agg(o.orgs), '{}'), coalesce(array_agg(o.jobs), '{}'),
    coalesce(array_agg(o.ms), '{}'), coalesce(array_agg(o.weights), '{}'), coalesce(array_agg(o.loads), '{}'),
    -- Adding 2 s to both sums damps small samples. A factor above 3 is not caused by wrong predictions.
    least(3, greatest(1, (coalesce(sum(o.ran_ms), 0) + 2000) / (coalesce(sum(o.expected_ms), 0) + 2000))),
    coalesce(sum(o.active_weights), 0), coalesce(sum(o.used_ms), 0), coalesce(sum(o.waiting_orgs), 0),
    min(o.short_since)
  into
    v_snapshot.levels, v_snapshot.level_orgs, v_snapshot.level_jobs, v_snapshot.level_ms, v_snapshot.level_weights,
    v_snapshot.level_loads, v_snapshot.stretch, v_snapshot.weights, v_snapshot.used_ms, v_snapshot.waiting_orgs,
    v_snapshot.short_since
  from (
    select
      share_level(waiting_ms, weight) as level, count(*)::integer as orgs, sum(waiting_jobs)::integer as jobs,
      sum(waiting_ms) as ms, sum(weight::double precision) as weights,
      sum((select sum(load) from unnest(recent_loads) as load)) as loads, sum(ran_ms) as ran_ms,
      sum(expected_ms) as expected_ms,
      sum(weight::double precision) filter (where waiting_jobs > 0 or running_ms <> '{}') as active_weights,
      sum(used_ms) as used_ms, count(*) filter (where waiting_jobs > 0)::integer as waiting_orgs,
      min(short_since) as short_since
    from org_queues
    group by 1
  ) o;
  update queue_snapshots
  set
    (taken_at, took_ms) = (v_began, extract(epoch from clock_timestamp() - v_began) * 1000),
    (lanes, lane_jobs, lane_ms) = (v_snapshot.lanes, v_snapshot.lane_jobs, v_snapshot.lane_ms),
    (running_ms, stretch) = (v_snapshot.running_ms, v_snapshot.stretch),
    (weights, used_ms) = (v_snapshot.weights, v_snapshot.used_ms),
    (waiting_orgs, short_since) = (v_snapshot.waiting_orgs, v_snapshot.short_since),
    (levels, level_orgs, level_jobs) = (v_snapshot.levels, v_snapshot.level_orgs, v_snapshot.level_jobs),
    (level_ms, level_weights, level_loads)
      = (v_snapshot.level_ms, v_snapshot.level_weights, v_snapshot.level_loads)
  returning * into v_snapshot;
  return v_snapshot;
end
$$;

create or replace function queue_sums(p_org uuid) returns jsonb
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The queue as one organisation sees it: its own lanes, and sums over the others by level. Null right after a server
-- crash.
declare
  v_all constant queue_snapshots := queue_snapshot();
  v_own org_queues;
  v_is_active boolean;
begin
  if v_all.only_row is null then return null; end if;
  select * into v_own from org_queues o where o.org_id = p_org;
  if not found then
    select q.weight into v_own.weight from quotas_of(p_org) q;
  end if;
  v_is_active := coalesce(v_own.waiting_jobs > 0 or v_own.running_ms <> '{}', false);
  return jsonb_build_object(
    'age_ms', extract(epoch from clock_timestamp() - v_all.taken_at) * 1000, 'took_ms', v_all.took_ms,
    'depth', (select coalesce(sum(jobs), 0) from unnest(v_all.lane_jobs) as jobs),
    'running_ms', v_all.running_ms, 'stretch', v_all.stretch, 'lanes', coalesce(v_own.lanes, '{}'),
    'lane_jobs', coalesce(v_own.lane_jobs, '{}'), 'lane_ms', coalesce(v_own.lane_ms, '{}'),
    'recent_lanes', coalesce(v_own.recent_lanes, '{}'), 'recent_loads', coalesce(v_own.recent_loads, '{}'),
    'running_jobs', coalesce(cardinality(v_own.running_ms), 0), 'weight', v_own.weight,
    'share', v_own.weight / (v_all.weights + case when v_is_active then 0 else v_own.weight end),
    'used', coalesce(v_own.used_ms / nullif(v_all.used_ms, 0), 0), 'short_since', v_own.short_since,
    'others', (
      -- Subtract this organisation from its own level.
      select
        coalesce(
          jsonb_agg(
            jsonb_build_object(
              'jobs', l.jobs - coalesce(v_own.waiting_jobs * own.one, 0),
              'ms', greatest(0, l.ms - coalesce(v_own.waiting_ms * own.one, 0)),
              'weight', l.weight - v_own.weight * own.one,
              'load', greatest(
                0, l.load - own.one * coalesce((select sum(load) from unnest(v_own.recent_loads) as load), 0)
              )
            )
            order by l.level
          ),
          '[]'
        )
      from unnest(
        v_all.levels, v_all.level_orgs, v_all.level_jobs, v_all.level_ms, v_all.level_weights, v_all.level_loads
      ) as l (level, orgs, jobs, ms, weight, load)
      cross join lateral (
        select coalesce(l.level = share_level(v_own.waiting_ms, v_own.weight), false)::integer as one
      ) as own
      where l.orgs > own.one
    )
  );
end
$$;

create or replace function queue_place(
  p_org uuid,
  p_job uuid,
  p_most integer,
  out lane smallint,
  -- Jobs of the same flow that come before this one in the order of lanes, up to p_most.
  out ahead_jobs integer,
  out ahead_ms double precision,
  -- Whether all jobs ahead were counted.
  out counted boolean,
  -- If not counted, the approximate position in the lane, from 0 to 1, interpolated from the keys.
  out lane_position double precision,
  -- How many flows of the organisation have jobs, up to 100.
  out flows integer
)
language plpgsql
as $$
declare
  v_flow bigint;
  v_key bigint;
  -- The flows of the organisation are between these.
  v_before bigint;
  v_after bigint;
  v_first bigint;
  v_last bigint;
begin
  select r.flow, r.lane, r.key
  into v_flow, lane, v_key
  from ready_jobs r
  where r.org_id = p_org
    and r.job_id = p_job;
  if not found then return; end if;
  v_before := (v_flow >> 32 << 32) - 1;
  v_after := ((v_flow >> 32) + 1) << 32;

  select count(*), coalesce(sum(a.predicted_ms), 0)
  into ahead_jobs, ahead_ms
  from (
    select r.predicted_ms
    from ready_jobs r
    where r.flow = v_flow
      and (r.lane, r.key) < (queue_place.lane, v_key)
      and r.lane < 5000
    order by r.lane, r.key
    limit p_most
  ) a;
  counted := ahead_jobs < p_most;
  if not counted then
    -- Not min and max: a plan made while there were few jobs would read the whole lane.
    v_first := (
      select r.key
      from ready_jobs r
      where r.flow = v_flow
        and r.lane = queue_place.lane
        and r.lane < 5000
      order by r.key
      limit 1
    );
    v_last := (
      select r.key
      from ready_jobs r
      where r.flow = v_flow
        and r.lane = queue_place.lane
        and r.lane < 5000
      order by r.key desc
      limit 1
    );
    lane_position := coalesce((v_key - v_first)::double precision / nullif(v_last - v_first, 0), 0);
  end if;
  -- Most organisations have a single flow, which two index lookups confirm.
  flows := case
    when exists (select from ready_jobs r where r.flow > v_flow and r.flow < v_after and r.lane < 5000)
      or exists (select from ready_jobs r where r.flow > v_before and r.flow < v_flow and r.lane < 5000)
      then cardinality(find_flows(array[v_before], array[v_after], 100))
    else 1
  end;
end
$$;

grant execute on function share_level, queue_snapshot, queue_sums to smartqueue_functions, smartqueue_workers;
