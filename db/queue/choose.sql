-- Choosing the next jobs, the first half of a claim. Chosen jobs are identified by their ctid in ready_jobs (their
-- `place`), which is stable because the rows stay locked until claim.sql deletes them.

create or replace function is_paused(p_org_id uuid, p_type text) returns boolean
language sql stable
return exists (select from pauses p where p.org_id = p_org_id and (p.type is null or p.type = p_type));

create or replace function is_claimable(
  p_job ready_jobs,
  p_types text[],
  p_most_cpu_units real,
  p_most_memory_mb integer,
  p_closed_orgs uuid[],
  p_some_paused boolean
) returns boolean
language sql stable
-- Postgres inlines these conditions into the calling query, so the planner can use the partial indexes.
return (p_job).lane < 5000
  and (p_job).type = any (p_types)
  and (p_job).cpu_units <= p_most_cpu_units
  and (p_job).memory_mb <= p_most_memory_mb
  and (p_job).org_id <> all (p_closed_orgs)
  and (not p_some_paused or not is_paused((p_job).org_id, (p_job).type));

create or replace function next_jobs(
  p_claim claim_request,
  p_most_cpu_units real,
  p_most_memory_mb integer,
  p_closed_orgs uuid[],
  p_some_paused boolean,
  p_some_urgent boolean,
  -- Jobs chosen earlier. More are appended, up to max_jobs.
  inout places tid[],
  -- The jobs that were examined. Nothing older than the lowest key of a lane is left in that lane.
  out lanes smallint[],
  out keys bigint[]
)
language plpgsql
as $$
-- The next jobs in queue order: first those that must start now to meet their deadline, then by rank or by age. Rows
-- locked by another transaction are skipped.
--
-- Lanes are read from the floors that the worker remembers (ADR 5): range n starts at floor n and ends where the lane
-- of floor n + 1 starts.
declare
  v_places tid[];
begin
  if p_some_urgent then
    places := places || array(
      select r.ctid
      from ready_jobs r
      where r.start_by <= now()
        and r.start_by is not null
        and r.ctid <> all (places)
        and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_closed_orgs, p_some_paused)
      order by r.start_by
      limit p_claim.max_jobs - cardinality(places)
      for update skip locked
    );
  end if;

  if p_claim.job_order = 'age' then
    select array_agg(c.place), array_agg(c.lane), array_agg(c.key)
    into v_places, lanes, keys
    from (
      select r.ctid as place, r.lane, r.key
      from ready_jobs r
      where r.key >= p_claim.age_floor
        and r.ctid <> all (places)
        and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_closed_orgs, p_some_paused)
      order by r.key
      limit p_claim.max_jobs - cardinality(places)
      for update skip locked
    ) as c;
    places := places || v_places;
    return;
  end if;

  if p_claim.job_order = 'newest_rank' then
    -- A queued job stays in the lane of the estimate it had when it became ready. Read 16 more jobs than are wanted,
    -- and take the best of them by the newest estimate (ADR 11). They are read without locks and then locked one by
    -- one, so that concurrent claims can take the rest.
    select array_agg(w.place), array_agg(w.lane), array_agg(w.key)
    into v_places, lanes, keys
    from (
      select c.place, c.lane, c.key
      from (
        select c.*
        from generate_series(1, cardinality(p_claim.floor_lanes)) as n
        cross join lateral (
          select r.ctid as place, r.org_id, r.job_id, r.lane, r.key
          from ready_jobs r
          where (r.lane, r.key) >= (p_claim.floor_lanes[n], p_claim.floor_keys[n])
            and r.lane < coalesce(p_claim.floor_lanes[n + 1], 5000)
            and r.ctid <> all (places)
            and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_closed_orgs, p_some_paused)
          order by r.lane, r.key
          limit p_claim.max_jobs + 16
        ) as c
        limit p_claim.max_jobs + 16
      ) as c
      -- One key lookup per job: a join planned while the tables were empty would later scan them.
      cross join lateral (
        select e.lane
        from queue_entries e
        where e.org_id = c.org_id
          and e.job_id = c.job_id
        offset 0
      ) as newest
      order by newest.lane, c.key
    ) as w;
    places := places || array(
      select r.ctid
      from generate_series(1, cardinality(v_places)) as n
      cross join lateral (
        select r.ctid
        from ready_jobs r
        where r.ctid = v_places[n]
          and r.key = keys[n]
        for update skip locked
      ) as r
      limit p_claim.max_jobs - cardinality(places)
    );
    -- If concurrent claims took so many that too few were left, continue behind the window in index order.
    if cardinality(places) = p_claim.max_jobs or cardinality(keys) is distinct from p_claim.max_jobs + 16 then
      return;
    end if;
  end if;

  select array_agg(c.place), lanes || array_agg(c.lane), keys || array_agg(c.key)
  into v_places, lanes, keys
  from (
    select c.place, c.lane, c.key
    from generate_series(1, cardinality(p_claim.floor_lanes)) as n
    cross join lateral (
      select r.ctid as place, r.lane, r.key
      from ready_jobs r
      where (r.lane, r.key) >= (p_claim.floor_lanes[n], p_claim.floor_keys[n])
        and r.lane < coalesce(p_claim.floor_lanes[n + 1], 5000)
        and r.ctid <> all (places)
        and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_closed_orgs, p_some_paused)
      order by r.lane, r.key
      limit p_claim.max_jobs - cardinality(places)
      for update skip locked
    ) as c
    limit p_claim.max_jobs - cardinality(places)
  ) as c;
  places := places || v_places;
end
$$;

