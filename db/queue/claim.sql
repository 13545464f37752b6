-- Claiming: the second half of an exchange. exchange.sql says what it guarantees.

create or replace function is_paused(p_org_id uuid, p_type text) returns boolean
language sql stable
return exists (select from pauses p where p.org_id = p_org_id and (p.type is null or p.type = p_type));

create or replace function next_jobs(
  p_limit integer,
  p_types text[],
  p_order text,
  p_floor_lanes smallint[],
  p_floor_keys bigint[],
  p_age_floor bigint,
  p_most_cpu_units real,
  p_most_memory_mb integer,
  p_some_urgent boolean,
  p_some_paused boolean,
  p_closed_orgs uuid[]
) returns table (
  place tid,
  job_id uuid,
  org_id uuid,
  series_id bigint,
  lane smallint,
  key bigint,
  -- Nothing older is left in the lane.
  floor bigint,
  attempts integer,
  cpu_units real,
  memory_mb integer,
  predicted_ms real
)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The next jobs in the order of the queue, locked: those whose latest start has come, then by rank or by age. Rows that
-- someone else has locked are skipped. An urgent job gets the lane -5000: it may stand anywhere in its own.
--
-- Lanes are read from the floors that the worker remembers (ADR 5): part n begins at floor n and ends where the lane
-- of floor n + 1 begins.
declare
  v_found integer := 0;
  v_left integer;
  v_seen_places tid[];
  v_seen_keys bigint[] := '{}';
  v_seen_floors bigint[];
begin
  if p_some_urgent then
    return query
    select
      r.ctid, r.job_id, r.org_id, r.series_id, -5000::smallint, r.key, r.key, r.attempts, r.cpu_units, r.memory_mb,
      r.predicted_ms
    from ready_jobs r
    where r.start_by <= now()
      and r.start_by is not null
      and r.lane < 5000
      and r.type = any (p_types)
      and r.cpu_units <= p_most_cpu_units
      and r.memory_mb <= p_most_memory_mb
      and r.org_id <> all (p_closed_orgs)
      and (not p_some_paused or not is_paused(r.org_id, r.type))
    order by r.start_by
    limit p_limit
    for update skip locked;
    get diagnostics v_found = row_count;
  end if;
  v_left := p_limit - v_found;

  if p_order = 'age' then
    return query
    select
      r.ctid, r.job_id, r.org_id, r.series_id, r.lane, r.key, r.key, r.attempts, r.cpu_units, r.memory_mb,
      r.predicted_ms
    from ready_jobs r
    where r.key >= p_age_floor
      and r.lane < 5000
      and (r.start_by is null or r.start_by > now())
      and r.type = any (p_types)
      and r.cpu_units <= p_most_cpu_units
      and r.memory_mb <= p_most_memory_mb
      and r.org_id <> all (p_closed_orgs)
      and (not p_some_paused or not is_paused(r.org_id, r.type))
    order by r.key
    limit v_left
    for update skip locked;
    return;
  end if;

  if p_order = 'newest_rank' then
    -- The lane of a queued job is that of the estimate when it became ready. Look at 64 jobs more than are wanted,
    -- and take the best of them by the newest estimate (ADR 11). They are read without a lock and locked one by one,
    -- so that those that are left stay for others to claim at the same moment.
    select
      array_agg(w.place order by newest.lane, w.key), array_agg(w.key order by newest.lane, w.key),
      array_agg(w.floor order by newest.lane, w.key)
    into v_seen_places, v_seen_keys, v_seen_floors
    from (
      select r.*, min(r.key) over (partition by r.lane) as floor
      from (
        select r.*
        from generate_series(1, cardinality(p_floor_lanes)) as n
        cross join lateral (
          select r.ctid as place, r.job_id, r.org_id, r.series_id, r.lane, r.key
          from ready_jobs r
          where (r.lane, r.key) >= (p_floor_lanes[n], p_floor_keys[n])
            and r.lane < coalesce(p_floor_lanes[n + 1], 5000)
            and (r.start_by is null or r.start_by > now())
            and r.type = any (p_types)
            and r.cpu_units <= p_most_cpu_units
            and r.memory_mb <= p_most_memory_mb
            and r.org_id <> all (p_closed_orgs)
            and (not p_some_paused or not is_paused(r.org_id, r.type))
          order by r.lane, r.key
          limit p_limit + 64
        ) as r
        limit p_limit + 64
      ) as r
    ) as w
    -- Job by job, by the keys of both tables: planned while they are empty, a join would read all of them later.
    cross join lateral (
      select j.rank_base, j.rank_slope, j.residual_log, j.predicted_ms
      from jobs j
      where j.org_id = w.org_id
        and j.id = w.job_id
      offset 0
    ) as j
    cross join lateral (select s.mean_log from series s where s.id = w.series_id offset 0) as s
    cross join lateral (
      select lane_of(j.rank_base + j.rank_slope * coalesce(s.mean_log + j.residual_log, ln(j.predicted_ms))) as lane
    ) as newest;
    return query
    select r.*
    from generate_series(1, cardinality(v_seen_places)) as n
    cross join lateral (
      select
        r.ctid, r.job_id, r.org_id, r.series_id, r.lane, r.key, v_seen_floors[n], r.attempts, r.cpu_units, r.memory_mb,
        r.predicted_ms
      from ready_jobs r
      where r.ctid = v_seen_places[n]
        and r.key = v_seen_keys[n]
      for update skip locked
    ) as r
    limit v_left;
    get diagnostics v_found = row_count;
    v_left := v_left - v_found;
    -- Others may have been faster at all of them. What lies behind goes in the order of the index.
    if v_left = 0 or cardinality(v_seen_keys) < p_limit + 64 then return; end if;
  end if;

  return query
  select r.*
  from generate_series(1, cardinality(p_floor_lanes)) as n
  cross join lateral (
    select
      r.ctid, r.job_id, r.org_id, r.series_id, r.lane, r.key, r.key, r.attempts, r.cpu_units, r.memory_mb,
      r.predicted_ms
    from ready_jobs r
    where (r.lane, r.key) >= (p_floor_lanes[n], p_floor_keys[n])
      and r.key <> all (v_seen_keys)
      and r.lane < coalesce(p_floor_lanes[n + 1], 5000)
      and (r.start_by is null or r.start_by > now())
      and r.type = any (p_types)
      and r.cpu_units <= p_most_cpu_units
      and r.memory_mb <= p_most_memory_mb
      and r.org_id <> all (p_closed_orgs)
      and (not p_some_paused or not is_paused(r.org_id, r.type))
    order by r.lane, r.key
    limit v_left
    for update skip locked
  ) as r
  limit v_left;
