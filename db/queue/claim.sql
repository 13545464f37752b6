-- Claiming: the second half of an exchange, or a call of its own. exchange.sql describes the guarantees.
--
-- A claim of a single job spends most of its time on setting up its statements: 2 to 3 µs for each expression and each
-- aggregate, in every transaction. So whatever only some claims need is a separate statement that only they run.

create or replace function claim_jobs(p_worker_id text, p_lease_seconds integer, p_claim claim_request) returns json
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_material = off
set enable_sort = off
set jit = off
as $$
declare
  v_some_paused boolean;
  v_some_limited boolean;
  v_some_big boolean;
  v_some_deadlines boolean;
  v_some_weighted boolean;
  v_next record;
begin
  select
    exists (select from pauses),
    exists (select from quotas where running_jobs is not null),
    exists (select from ready_jobs r where (r.cpu_units > 1 or r.memory_mb > 64) and r.lane < 5000),
    exists (select from ready_jobs r where r.start_by is not null and r.lane < 5000),
    exists (select from quotas where weight <> 1)
  into v_some_paused, v_some_limited, v_some_big, v_some_deadlines, v_some_weighted;

  v_next := choose_jobs(
    p_worker_id, p_claim, v_some_paused, v_some_limited, v_some_big, v_some_deadlines, v_some_weighted
  );
  return json_build_object(
    'leased',
      case
        when cardinality(v_next.places) > 0 then
          lease_jobs(p_worker_id, p_lease_seconds, v_next.places, v_some_big, v_next.ordered)
      end,
    'turns', array_to_json(v_next.turns),
    'found', nullif(v_next.found_flows, '{}'),
    'looked_up_to', v_next.looked_up_to,
    'emptied', nullif(v_next.emptied, '{}'),
    'careful', v_some_paused or v_some_limited or v_some_big,
    'reserved', v_next.reserved,
    'contended', v_next.contended
  );
end
$$;

create or replace function lease_jobs(
  p_worker_id text,
  p_lease_seconds integer,
  p_places tid[],
  -- Not all of them have the default size.
  p_sized boolean,
  -- The order in which they start matters.
  p_ordered boolean,
  p_alone boolean default false
) returns json
language plpgsql
as $$
-- Moves jobs from ready_jobs into a new lease, and returns what the worker needs to run them. The answer is one row,
-- because each row costs the server and the worker more than its contents. Jobs are deleted in the order of a TID scan
-- and read in the order of an index, which takes half as long as one by one. The order in which they should start is
-- sent only where it differs.
declare
  -- Milliseconds and a sequence. The sequence alone could go backwards: a claim commits asynchronously, so a server
  -- crash may undo the increment.
  v_token constant bigint :=
    ((extract(epoch from clock_timestamp()) * 1000)::bigint << 20) | (nextval('lease_tokens') & 1048575);
  v_job_ids uuid[];
  v_org_ids uuid[];
  v_series_ids bigint[];
  v_attempts integer[];
  v_sizes json;
  v_order integer[];
begin
  with taken as (
    delete from ready_jobs r
    where r.ctid = any (p_places)
    returning r.job_id, r.org_id, r.series_id, r.attempts + 1 as attempt
  )
  select array_agg(t.job_id), array_agg(t.org_id), array_agg(t.series_id), array_agg(t.attempt)
  into v_job_ids, v_org_ids, v_series_ids, v_attempts
  from taken t;
  if p_sized then
    v_sizes := (
      select json_object_agg(j.id, json_build_array(j.cpu_units, j.memory_mb))
      from jobs_of(v_org_ids, v_job_ids) j
    );
    delete from reservations where job_id = any (v_job_ids);
  end if;

  insert into leases (token, worker_id, expires_at, claimed_at, job_ids, org_ids, attempts, claimed_jobs, alone)
  values (
    v_token, p_worker_id, now() + p_lease_seconds * interval '1 second', now(), v_job_ids, v_org_ids, v_attempts,
    cardinality(v_job_ids), p_alone
  );
  -- A value that all jobs share is sent once.
  if cardinality(v_job_ids) > 1 then
    if v_attempts[1] = all (v_attempts) then
      v_attempts := v_attempts[1:1];
    end if;
    if v_series_ids[1] = all (v_series_ids) then
      v_series_ids := v_series_ids[1:1];
      v_org_ids := v_org_ids[1:1];
    end if;
    if p_ordered or cardinality(v_series_ids) > 1 or cardinality(v_attempts) > 1 then
      v_order := array(select p.n from unnest(p_places) with ordinality as p (place, n) order by p.place);
    end if;
  end if;
  perform record_events(v_org_ids, v_job_ids, '{running}', v_attempts);

  return (
    select json_build_object(
      'token', v_token::text,
      'order', v_order,
      'job_ids', case when v_order is not null then v_job_ids end,
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
        where p.job_id = any (v_job_ids)
          and p.checkpoint is not null
      ),
      'sizes', v_sizes
    )
    from jobs_of(v_org_ids, v_job_ids) j
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
set enable_seqscan = off
as $$
-- Claims a suspect, a job that must run alone (ADR 22), for a worker that holds no jobs and claims none until this one
-- has finished. Of the suspects that may run and fit into an empty worker, it takes the one that has waited longest.
declare
  v_place tid;
begin
  perform set_config('synchronous_commit', 'off', true);
  select r.ctid
  into v_place
  from ready_jobs r
  where r.lane >= 15000
    and r.type = any (p_types)
    and r.cpu_units <= p_cpu_units
    and r.memory_mb <= p_memory_mb
    and not is_paused(r.org_id, r.type)
    and coalesce(running_room(r.org_id), 1) > 0
  order by r.key
  limit 1
  for update skip locked;
  if not found then return null; end if;
  return lease_jobs(p_worker_id, p_lease_seconds, array[v_place], false, false, p_alone => true);
end
$$;

grant execute on function claim_jobs, claim_suspect to smartqueue_workers;
