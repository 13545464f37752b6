-- Park jobs that must not be claimed, and keep the queue in the order of the newest estimates.
--
-- Claims skip jobs that are paused or whose type no worker handles. The leader parks such jobs, so that claims need not
-- step over a million of them: it adds 10000 to their lane, and claims read only lanes below 5000. A parked
-- job that may be claimed again returns at the end of its lane, because keys only grow inside a lane. Jobs that must
-- run alone are in lanes from 15000 on, and stay there (expire.sql).
--
-- When the estimate of a series has changed by a factor of 1.5 (learn.sql), its queued jobs move to their new lane.
--
-- A sweep goes through the queue flow by flow, and through each flow from the oldest job to the newest. Each call
-- examines a limited number of jobs after the place where the last one stopped, so that sweeping a deep queue does not
-- slow down draining it. A sweep can skip jobs up to a key that the previous sweep has already examined.
--
-- Locks: rows of ready_jobs, skipping those that another transaction has locked.
--
-- Indexes: ready_jobs_age for jobs that are not parked, ready_jobs_parked for those that are, series_moved, and
-- ready_jobs_order for the first and the last job of an organisation.
--
-- Measured with 100,000 ready jobs: 2 to 5 ms to examine 5,000 jobs, 60 ms to park them and 51 ms to unpark them.

create or replace function handled_types() returns text[]
language sql stable
-- Types that at least one worker handles.
return array(select distinct unnest(w.types) from workers w where w.status <> 'offline');

create or replace function jobs_after(p_flow bigint, p_key bigint, p_since_key bigint, p_limit integer)
returns table (org_id uuid, job_id uuid, series_id bigint, type text, flow bigint, key bigint)
language sql stable
-- The next jobs of a sweep that are not parked.
begin atomic
  select o.org_id, o.job_id, o.series_id, o.type, o.flow, o.key
  from (select p_flow as flow union all select n.flow from flows_after(p_flow) as n (flow)) f
  cross join lateral (
    select r.*
    from ready_jobs r
    where r.flow = f.flow
      and r.key > case when f.flow = p_flow then greatest(p_key, p_since_key) else p_since_key end
      and r.lane < 5000
    order by r.key
    limit p_limit
  ) as o
  limit p_limit;
end;

create or replace function move_held_back_jobs(
  p_term bigint,
  p_parked boolean,
  p_after_flow bigint,
  p_after_key bigint,
  p_since_key bigint,
  p_limit integer
)
returns table (
  looked_at integer, last_flow bigint, last_key bigint, newest_key bigint, types text[], moved integer, missed integer
)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
-- Examines queued jobs and parks those that are held back, or examines parked jobs and unparks those that are not.
-- `missed` counts jobs that should have moved but were locked: the caller sweeps again. All jobs that become ready
-- later have a higher key than `newest_key`.
declare
  v_handled constant text[] := handled_types();
begin
  if not in_term(p_term) then return; end if;

  return query
  with looked as materialized (
    select
      o.org_id, o.job_id, o.flow, o.key,
      -- Sets that are hashed once, instead of a lookup in pauses per job.
      (
        o.type <> all (v_handled)
        or o.org_id in (select p.org_id from pauses p where p.type is null)
        or (o.org_id, o.type) in (select p.org_id, p.type from pauses p where p.type is not null)
      ) <> p_parked as is_misplaced
    from (
      (
        select a.org_id, a.job_id, a.flow, a.key, a.type
        from jobs_after(p_after_flow, p_after_key, p_since_key, p_limit) a
        where not p_parked
      )
      union all
      (
        select r.org_id, r.job_id, r.flow, r.key, r.type
        from ready_jobs r
        where p_parked
          and (r.flow, r.key) > (p_after_flow, p_after_key)
          and r.lane >= 5000
          and r.lane < 15000
        order by r.flow, r.key
      )
    ) o
    limit p_limit
  ),
  locked as materialized (
    select r.place
    from looked o
    cross join lateral (
      select q.ctid as place
      from ready_jobs q
      where q.org_id = o.org_id
        and q.job_id = o.job_id
        and q.key = o.key
      for update skip locked
    ) r
    where o.is_misplaced
  ),
  changed as (
    update ready_jobs r
    set
      lane = r.lane + case when p_parked then -10000 else 10000 end,
      key = case when p_parked then nextval('ready_keys') else r.key end
    from locked
    where r.ctid = locked.place
    returning r.type
  )
  select
    count(*)::integer, max(o.flow), max(o.key) filter (where o.flow = (select max(flow) from looked)),
    (select k.last_value from ready_keys k), (select array_agg(distinct c.type) from changed c),
    (select count(*) from changed)::integer,
    (count(*) filter (where o.is_misplaced) - (select count(*) from changed))::integer
  from looked o;