end
$$;

create or replace function running_room(p_org_id uuid) returns bigint
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- How many more jobs of an organisation may run: null if there is no limit. One claim at a time may ask: another that
-- comes meanwhile gets -1 and tries again later. With the lock held, the count sees what the claim before has taken.
declare
  v_allowed bigint;
begin
  select q.running_jobs into v_allowed from quotas_of(p_org_id) q;
  if v_allowed is null then return null; end if;
  if not pg_try_advisory_xact_lock(hashtextextended('running jobs of ' || p_org_id, 0)) then return -1; end if;
  return greatest(0, v_allowed - (select count(*) from held_jobs h where h.org_id = p_org_id));
end
$$;

create or replace function lease_jobs(
  p_worker_id text,
  p_lease_seconds integer,
  p_alone boolean,
  p_ordered boolean,
  p_job_ids uuid[],
  p_org_ids uuid[],
  p_series_ids bigint[],
  p_attempts integer[]
) returns json
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Leases jobs that were taken out of ready_jobs, and says what their worker needs to know. One row for all of them:
-- each row costs the server and the worker more than what is in it. Jobs are read in the order of their index, which
-- takes half as long as one by one; the order in which they should start is sent where they differ.
declare
  -- Milliseconds and a sequence. The sequence alone could go back: a claim does not wait for the disk, and a crash of
  -- the server may undo that its number was taken.
  v_token constant bigint :=
    ((extract(epoch from clock_timestamp()) * 1000)::bigint << 20) | (nextval('lease_tokens') & 1048575);
  v_org_ids uuid[] := p_org_ids;
  v_series_ids bigint[] := p_series_ids;
  v_attempts integer[] := p_attempts;
