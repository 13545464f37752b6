-- The state of the whole queue, from which the start time of a job is estimated. These functions return sums over all
-- organisations, which reveal nothing about any one of them.

create or replace function queue_snapshot(p_at_leisure boolean default false) returns queue_snapshots
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set max_parallel_workers_per_gather = 0
as $$
-- Refreshed at most once a second, and rarely enough to take no more than 5 % of the time: with a million ready jobs a
-- refresh takes 0.3 s. One caller refreshes it while the others get the previous one. If a refresh takes more than
-- 20 ms, callers that must not wait get the previous one for up to a minute; p_at_leisure callers do the refreshing.
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

  select coalesce(array_agg(lane), '{}'), coalesce(array_agg(jobs), '{}'), coalesce(array_agg(ms), '{}')
  into v_snapshot.lanes, v_snapshot.lane_jobs, v_snapshot.lane_ms
  from (
    select lane, count(*)::integer as jobs, sum(predicted_ms)::double precision as ms
    from ready_jobs
    where lane < 5000
    group by lane
    order by lane
  ) by_lane;
  select coalesce(array_agg(running.ms::real), '{}')
  into v_snapshot.running_ms
  from (
    select remaining_ms(h.started_at, j.predicted_ms, j.predicted_p90_ms) as ms
    from held_jobs h
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    where h.expires_at > v_began
    limit 5000
  ) running;
  -- From the newest rows of the last minute, at the right end of the index. A row belongs to one series: its first job
  -- stands for the lane of all, and its first eight for their runtimes.
  select
    coalesce(array_agg(lane), '{}'), coalesce(array_agg(load), '{}'),
    -- Two seconds of work are weak evidence. A factor above three has another cause than wrong predictions.
    least(3, greatest(1, (coalesce(sum(ran_ms), 0) + 2000) / (coalesce(sum(predicted_ms), 0) + 2000)))
  into v_snapshot.flow_lanes, v_snapshot.flow_loads, v_snapshot.stretch
  from (
    select
      lane_of(j.rank_base + j.rank_slope * ln(j.predicted_ms)) as lane,
      sum(e.ran_ms) / max(case when e.rows < 100 then 60000 else greatest(1000, e.span_ms) end) as load,
      sum(e.ran_ms) as ran_ms,
      sum(e.jobs * j.predicted_ms) as predicted_ms
    from (
      select
        newest.org_id, newest.job_id, newest.jobs, newest.ran_ms, count(*) over () as rows,
        extract(epoch from v_began - min(newest.at) over ())::double precision * 1000 as span_ms
      from (
        select
          org_id, job_ids[1] as job_id, at, cardinality(ran_ms) as jobs,
          cardinality(ran_ms) * (select avg(ms) from unnest(ran_ms[1:8]) ms) as ran_ms
        from executions
        order by xid desc, id desc
        limit 100
      ) newest
      where newest.at > v_began - interval '1 minute'
    ) e
    join jobs j on j.org_id = e.org_id and j.id = e.job_id
    group by 1
  ) by_lane;
  update queue_snapshots
  set
    (taken_at, took_ms) = (v_began, extract(epoch from clock_timestamp() - v_began) * 1000),
    (lanes, lane_jobs, lane_ms) = (v_snapshot.lanes, v_snapshot.lane_jobs, v_snapshot.lane_ms),
    running_ms = v_snapshot.running_ms,
    (flow_lanes, flow_loads, stretch) = (v_snapshot.flow_lanes, v_snapshot.flow_loads, v_snapshot.stretch)
  returning * into v_snapshot;
  return v_snapshot;
end
$$;

create or replace function queue_ahead(p_org uuid, p_job uuid, p_most integer)
returns table (
  lane smallint, jobs integer, predicted_ms double precision, counted boolean, lane_position double precision
)
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
set enable_seqscan = off
-- Jobs that would be claimed before this one in the order of lanes; `counted` if they are fewer than `p_most`.
-- Otherwise `lane_position`, from 0 to 1 within its lane, approximates how many, because keys are assigned in sequence.
begin atomic
  select
    mine.lane, count(a.predicted_ms)::integer, coalesce(sum(a.predicted_ms), 0)::double precision,
    count(a.predicted_ms) < p_most,
    case
      when count(a.predicted_ms) < p_most then null
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
    limit p_most
  ) a on true
  where mine.org_id = p_org
    and mine.job_id = p_job
    and is_open(p_org)
  group by mine.lane, mine.key;
end;

grant execute on function queue_snapshot to smartqueue_functions, smartqueue_workers;
grant execute on function queue_ahead to smartqueue_functions;
