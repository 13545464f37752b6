-- Choosing the next jobs, the first half of a claim.
--
-- The workers' time is shared between flows (ADR 28). A flow is all ready jobs of one organisation, or of one fairness
-- key of it. Every worker divides its own time by start-time fair queueing (worker-runtime/shares.ts): it sends the
-- virtual times of the flows it knows. The claim serves the flow with the lowest time, adds the predicted runtime of
-- the jobs it took, and continues with the flow that is lowest then. So it never reads the jobs of a flow that is over
-- its share, and it updates no row that another claim waits for.
--
-- Other flows are found by probing the index between those that the worker knows (find_flows). Each claim probes only a
-- few of these gaps, so its cost does not grow with the number of flows. Probes skip known flows, because claimed jobs
-- leave dead index entries there that are slow to step over.

create or replace function running_room(p_org_id uuid) returns bigint
language plpgsql
as $$
-- How many more jobs of an organisation may run; null if there is no limit. Only one claim at a time may count: while it
-- holds the lock, others get -1 and retry later. So the count includes the jobs that the previous claim took.
declare
  v_allowed bigint;
begin
  select q.running_jobs into v_allowed from quotas_of(p_org_id) q;
  if v_allowed is null then return null; end if;
  -- An organisation at its limit is skipped without the lock.
  if v_allowed <= (select count(*) from held_jobs h where h.org_id = p_org_id) then return 0; end if;
  if not pg_try_advisory_xact_lock(hashtextextended('running jobs of ' || p_org_id, 0)) then return -1; end if;
  return greatest(0, v_allowed - (select count(*) from held_jobs h where h.org_id = p_org_id));
end
$$;

create or replace function flows_after(p_flow bigint) returns setof bigint
language sql stable
-- Flows after p_flow that have jobs, in ascending order: one index probe per flow.
begin atomic
  with recursive flows as (
    (select r.flow from ready_jobs r where r.flow > p_flow and r.lane < 5000 order by r.flow limit 1)
    union all
    select (select r.flow from ready_jobs r where r.flow > f.flow and r.lane < 5000 order by r.flow limit 1)
    from flows f
    where f.flow is not null
  )
  select f.flow
  from flows f
  where f.flow is not null;
end;

create or replace function find_flows(p_after bigint[], p_before bigint[], p_limit integer) returns bigint[]
language sql stable
-- Flows with jobs inside these gaps: one index probe per gap, and one per flow found.
begin atomic
  with recursive probes as (
    select 1 as gap, p_after[1] as flow, false as found
    union all
    select
      case when r.flow is null then p.gap + 1 else p.gap end,
      case when r.flow is null then p_after[p.gap + 1] else r.flow end,
      r.flow is not null
    from probes p
    left join lateral (
      select q.flow
      from ready_jobs q
      where q.flow > p.flow
        and q.flow < p_before[p.gap]
        and q.lane < 5000
      order by q.flow
      limit 1
    ) as r on true
    where p.gap <= cardinality(p_after)
  ),
  found as (
    select p.flow
    from probes p
    where p.found
    limit p_limit
  )
  select coalesce(array_agg(f.flow), '{}')
  from found f;
end;

create or replace function reserved_job(p_worker_id text, p_claim claim_request, p_some_paused boolean)
returns table (flow bigint, predicted_ms real, cpu_units real, memory_mb integer, place tid)
language sql volatile
-- The big job for which this worker reserves capacity, and its place, or null if it may not start or does not fit.
begin atomic
  select r.flow, r.predicted_ms, v.cpu_units, v.memory_mb, fitting.place
  from reservations v
  join ready_jobs r on r.org_id = v.org_id and r.job_id = v.job_id
  left join lateral (
    select q.ctid as place
    from ready_jobs q
    where q.org_id = v.org_id
      and q.job_id = v.job_id
      and is_claimable(
        q, p_claim.types, p_claim.free_cpu_units::real, p_claim.free_memory_mb::integer, p_some_paused
      )
      and coalesce(running_room(q.org_id), 1) > 0
    for update skip locked
  ) as fitting on true
  where v.worker_id = p_worker_id;
end;