begin
  insert into leases (token, worker_id, expires_at, claimed_at, job_ids, org_ids, attempts, claimed_jobs, alone)
  values (
    v_token, p_worker_id, now() + p_lease_seconds * interval '1 second', now(), p_job_ids, p_org_ids, p_attempts,
    cardinality(p_job_ids), p_alone
  );
  if p_series_ids[1] = all (p_series_ids) then
    v_series_ids := p_series_ids[1:1];
    v_org_ids := p_org_ids[1:1];
  end if;
  if p_attempts[1] = all (p_attempts) then
    v_attempts := p_attempts[1:1];
  end if;
  perform record_events(p_org_ids, p_job_ids, '{running}', v_attempts);
  return (
    select json_build_object(
      'token', v_token::text,
      'job_ids', case when p_ordered then p_job_ids end,
      'ids', json_agg(j.id),
      'payloads', json_agg(j.payload),
      'timeouts', case when count(j.timeout_seconds) > 0 then json_agg(j.timeout_seconds) end,
      'p99s', case when count(j.predicted_p99_ms) > 0 then json_agg(j.predicted_p99_ms) end,
      'traces',
        json_agg(json_build_array(j.id, j.traceparent, j.predicted_ms)) filter (where j.traceparent is not null),
      'attempts', v_attempts,
      'series_ids', v_series_ids,
      'series', (
        select json_object_agg(s.id, json_build_array(s.org_id, s.type, s.name))
        from series s
        where s.id = any (v_series_ids)
      ),
      'checkpoints', (
        select json_object_agg(p.job_id, p.checkpoint)
        from job_progress p
        where p.job_id = any (p_job_ids)
          and p.checkpoint is not null
      )
    )
    from jobs j
    where j.org_id = any (v_org_ids)
      and j.id = any (p_job_ids)
  );
end
$$;

create or replace function claim_jobs(
  p_worker_id text,
  p_lease_seconds integer,
  p_limit integer,
  p_types text[],
  p_order text,
  p_floor_lanes smallint[],
  p_floor_keys bigint[],
  p_age_floor bigint,
  p_free_cpu_units double precision,
  p_free_memory_mb double precision,
  p_ahead integer
) returns json
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
declare
  v_some_paused boolean;
  v_some_limited boolean;
  v_some_urgent boolean;
  v_reserved uuid[];
  v_by_size boolean;
  v_careful boolean;
  v_places tid[] := '{}';
  v_job_ids uuid[] := '{}';
  v_org_ids uuid[] := '{}';
  v_series_ids bigint[] := '{}';
  v_attempts integer[] := '{}';
  v_cpu_units real[] := '{}';
  v_memory_mb integer[] := '{}';
  v_predicted_ms real[] := '{}';
  v_lanes smallint[] := '{}';
  v_keys bigint[] := '{}';
  v_floors bigint[] := '{}';
  v_taken integer;
  v_contended boolean := false;
  v_oldest_left bigint;
  v_oldest_ms real;
  v_work_ms real;
  v_lane_floors json;
  v_free_cpu_units double precision := p_free_cpu_units;
  v_free_memory_mb double precision := p_free_memory_mb;
  v_closed_orgs uuid[] := '{}';
  v_known_orgs uuid[] := '{}';
  v_rooms bigint[] := '{}';
  v_org integer;
  v_again boolean;
  v_job record;
