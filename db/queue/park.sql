-- Park jobs that must not be claimed, and keep the queue in the order of the newest estimates.
--
-- Claims skip jobs that are paused or whose type no worker handles. So that they need not step over a million of them
-- each time, the leader parks such jobs: it adds 10000 to their lane, and claims read only lanes below 5000. A parked
-- job that may be claimed again returns at the end of its lane, because keys only grow inside a lane. Jobs that must
-- run alone are in lanes from 15000 on, and stay there (expire.sql).
--
-- When the estimate of a series has changed by a factor of 1.5 (learn.sql), its queued jobs move to their new lane.
--
-- Each call examines the next jobs in order of age, after the key where the last one stopped, so that sweeping a deep
-- queue does not slow down draining it.
--
-- Locks: rows of ready_jobs, skipping those that another transaction has locked.
--
-- Indexes: ready_jobs_age for jobs that are not parked, ready_jobs_parked for those that are, series_moved.
--
-- Measured with 100,000 ready jobs: 2 to 5 ms to examine 5,000 jobs, 60 ms to park them and 51 ms to unpark them.

create or replace function handled_types() returns text[]
language sql stable
-- Types that at least one worker handles.
return array(select distinct unnest(w.types) from workers w where w.status <> 'offline');

create or replace function move_held_back_jobs(p_term bigint, p_parked boolean, p_after_key bigint, p_limit integer)
returns table (looked_at integer, last_key bigint, types text[], moved integer, missed integer)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
-- Examines queued jobs and parks those that are held back, or examines parked jobs and unparks those that are not.
-- `missed` counts jobs that should have moved but were locked: the caller sweeps again.
declare
  v_handled constant text[] := handled_types();
begin
  if not in_term(p_term) then return; end if;

  return query
  with looked as materialized (
    select
      o.org_id, o.job_id, o.key,
      -- Sets that are hashed once, instead of a lookup in pauses per job.
      (
        o.type <> all (v_handled)
        or o.org_id in (select p.org_id from pauses p where p.type is null)
        or (o.org_id, o.type) in (select p.org_id, p.type from pauses p where p.type is not null)
      ) <> p_parked as is_misplaced
    from (
      (select org_id, job_id, key, type, false as parked from ready_jobs where lane < 5000 order by key)
      union all
      (select org_id, job_id, key, type, true from ready_jobs where lane >= 5000 and lane < 15000 order by key)
    ) o
    where o.parked = p_parked
      and o.key > p_after_key
    order by o.key
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
    count(*)::integer, max(o.key), (select array_agg(distinct c.type) from changed c),
    (select count(*) from changed)::integer,
    (count(*) filter (where o.is_misplaced) - (select count(*) from changed))::integer
  from looked o;
end
$$;

create or replace function take_moved_series(p_term bigint, p_limit integer) returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
-- Series whose estimate has moved since their queued jobs were scored, a few at a time, because completions wait for
-- the rows of their series. None while all queued jobs are in one lane: there is no order to correct then, and moving a
-- deep queue to another lane costs as much as draining it.
begin
  if not in_term(p_term) then return; end if;
  if (select min(r.lane) = max(r.lane) from ready_jobs r where r.lane < 5000) is not false then return; end if;

  return query
  update series s
  set scored_log = s.mean_log, moved = false
  where s.id = any (array(select o.id from series o where o.moved limit p_limit for update skip locked))
  returning s.id;
end
$$;

create or replace function rescore_jobs(p_term bigint, p_series_ids bigint[], p_after_key bigint, p_limit integer)
returns table (looked_at integer, last_key bigint, moved integer)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
-- A job that changes lanes goes to the end of the new one.
declare
  v_keys bigint[];
begin
  if not in_term(p_term) then return; end if;

  select count(*), max(r.key), array_agg(r.key) filter (where r.series_id in (select unnest(p_series_ids)))
  into looked_at, last_key, v_keys
  from (
    select o.key, o.series_id
    from ready_jobs o
    where o.key > p_after_key
      and o.lane < 5000
    order by o.key
    limit p_limit
  ) r;
  v_keys := array(select o.key from ready_jobs o where o.key = any (v_keys) and o.lane < 5000 for update skip locked);
  update ready_jobs r
  set lane = q.lane, key = nextval('ready_keys')
  from queue_entries q
  where r.key = any (v_keys)
    and r.lane < 5000
    and q.org_id = r.org_id
    and q.job_id = r.job_id
    and q.lane <> r.lane;
  get diagnostics moved = row_count;
  return next;
end
$$;

grant execute on function handled_types, move_held_back_jobs, take_moved_series, rescore_jobs to smartqueue_workers;