create or replace function choose_jobs(
  p_worker_id text,
  p_claim claim_request,
  p_some_paused boolean,
  p_some_limited boolean,
  p_some_big boolean,
  p_some_deadlines boolean,
  p_some_weighted boolean,
  out places tid[],
  -- What was taken from which flow, in the order in which the jobs start:
  -- [{flow, weight, jobs, predicted_ms, floors, oldest_ms, oldest_left}].
  out turns json[],
  -- Flows that turned out to have jobs, and flows that have none left for this worker.
  out found_flows bigint[],
  out emptied bigint[],
  -- The claim found enough before it had looked into all gaps. The next one begins after this flow.
  out looked_up_to bigint,
  -- The order in which the jobs start matters.
  out ordered boolean,
  -- Capacity of the worker is reserved for a big job.
  out reserved boolean,
  -- A concurrent claim was counting the running jobs of an organisation.
  out contended boolean
)
language plpgsql
as $$
-- The next jobs that may start now and fit into the worker's free capacity, turn by turn.
declare
  -- By organisation: its virtual time, its weight, and its room for running jobs.
  v_orgs integer[] := p_claim.orgs;
  v_org_times double precision[] := p_claim.org_times;
  v_weights real[] := '{}';
  v_rooms bigint[] := '{}';
  -- By flow: its organisation, its virtual time, and whether it may have jobs.
  v_flows bigint[] := p_claim.flows;
  v_flow_orgs integer[] := p_claim.flow_orgs;
  v_times double precision[] := p_claim.flow_times;
  v_open boolean[] := p_claim.waiting;
  v_served boolean[] := '{}';
  -- The gaps that the claim has not looked into.
  v_after bigint[] := p_claim.look_after;
  v_before bigint[] := p_claim.look_before;
  v_has_looked boolean := false;
  v_new bigint[];
  v_big record;
  -- The turn: the positions of the flow and of its organisation, and the jobs that were taken.
  v_n integer;
  v_org integer;
  v_flow bigint;
  v_limit integer;
  v_next record;
  v_fitting record;
  v_taken tid[];
  v_taken_ms double precision;
  v_is_left boolean;
  v_oldest_left bigint;
  v_free_cpu_units double precision := p_claim.free_cpu_units;
  v_free_memory_mb double precision := p_claim.free_memory_mb;
  v_is_full boolean := false;
