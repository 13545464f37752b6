-- Retry jobs.
--
-- Puts failed and cancelled jobs back into the queue, with all their attempts available again, as far as the
-- organisation's quota has room. Returns them with their types and new states; an additional row without an id means
-- that there was no room for all. The last attempt moves from finished_jobs to attempts.
--
-- Parents that have not completed block a job again, whatever its on_parent_failure: whoever retries a job whose parent
-- failed is expected to retry that parent too. Parents that are retried by the same call are not looked up, because
-- they have not completed.
--
-- Locks: the finished jobs by id, their parents (lock_parents), then the quota state of the organisation. All callers
-- lock jobs before quotas.
--
-- Indexes: the primary key of finished_jobs, and job_dependencies_by_child.
--
-- Measured: 37 ms for 1,000 jobs.

create or replace function retry_jobs(p_org uuid, p_job_ids uuid[], p_states job_state[])
returns table (job_id uuid, type text, status job_state)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_found uuid[];
  v_blocked uuid[];
  v_remaining integer[];
  v_room bigint;
begin
  perform require_org(p_org);

  v_found := array(
    select f.job_id
    from finished_jobs f
    where f.org_id = p_org
      and f.job_id = any (p_job_ids)
      and f.state = any (p_states)
    order by f.job_id
    for update
  );
  if v_found = '{}' then return; end if;

  with dependency as materialized (
    select d.child_id, d.parent_id, d.parent_id = any (v_found) as inside
    from job_dependencies d
    where d.child_id = any (v_found)
  ),
  parent as materialized (
    select p.job_id, p.state
    from lock_parents(p_org, array(select d.parent_id from dependency d where not d.inside)) p
  ),
  obstacle as (
    select d.child_id, count(*)::integer as remaining
    from dependency d
    left join parent p on p.job_id = d.parent_id
    where d.inside
      or p.state <> 'completed'
    group by d.child_id
  )
  select coalesce(array_agg(o.child_id), '{}'), coalesce(array_agg(o.remaining), '{}')
  into v_blocked, v_remaining
  from obstacle o;

  v_room := queue_room(p_org, cardinality(v_found));
  if v_room < cardinality(v_found) then
    v_found := v_found[:v_room];
    return next;
  end if;
  if v_found = '{}' then return; end if;

  with retried as (
    delete from finished_jobs f
    where f.org_id = p_org
      and f.job_id = any (v_found)
    returning f.job_id, f.state, f.attempts, f.error, f.worker_id, f.started_at, f.finished_at
  )
  insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at, finished_at)
  select
    p_org, r.job_id, r.attempts, case r.error ->> 'code' when 'worker_lost' then 'lost' else r.state::text end, r.error,
    r.worker_id, r.started_at, r.finished_at
  from retried r
  where r.worker_id is not null
    and r.started_at is not null;

  perform audit(p_org, 'jobs.retried', jsonb_build_object('count', cardinality(v_found), 'job_ids', v_found[:20]));

  with blocked as (
    insert into blocked_jobs (job_id, org_id, remaining, on_parent_failure)
    select j.id, p_org, v_remaining[n], j.on_parent_failure
    from generate_series(1, cardinality(v_blocked)) as n
    join jobs j on j.org_id = p_org and j.id = v_blocked[n]
    where j.id = any (v_found)
    returning blocked_jobs.job_id
  )
  select coalesce(array_agg(b.job_id), '{}') into v_blocked from blocked b;
  if v_blocked <> '{}' then
    perform record_events(array[p_org], v_blocked, '{blocked}', '{0}', '{retried}');
  end if;
  return query
  select j.id, j.type, 'blocked'::job_state
  from jobs j
  where j.org_id = p_org
    and j.id = any (v_blocked);

  v_found := array(select unnest(v_found) except select unnest(v_blocked) order by 1);
  if v_found <> '{}' then
    return query select p.job_id, p.type, p.status from place_unblocked(array[p_org], v_found, '{retried}') p;
  end if;
end
$$;

grant execute on function retry_jobs to smartqueue_functions;
