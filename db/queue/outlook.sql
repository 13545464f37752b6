-- The queue as a whole, from which the start of a job is estimated. These functions answer with sums over all
-- organisations, and reveal nothing about any one of them.

create or replace function queue_snapshot(at_leisure boolean default false) returns queue_snapshots
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set max_parallel_workers_per_gather = 0
as $$
-- Made anew at most once a second, and so seldom that it takes no more than a twentieth of the time: with a million
-- ready jobs it takes 0.3 s. One at a time: who comes meanwhile makes do with the one before. So does who is in a
-- hurry, if it takes long, for up to a minute: others come at leisure.
declare
  known queue_snapshots;
  locked queue_snapshots;
  began constant timestamptz := clock_timestamp();
begin
  select * into known from queue_snapshots;
  if
    began - known.taken_at < greatest(interval '1 second', 20 * known.took_ms * interval '1 millisecond')
    or (not at_leisure and known.took_ms > 20 and began - known.taken_at < interval '1 minute')
  then
    return known;
  end if;
  if known.only_row is null then
    insert into queue_snapshots default values on conflict do nothing;
  end if;
  select * into locked from queue_snapshots for update skip locked;
  if locked.only_row is null then
    return known;
  elsif locked.taken_at > known.taken_at then
    return locked;
  end if;
  select coalesce(array_agg(lane), '{}'), coalesce(array_agg(jobs), '{}'), coalesce(array_agg(ms), '{}')
  into locked.lanes, locked.lane_jobs, locked.lane_ms
  from (
    select lane, count(*)::integer as jobs, sum(predicted_ms)::double precision as ms
    from ready_jobs
    where lane < 5000
    group by lane
    order by lane
  ) by_lane;
  select coalesce(array_agg(remaining_ms::real), '{}')
  into locked.running_ms
  from (
    select
      -- A job that has passed its median is expected to run longer, in proportion to its spread.
      greatest(
        j.predicted_ms - ran.ms, ran.ms * (sqrt(j.predicted_p90_ms / j.predicted_ms) - 1), 1
      ) as remaining_ms
    from held_jobs h
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    cross join lateral (select extract(epoch from began - h.started_at)::double precision * 1000 as ms) ran
    where h.expires_at > began
    limit 5000
  ) in_hand;
  -- By the newest rows, which stand at the right of the index, up to a minute. A row is of one series: its first job
  -- tells the lane of all, and its first few how long they ran.
  select
    coalesce(array_agg(lane), '{}'), coalesce(array_agg(load), '{}'),
    -- Two seconds say nothing. Beyond three times it is not the sums that are wrong.
    least(3, greatest(1, (coalesce(sum(ran_ms), 0) + 2000) / (coalesce(sum(predicted_ms), 0) + 2000)))
  into locked.flow_lanes, locked.flow_loads, locked.stretch
  from (
    select
      lane_of(j.rank_base + j.rank_slope * ln(j.predicted_ms)) as lane,
      sum(e.ran_ms) / max(case when e.rows < 100 then 60000 else greatest(1000, e.span_ms) end) as load,
      sum(e.ran_ms) as ran_ms,
      sum(e.jobs * j.predicted_ms) as predicted_ms
    from (
      select
        newest.org_id, newest.job_id, newest.jobs, newest.ran_ms, count(*) over () as rows,
        extract(epoch from began - min(newest.at) over ())::double precision * 1000 as span_ms
      from (
        select
          org_id, job_ids[1] as job_id, at, cardinality(ran_ms) as jobs,
          cardinality(ran_ms) * (select avg(ms) from unnest(ran_ms[1:8]) ms) as ran_ms
        from executions
        order by xid desc, id desc
        limit 100
      ) newest
      where newest.at > began - interval '1 minute'
    ) e
    join jobs j on j.org_id = e.org_id and j.id = e.job_id
    group by 1
  ) by_lane;
  update queue_snapshots
  set
    taken_at = began,
    took_ms = extract(epoch from clock_timestamp() - began) * 1000,
    lanes = locked.lanes,
    lane_jobs = locked.lane_jobs,
    lane_ms = locked.lane_ms,
    running_ms = locked.running_ms,
    flow_lanes = locked.flow_lanes,
    flow_loads = locked.flow_loads,
    stretch = locked.stretch
  returning * into known;
  return known;
end
$$;

create or replace function queue_ahead(in_org uuid, in_job uuid, most integer)
returns table (
  lane smallint, jobs integer, predicted_ms double precision, counted boolean, lane_position double precision
)
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
set enable_seqscan = off
-- Jobs that would be claimed before this one by their lane, `counted` if they are fewer than `most`. Else its place
-- within its lane, from 0 to 1, tells about how many: keys are given one after the other.
begin atomic
  select
    mine.lane, count(a.predicted_ms)::integer, coalesce(sum(a.predicted_ms), 0)::double precision,
    count(a.predicted_ms) < most,
    case
      when count(a.predicted_ms) < most then null
      else coalesce(
        (mine.key - (select min(r.key) from ready_jobs r where r.lane = mine.lane))::double precision
          / nullif((select max(r.key) - min(r.key) from ready_jobs r where r.lane = mine.lane), 0),
        0
      )
    end
  from ready_jobs mine
  left join lateral (
    select r.predicted_ms
    from ready_jobs r
    where (r.lane, r.key) < (mine.lane, mine.key)
    order by r.lane, r.key
    limit most
  ) a on true
  where mine.org_id = in_org
    and mine.job_id = in_job
    and is_open(in_org)
  group by mine.lane, mine.key;
end;

grant execute on function queue_snapshot to smartqueue_functions, smartqueue_workers;
grant execute on function queue_ahead to smartqueue_functions;