begin
  places := '{}';
  turns := '{}';
  found_flows := '{}';
  emptied := '{}';
  ordered := p_some_deadlines or p_some_big;
  reserved := false;
  contended := false;

  while cardinality(places) < p_claim.max_jobs and not v_is_full loop
    v_limit := p_claim.max_jobs - cardinality(places);

    -- 1. Look for flows that the worker does not know, or that had no jobs when it last looked: first of all, and again
    -- when the known ones have no more jobs.
    if not v_has_looked or array_position(v_open, true) is null then
      exit when v_has_looked and v_after = '{}';
      -- Look for at least four flows, even for fewer jobs, so that there is a choice.
      v_limit := greatest(v_limit, 4);
      v_new := find_flows(v_after, v_before, v_limit);
      found_flows := found_flows || v_new;
      looked_up_to := v_new[v_limit];
      -- A full result means that more flows may follow the last one found: keep looking from there.
      select coalesce(array_agg(greatest(g.after, looked_up_to)), '{}'), coalesce(array_agg(g.before), '{}')
      into v_after, v_before
      from unnest(v_after, v_before) as g (after, before)
      where g.before > looked_up_to + 1;
      foreach v_flow in array v_new loop
        v_n := coalesce(array_position(v_flows, v_flow), cardinality(v_flows) + 1);
        v_open[v_n] := true;
        if v_n > cardinality(v_flows) then
          v_org := coalesce(array_position(v_orgs, (v_flow >> 32)::integer), cardinality(v_orgs) + 1);
          v_flows[v_n] := v_flow;
          v_flow_orgs[v_n] := v_org;
          v_times[v_n] := 0;
          v_orgs[v_org] := v_flow >> 32;
          v_org_times[v_org] := coalesce(v_org_times[v_org], 0);
        end if;
      end loop;

      -- A big job for which this worker reserves capacity goes first as soon as it fits, and until then that capacity is
      -- not free for others. The reservation holds only while the virtual time of its organisation exceeds the lowest of
      -- those that wait by no more than this job.
      if p_some_big and not v_has_looked then
        select * into v_big from reserved_job(p_worker_id, p_claim, p_some_paused);
        v_org := v_flow_orgs[array_position(v_flows, v_big.flow)];
        reserved := (
          select v_org_times[v_org] - v_big.predicted_ms <= min(v_org_times[v_flow_orgs[n]])
          from generate_subscripts(v_flows, 1) as n
          where v_open[n]
        ) is true;
        if reserved then
          v_free_cpu_units := v_free_cpu_units - v_big.cpu_units;
          v_free_memory_mb := v_free_memory_mb - v_big.memory_mb;
        end if;
        if reserved and v_big.place is not null then
          v_weights[v_org] := weight_of(v_orgs[v_org]);
          v_org_times[v_org] := v_org_times[v_org] + v_big.predicted_ms / v_weights[v_org];
          places := array[v_big.place];
          v_served[array_position(v_flows, v_big.flow)] := true;
          turns := array[
            json_build_object(
              'flow', v_big.flow, 'weight', v_weights[v_org], 'jobs', 1, 'predicted_ms', v_big.predicted_ms
            )
          ];
        end if;
      end if;
      v_has_looked := true;
      continue;
    end if;

    -- 2. The flow whose turn it is.
    select n
    into v_n
    from generate_subscripts(v_flows, 1) as n
    where v_open[n]
    order by v_org_times[v_flow_orgs[n]], v_times[n], n
    limit 1;
    v_flow := v_flows[v_n];
    v_org := v_flow_orgs[v_n];
    -- The length of a turn does not matter if no other flow has jobs.
    if array_position(v_open, true, v_n + 1) is not null or array_position(v_open, true) < v_n then
      v_limit := least(v_limit, coalesce(p_claim.turns[v_n], p_claim.new_turn));
    end if;
    if p_some_limited then
      if v_rooms[v_org] is null then
        v_rooms[v_org] := coalesce(
          (select running_room(o.id) from orgs o where o.number = v_orgs[v_org]), p_claim.max_jobs
        );
        contended := contended or v_rooms[v_org] < 0;
      end if;
      if v_rooms[v_org] <= 0 then
        v_open[v_n] := false;
        continue;
      end if;
      v_limit := least(v_limit, v_rooms[v_org]);
    end if;

    -- 3. Its next jobs.
    v_next := next_jobs(
      p_claim, v_flow, v_n, v_limit, greatest(v_free_cpu_units, 1)::real, greatest(v_free_memory_mb, 64)::integer,
      p_some_paused, p_some_deadlines, case when v_served[v_n] then places else '{}' end
    );
    v_taken := v_next.places;
    v_taken_ms := v_next.predicted_ms;
    v_is_left := cardinality(v_taken) = v_limit;
    if p_some_big then
      v_fitting := fitting_jobs(p_claim, v_taken, v_free_cpu_units, v_free_memory_mb);
      v_is_left := v_is_left or cardinality(v_fitting.places) < cardinality(v_taken);
      -- Not even a job of the default size fits, so the worker is full.
      v_is_full := cardinality(v_fitting.places) < cardinality(v_taken) and not v_fitting.was_big;
      v_taken := v_fitting.places;
      v_taken_ms := v_fitting.predicted_ms;
      v_free_cpu_units := v_fitting.free_cpu_units;
      v_free_memory_mb := v_fitting.free_memory_mb;
    end if;
    if not v_is_left then
      v_open[v_n] := false;
      emptied := emptied || v_flow;
    end if;
    continue when v_taken = '{}';

    -- 4. Account for the turn, and report it to the worker.
    ordered := ordered or cardinality(turns) > 0 or v_next.lanes[1] <> any (v_next.lanes);
    places := places || v_taken;
    v_served[v_n] := true;
    if v_weights[v_org] is null then
      v_weights[v_org] := case when p_some_weighted then weight_of(v_orgs[v_org]) else 1 end;
    end if;
    v_times[v_n] := v_times[v_n] + v_taken_ms;
    v_org_times[v_org] := v_org_times[v_org] + v_taken_ms / v_weights[v_org];
    v_rooms[v_org] := v_rooms[v_org] - cardinality(v_taken);
    v_oldest_left := null;
    if p_claim.newest_rank and v_is_left then
      select r.key
      into v_oldest_left
      from ready_jobs r
      where r.flow = v_flow
        and r.key >= coalesce(p_claim.age_floors[v_n], 0)
        and r.ctid <> all (places)
        and is_claimable(r, p_claim.types, 'infinity', 2147483647, p_some_paused)
      order by r.key
      limit 1;
    end if;
    turns := turns || json_build_object(
      'flow', v_flow, 'weight', v_weights[v_org], 'jobs', cardinality(v_taken), 'predicted_ms', v_taken_ms,
      -- The next claim can start reading there.
      'floors',
        case
          when v_is_left and not p_some_big and not p_some_paused then lowest_keys(v_next.lanes, v_next.keys)
        end,
      'oldest_left', v_oldest_left,
      'oldest_ms', case when p_claim.newest_rank then older_ms(v_taken, v_oldest_left) end
    );
  end loop;
end
$$;

create or replace function weight_of(p_org_number integer) returns real
language sql stable
return (
  select q.weight
  from orgs o
  cross join lateral quotas_of(o.id) as q
  where o.number = p_org_number
);
