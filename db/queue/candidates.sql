-- The candidates of one flow, in the order in which a claim takes them. choose.sql decides whose turn it is. Chosen jobs
-- are identified by their ctid in ready_jobs (their `place`), which is stable because the rows stay locked until
-- claim.sql deletes them.

create or replace function is_paused(p_org_id uuid, p_type text) returns boolean
language sql stable
return exists (select from pauses p where p.org_id = p_org_id and (p.type is null or p.type = p_type));

create or replace function is_claimable(
  p_job ready_jobs,
  p_types text[],
  p_most_cpu_units real,
  p_most_memory_mb integer,
  p_some_paused boolean
) returns boolean
language sql stable
-- Postgres inlines these conditions into the calling query, so the planner can use the partial indexes.
return (p_job).lane < 5000
  and (p_job).type = any (p_types)
  and (p_job).cpu_units <= p_most_cpu_units
  and (p_job).memory_mb <= p_most_memory_mb
  and (not p_some_paused or not is_paused((p_job).org_id, (p_job).type));

create or replace function next_jobs(
  p_claim claim_request,
  p_flow bigint,
  -- Its position in p_claim.flows. If it is higher than their number, the claim says nothing about this flow.
  p_position integer,
  p_limit integer,
  p_most_cpu_units real,
  p_most_memory_mb integer,
  p_some_paused boolean,
  p_some_deadlines boolean,
  -- Jobs of the flow that were chosen earlier in the same claim.
  p_chosen tid[],
  out places tid[],
  -- Their total predicted runtime.
  out predicted_ms double precision,
  -- The jobs that were examined. Nothing older than the lowest key of a lane is left in that lane.
  out lanes smallint[],
  out keys bigint[]
)
language plpgsql
as $$
-- The next jobs of a flow in queue order: first those that must start now to meet their deadline, then by rank or by
-- age. Rows locked by another transaction are skipped.
--
-- Lanes are read from the floors that the worker remembers (ADR 5): range n starts at floor n and ends where the lane
-- of floor n + 1 starts.
declare
  -- The first floor of a claim is below all lanes.
  v_first_floor constant integer := coalesce(p_claim.first_floors[p_position], 1);
  v_last_floor constant integer := coalesce(p_claim.last_floors[p_position], 1);
  v_places tid[];
  v_predicted_ms double precision;