create or replace function running_room(p_org_id uuid) returns bigint
language plpgsql
as $$
-- How many more jobs of an organisation may run; null if there is no limit. Claims take turns: while one holds the
-- lock, another gets -1 and retries later. With the lock held, the count includes what the previous claim took.
declare
  v_allowed bigint;
begin
  select q.running_jobs into v_allowed from quotas_of(p_org_id) q;
  if v_allowed is null then return null; end if;
  if not pg_try_advisory_xact_lock(hashtextextended('running jobs of ' || p_org_id, 0)) then return -1; end if;
  return greatest(0, v_allowed - (select count(*) from held_jobs h where h.org_id = p_org_id));
end
$$;

create or replace function next_fitting_jobs(
  p_worker_id text,
  p_claim claim_request,
  p_some_paused boolean,
  p_some_urgent boolean,
  p_some_limited boolean,
  out places tid[],
  -- Organisations at their limit of running jobs.
  out closed_orgs uuid[],
  -- Capacity of the worker is reserved for a big job.
  out reserved boolean,
  -- A concurrent claim was counting the running jobs of an organisation.
  out contended boolean
)
language plpgsql
as $$
-- The next jobs that may start now and fit into the worker's free capacity.
declare
  v_free_cpu_units double precision;
  v_free_memory_mb double precision;
  v_reserved_jobs uuid[];
  v_reserved_places tid[];
  v_candidates tid[];
  v_known_orgs uuid[] := '{}';
  v_rooms bigint[] := '{}';
  v_org integer;
  v_again boolean;
  v_places_before integer;
  v_job record;
begin
  places := '{}';
  closed_orgs := '{}';
  contended := false;
  -- Reserved capacity is not free for other jobs.
  select
    p_claim.free_cpu_units - coalesce(sum(v.cpu_units), 0), p_claim.free_memory_mb - coalesce(sum(v.memory_mb), 0),
    coalesce(array_agg(v.job_id), '{}')
  into v_free_cpu_units, v_free_memory_mb, v_reserved_jobs
  from reservations v
  where v.worker_id = p_worker_id;
  reserved := cardinality(v_reserved_jobs) > 0;
  -- Skip organisations that are at their limit. This first check takes no lock.
  if p_some_limited then
    closed_orgs := array(
      select h.org_id
      from (select h.org_id, count(*) as jobs from held_jobs h group by h.org_id) as h
      cross join lateral quotas_of(h.org_id) as q
      where h.jobs >= q.running_jobs
      union all
      select o.id
      from orgs o
      cross join lateral quotas_of(o.id) as q
      where q.running_jobs = 0
        and exists (select from quotas where running_jobs = 0)
    );
  end if;

  -- Each round skips what the rounds before found to be held back or too big.
  loop
    v_again := false;
    v_places_before := cardinality(places);
    -- Jobs with a reservation go first, as soon as they fit.
    v_reserved_places := array(
      select c.place
      from reservations v
      cross join lateral (
        select r.ctid as place
        from ready_jobs r
        where r.org_id = v.org_id
          and r.job_id = v.job_id
          and r.ctid <> all (places)
          and is_claimable(
            r, p_claim.types, p_claim.free_cpu_units::real, p_claim.free_memory_mb::integer, closed_orgs, p_some_paused
          )
        for update skip locked
      ) as c
      where v.worker_id = p_worker_id
      limit p_claim.max_jobs - cardinality(places)
    );
    select n.places[cardinality(next_fitting_jobs.places) + 1:]
    into v_candidates
    from next_jobs(
      p_claim, greatest(v_free_cpu_units, 1)::real, greatest(v_free_memory_mb, 64)::integer, closed_orgs,
      p_some_paused, p_some_urgent, places || v_reserved_places
    ) as n;
    for v_job in
      select c.place, r.org_id, r.cpu_units, r.memory_mb, r.job_id = any (v_reserved_jobs) as reserved
      from unnest(v_candidates) as c (place)
      cross join lateral (select r.* from ready_jobs r where r.ctid = c.place offset 0) as r
    loop
      if p_some_limited then
        v_org := array_position(v_known_orgs, v_job.org_id);
        if v_org is null then
          v_known_orgs := v_known_orgs || v_job.org_id;
          v_rooms := v_rooms || coalesce(running_room(v_job.org_id), p_claim.max_jobs);
          v_org := cardinality(v_rooms);
          contended := contended or v_rooms[v_org] < 0;
        end if;
        if v_rooms[v_org] <= 0 then
          if v_job.org_id <> all (closed_orgs) then
            closed_orgs := closed_orgs || v_job.org_id;
            v_again := true;
          end if;
          continue;
        end if;
        v_rooms[v_org] := v_rooms[v_org] - 1;
      end if;
      if not v_job.reserved then
        -- Jobs of the default size may be claimed before there is capacity for them.
        if
          v_job.cpu_units > (v_free_cpu_units + p_claim.ahead)::real
          or v_job.memory_mb > (v_free_memory_mb + 64 * p_claim.ahead)::integer
        then
          -- Look for smaller jobs, unless this round has chosen none: then the next would meet the same job again.
          v_again := v_again or cardinality(places) > v_places_before and (
            v_job.cpu_units > greatest(v_free_cpu_units, 1)::real or v_job.memory_mb > greatest(v_free_memory_mb, 64)
          );
          exit;
        end if;
        v_free_cpu_units := v_free_cpu_units - v_job.cpu_units;
        v_free_memory_mb := v_free_memory_mb - v_job.memory_mb;
      end if;
      places := places || v_job.place;
    end loop;
    exit when not v_again or cardinality(places) = p_claim.max_jobs;
  end loop;
end
$$;