end
$$;

create or replace function has_lanes(p_org_number integer) returns boolean
language sql stable
-- Whether the jobs of the organisation are in several lanes or flows.
begin atomic
  select (first.flow, first.lane) <> (last.flow, last.lane)
  from (
    select r.flow, r.lane
    from ready_jobs r
    where r.flow >= p_org_number::bigint << 32
      and r.lane < 5000
    order by r.flow, r.lane, r.key
    limit 1
  ) first
  cross join (
    select r.flow, r.lane
    from ready_jobs r
    where r.flow < (p_org_number + 1)::bigint << 32
      and r.lane < 5000
    order by r.flow desc, r.lane desc, r.key desc
    limit 1
  ) last
  -- If the organisation has no jobs, the probes return jobs of its neighbours, with `first` after `last`.
  where first.flow <= last.flow;
end;

create or replace function take_moved_series(p_term bigint, p_limit integer) returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
-- Series whose estimate has moved since their queued jobs were scored, a few at a time, because completions wait for
-- the rows of their series. Organisations whose queued jobs are all in one lane of one flow are left out: there is no
-- order to correct, and moving a deep queue to another lane costs as much as draining it.
begin
  if not in_term(p_term) then return; end if;

  return query
  update series s
  set scored_log = s.mean_log, moved = false
  where s.id = any (
    array(
      select m.id
      from series m
      where m.moved
        and m.org_id in (
          select o.id
          from orgs o
          where o.id in (select n.org_id from series n where n.moved)
            and has_lanes(o.number)
        )
      limit p_limit
      for update of m skip locked
    )
  )
  returning s.id;
end
$$;

create or replace function rescore_jobs(
  p_term bigint, p_series_ids bigint[], p_after_flow bigint, p_after_key bigint, p_limit integer
)
returns table (looked_at integer, last_flow bigint, last_key bigint, moved integer)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
-- Moves queued jobs of these series to the lane of their newest estimate, at its end.
declare
  v_flows bigint[];
  v_keys bigint[];
  v_series_ids bigint[];
begin
  if not in_term(p_term) then return; end if;

  select count(*), array_agg(a.flow), array_agg(a.key), array_agg(a.series_id)
  into looked_at, v_flows, v_keys, v_series_ids
  from jobs_after(p_after_flow, p_after_key, 0, p_limit) a;
  last_flow := v_flows[looked_at];
  last_key := v_keys[looked_at];

  update ready_jobs r
  set lane = w.lane, key = nextval('ready_keys')
  from (
    select o.place, q.lane
    from unnest(v_flows, v_keys, v_series_ids) as a (flow, key, series_id)
    cross join lateral (
      select l.ctid as place, l.org_id, l.job_id, l.lane
      from ready_jobs l
      where l.flow = a.flow
        and l.key = a.key
        and l.lane < 5000
      for update skip locked
    ) as o
    join queue_entries q on q.org_id = o.org_id and q.job_id = o.job_id and q.lane <> o.lane
    where a.series_id in (select unnest(p_series_ids))
  ) w
  where r.ctid = w.place;
  get diagnostics moved = row_count;
  return next;
end
$$;

grant execute on function handled_types, move_held_back_jobs, take_moved_series, rescore_jobs to smartqueue_workers;