begin
  places := '{}';
  predicted_ms := 0;
  if p_some_deadlines then
    select coalesce(array_agg(c.place), '{}'), coalesce(sum(c.predicted_ms), 0)
    into places, predicted_ms
    from (
      select r.ctid as place, r.predicted_ms
      from ready_jobs r
      where r.flow = p_flow
        and r.start_by <= now()
        and r.start_by is not null
        and r.ctid <> all (p_chosen)
        and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_some_paused)
      order by r.start_by
      limit p_limit
      for update skip locked
    ) as c;
    p_chosen := p_chosen || places;
  end if;

  if coalesce(p_claim.oldest_first[p_position], p_claim.fifo) then
    select array_agg(c.place), sum(c.predicted_ms), array_agg(c.lane), array_agg(c.key)
    into v_places, v_predicted_ms, lanes, keys
    from (
      select r.ctid as place, r.predicted_ms, r.lane, r.key
      from ready_jobs r
      where r.flow = p_flow
        and r.key >= coalesce(p_claim.age_floors[p_position], 0)
        and r.ctid <> all (p_chosen)
        and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_some_paused)
      order by r.key
      limit p_limit - cardinality(places)
      for update skip locked
    ) as c;
    places := places || v_places;
    predicted_ms := predicted_ms + coalesce(v_predicted_ms, 0);
    return;
  end if;

  if p_claim.newest_rank then
    -- A queued job stays in the lane of the estimate it had when it became ready. Read 16 more jobs than are wanted,
    -- and take the best of them by the newest estimate (ADR 11). They are read without locks and then locked one by
    -- one, so that concurrent claims can take the rest.
    select array_agg(w.place), array_agg(w.lane), array_agg(w.key)
    into v_places, lanes, keys
    from (
      select c.place, c.lane, c.key
      from (
        select c.*
        from generate_series(v_first_floor, v_last_floor) as n
        cross join lateral (
          select r.ctid as place, r.org_id, r.job_id, r.lane, r.key
          from ready_jobs r
          where r.flow = p_flow
            and (r.lane, r.key) >= (p_claim.floor_lanes[n], p_claim.floor_keys[n])
            and r.lane < case when n < v_last_floor then p_claim.floor_lanes[n + 1] else 5000 end
            and r.ctid <> all (p_chosen)
            and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_some_paused)
          order by r.lane, r.key
          limit p_limit + 16
        ) as c
        limit p_limit + 16
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
    select array_agg(c.place), coalesce(sum(c.predicted_ms), 0)
    into v_places, v_predicted_ms
    from (
      select r.ctid as place, r.predicted_ms
      from generate_series(1, cardinality(v_places)) as n
      cross join lateral (
        select r.ctid, r.predicted_ms
        from ready_jobs r
        where r.ctid = v_places[n]
          and r.key = keys[n]
        for update skip locked
      ) as r
      limit p_limit - cardinality(places)
    ) as c;
    places := places || v_places;
    predicted_ms := predicted_ms + v_predicted_ms;
    p_chosen := p_chosen || v_places;
    -- If concurrent claims took too many jobs of the window, continue after it in index order.
    if cardinality(places) = p_limit or cardinality(keys) is distinct from p_limit + 16 then
      return;
    end if;
  end if;

  select array_agg(c.place), sum(c.predicted_ms), lanes || array_agg(c.lane), keys || array_agg(c.key)
  into v_places, v_predicted_ms, lanes, keys
  from (
    select c.*
    from generate_series(v_first_floor, v_last_floor) as n
    cross join lateral (
      select r.ctid as place, r.predicted_ms, r.lane, r.key
      from ready_jobs r
      where r.flow = p_flow
        and (r.lane, r.key) >= (p_claim.floor_lanes[n], p_claim.floor_keys[n])
        and r.lane < case when n < v_last_floor then p_claim.floor_lanes[n + 1] else 5000 end
        and r.ctid <> all (p_chosen)
        and is_claimable(r, p_claim.types, p_most_cpu_units, p_most_memory_mb, p_some_paused)
      order by r.lane, r.key
      limit p_limit - cardinality(places)
      for update skip locked
    ) as c
    limit p_limit - cardinality(places)
  ) as c;
  places := places || v_places;
  predicted_ms := predicted_ms + coalesce(v_predicted_ms, 0);
end
$$;

create or replace function fitting_jobs(
  p_claim claim_request,
  p_places tid[],
  inout free_cpu_units double precision,
  inout free_memory_mb double precision,
  out places tid[],
  out predicted_ms double precision,
  -- The first job that does not fit was bigger than the default size, so smaller jobs may fit.
  out was_big boolean
)
language plpgsql
as $$
-- The first jobs of the list, up to the first that does not fit. `ahead` jobs of the default size may exceed the free
-- capacity.
declare
  v_job record;
begin
  places := '{}';
  predicted_ms := 0;
  was_big := false;
  for v_job in
    select c.place, r.cpu_units, r.memory_mb, r.predicted_ms
    from unnest(p_places) as c (place)
    cross join lateral (select r.* from ready_jobs r where r.ctid = c.place offset 0) as r
  loop
    if
      v_job.cpu_units > (free_cpu_units + p_claim.ahead)::real
      or v_job.memory_mb > (free_memory_mb + 64 * p_claim.ahead)::integer
    then
      was_big := v_job.cpu_units > greatest(free_cpu_units, 1)::real or v_job.memory_mb > greatest(free_memory_mb, 64);
      return;
    end if;
    free_cpu_units := free_cpu_units - v_job.cpu_units;
    free_memory_mb := free_memory_mb - v_job.memory_mb;
    predicted_ms := predicted_ms + v_job.predicted_ms;
    places := places || v_job.place;
  end loop;
end
$$;

create or replace function lowest_keys(p_lanes smallint[], p_keys bigint[]) returns json
language sql immutable
-- The lowest key of each lane.
return (
  select json_object_agg(f.lane, f.key)
  from (
    select l.lane, min(l.key) as key
    from unnest(p_lanes, p_keys) as l (lane, key)
    group by l.lane
  ) as f
);

create or replace function older_ms(p_places tid[], p_key bigint) returns double precision
language sql stable
-- The total predicted runtime of those jobs that are older than p_key, or of all if it is null.
return (
  select coalesce(sum(r.predicted_ms), 0)::double precision
  from unnest(p_places) as c (place)
  cross join lateral (select q.key, q.predicted_ms from ready_jobs q where q.ctid = c.place offset 0) as r
  where r.key < coalesce(p_key, 9223372036854775807)
);