begin
  select
    exists (select from pauses),
    exists (select from quotas where running_jobs is not null),
    exists (select from ready_jobs r where r.start_by <= now() and r.start_by is not null and r.lane < 5000),
    exists (select from ready_jobs r where (r.cpu_units > 1 or r.memory_mb > 64) and r.lane < 5000),
    array(select v.job_id from reservations v where v.worker_id = p_worker_id)
  into v_some_paused, v_some_limited, v_some_urgent, v_by_size, v_reserved;
  v_by_size := v_by_size or v_reserved <> '{}';
  v_careful := v_some_paused or v_some_limited or v_by_size;

  if not v_careful then
    -- The plain way. Nothing is held back, and every job has the default size, so that as many fit as were asked for.
    select
      array_agg(c.place), array_agg(c.job_id), array_agg(c.org_id), array_agg(c.series_id), array_agg(c.attempts + 1),
      array_agg(c.predicted_ms), array_agg(c.lane), array_agg(c.key), array_agg(c.floor), sum(c.predicted_ms)
    into v_places, v_job_ids, v_org_ids, v_series_ids, v_attempts, v_predicted_ms, v_lanes, v_keys, v_floors, v_work_ms
    from next_jobs(
      p_limit, p_types, p_order, p_floor_lanes, p_floor_keys, p_age_floor, 1, 64, v_some_urgent, false, '{}'
    ) as c;
    delete from ready_jobs where ctid = any (v_places);
  else
    -- The careful way. Reserved capacity is not free for others, and organisations that have as many jobs running as
    -- they may are passed over as a whole: a first look, without a lock.
    select v_free_cpu_units - coalesce(sum(v.cpu_units), 0), v_free_memory_mb - coalesce(sum(v.memory_mb), 0)
    into v_free_cpu_units, v_free_memory_mb
    from reservations v
    where v.worker_id = p_worker_id;
    if v_some_limited then
      v_closed_orgs := array(
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

    -- In rounds: each passes over what the rounds before have found to be held back or too big.
    loop
      v_again := false;
      v_places := '{}';
      for v_job in
        -- Jobs that capacity is reserved for go first, as soon as they fit.
        select true as reserved, r.*
        from reservations v
        cross join lateral (
          select
            r.ctid as place, r.job_id, r.org_id, r.series_id, r.lane, r.key, r.key as floor, r.attempts, r.cpu_units,
            r.memory_mb, r.predicted_ms
          from ready_jobs r
          where r.org_id = v.org_id
            and r.job_id = v.job_id
            and r.lane < 5000
            and r.type = any (p_types)
            and r.cpu_units <= p_free_cpu_units
            and r.memory_mb <= p_free_memory_mb
            and r.org_id <> all (v_closed_orgs)
            and not is_paused(r.org_id, r.type)
          for update skip locked
        ) as r
        where v.worker_id = p_worker_id
        union all
        select false, c.*
        from next_jobs(
          p_limit - cardinality(v_job_ids), p_types, p_order, p_floor_lanes, p_floor_keys, p_age_floor,
          greatest(v_free_cpu_units, 1)::real, greatest(v_free_memory_mb, 64)::integer, v_some_urgent, v_some_paused,
          v_closed_orgs
        ) as c
        where c.job_id <> all (v_reserved)
      loop
        exit when cardinality(v_job_ids) = p_limit;
        if v_some_limited then
          v_org := array_position(v_known_orgs, v_job.org_id);
          if v_org is null then
            v_known_orgs := v_known_orgs || v_job.org_id;
            v_rooms := v_rooms || coalesce(running_room(v_job.org_id), p_limit);
            v_org := cardinality(v_rooms);
            v_contended := v_contended or v_rooms[v_org] < 0;
          end if;
          if v_rooms[v_org] <= 0 then
            if v_job.org_id <> all (v_closed_orgs) then
              v_closed_orgs := v_closed_orgs || v_job.org_id;
              v_again := true;
            end if;
            continue;
          end if;
          v_rooms[v_org] := v_rooms[v_org] - 1;
        end if;
        if not v_job.reserved then
          -- Jobs of the default size may be claimed ahead of the capacity that they need.
          if v_job.cpu_units > v_free_cpu_units + p_ahead or v_job.memory_mb > v_free_memory_mb + 64 * p_ahead then
            v_again := v_again
              or v_job.cpu_units > greatest(v_free_cpu_units, 1) or v_job.memory_mb > greatest(v_free_memory_mb, 64);
            exit;
          end if;
          v_free_cpu_units := v_free_cpu_units - v_job.cpu_units;
          v_free_memory_mb := v_free_memory_mb - v_job.memory_mb;
        end if;
        v_places := v_places || v_job.place;
        v_job_ids := v_job_ids || v_job.job_id;
        v_org_ids := v_org_ids || v_job.org_id;
        v_series_ids := v_series_ids || v_job.series_id;
        v_attempts := v_attempts || v_job.attempts + 1;
        v_cpu_units := v_cpu_units || v_job.cpu_units;
        v_memory_mb := v_memory_mb || v_job.memory_mb;
        v_predicted_ms := v_predicted_ms || v_job.predicted_ms;
        v_work_ms := coalesce(v_work_ms, 0) + v_job.predicted_ms;
        v_lanes := v_lanes || v_job.lane;
        v_keys := v_keys || v_job.key;
        v_floors := v_floors || v_job.floor;
      end loop;
      delete from ready_jobs where ctid = any (v_places);
      exit when not v_again or cardinality(v_job_ids) = p_limit;
    end loop;
    delete from reservations where job_id = any (v_job_ids);
  end if;

  v_taken := coalesce(cardinality(v_job_ids), 0);
  if p_order = 'newest_rank' and v_taken > 0 then
    select r.key
    into v_oldest_left
    from ready_jobs r
    where r.key >= p_age_floor
      and r.lane < 5000
      and (r.start_by is null or r.start_by > now())
      and r.type = any (p_types)
      and r.org_id <> all (v_closed_orgs)
      and (not v_some_paused or not is_paused(r.org_id, r.type))
    order by r.key
    limit 1;
    -- How much of the work would have been next in the order of age, too.
    v_oldest_ms := (
      select sum(t.predicted_ms)
      from unnest(v_predicted_ms, v_keys) as t (predicted_ms, key)
      where (t.key < v_oldest_left) is not false
    );
  end if;
  -- The first key of each lane, from which the next claim may read on. Most claims take jobs of one lane.
  if v_lanes[1] > -5000 and v_lanes[1] = all (v_lanes) then
    v_lane_floors := json_build_object(v_lanes[1], (select min(key) from unnest(v_floors) as key));
  elsif v_taken > 0 then
    v_lane_floors := (
      select json_object_agg(f.lane, f.key)
      from (
        select t.lane, min(t.key) as key
        from unnest(v_lanes, v_floors) as t (lane, key)
        where t.lane > -5000
        group by t.lane
      ) as f
    );
  end if;
  return json_build_object(
    'leased',
      case
        when v_taken > 0 then
          lease_jobs(
            p_worker_id, p_lease_seconds, false,
            v_by_size or v_lanes[1] <> any (v_lanes) or v_series_ids[1] <> any (v_series_ids)
              or v_attempts[1] <> any (v_attempts),
            v_job_ids, v_org_ids, v_series_ids, v_attempts
          )
      end,
    'cpu_units', case when v_by_size then v_cpu_units end,
    'memory_mb', case when v_by_size then v_memory_mb end,
    'predicted_ms', v_work_ms,
    'floors', v_lane_floors,
    'oldest_left', v_oldest_left,
    'oldest_ms', v_oldest_ms,
    'careful', v_careful,
    'reserved', v_reserved <> '{}',
    -- Another claim was counting the running jobs of an organisation at the same moment.
    'contended', v_contended
  );
end
$$;

create or replace function claim_suspect(
  p_worker_id text,
  p_lease_seconds integer,
  p_types text[],
  p_cpu_units double precision,
  p_memory_mb double precision
) returns json
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Claims a job that has to run alone (ADR 22), for a worker that holds no job and claims no other until this one has
-- finished: the one that has waited longest among those that may run and fit into an empty worker.
declare
  v_job ready_jobs;
begin
  perform set_config('synchronous_commit', 'off', true);
  select r.*
  into v_job
  from ready_jobs r
  where r.alone
    and r.type = any (p_types)
    and r.cpu_units <= p_cpu_units
    and r.memory_mb <= p_memory_mb
    and not is_paused(r.org_id, r.type)
    and coalesce(running_room(r.org_id), 1) > 0
  order by r.key
  limit 1
  for update skip locked;
  if v_job.job_id is null then return null; end if;
  delete from ready_jobs r where r.org_id = v_job.org_id and r.job_id = v_job.job_id;
  return lease_jobs(
    p_worker_id, p_lease_seconds, true, false, array[v_job.job_id], array[v_job.org_id], array[v_job.series_id],
    array[v_job.attempts + 1]
  );
end
$$;

grant execute on function claim_suspect to smartqueue_workers;
