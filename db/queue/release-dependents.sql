-- Release the dependents of jobs that finished.
--
-- Every transition that finishes jobs calls this in the same transaction. Dependents of completed jobs come one parent
-- closer to ready. Dependents of failed and cancelled jobs fail with them, and so do their own dependents, unless they
-- were submitted with on_parent_failure = 'wait'. Returns how many jobs became ready.
--
-- Locks: rows of blocked_jobs, in the order of their ids, after everything that the caller has locked. The first
-- statement starts after the caller has locked the parents (their leases or rows), and has a fresh snapshot: a
-- dependent that lock_parents let in has been committed by then and is not missed.
--
-- Index: the primary key of job_dependencies, (parent_id, child_id). Jobs without dependents cost one probe each.

create or replace function release_dependents(p_completed uuid[], p_failed uuid[]) returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
declare
  v_org_ids uuid[];
  v_job_ids uuid[];
  v_run_ats timestamptz[];
  v_ready integer := 0;
begin
  perform from job_dependencies where parent_id = any (p_completed || p_failed) limit 1;
  if not found then return 0; end if;

  perform
  from blocked_jobs
  where job_id = any (array(select child_id from job_dependencies where parent_id = any (p_completed || p_failed)))
  order by job_id
  for update;

  with edge as (
    select child_id, count(*) as done
    from job_dependencies
    where parent_id = any (p_completed)
    group by child_id
  ),
  released as (
    delete from blocked_jobs b
    using edge
    where b.job_id = edge.child_id
      and b.remaining = edge.done
    returning b.org_id, b.job_id
  )
  select array_agg(r.org_id), array_agg(r.job_id), array_agg(j.run_at)
  into v_org_ids, v_job_ids, v_run_ats
  from released r
  join jobs j on j.org_id = r.org_id and j.id = r.job_id;

  with edge as (
    select child_id, count(*) as done
    from job_dependencies
    where parent_id = any (p_completed)
    group by child_id
  )
  update blocked_jobs b
  set remaining = b.remaining - edge.done
  from edge
  where b.job_id = edge.child_id;

  if v_job_ids is not null then
    v_ready := place_released(v_org_ids, v_job_ids, v_run_ats);
  end if;
  if cardinality(p_failed) > 0 then
    perform fail_dependents(p_failed);
  end if;
  return v_ready;
end
$$;

create or replace function place_released(p_org_ids uuid[], p_job_ids uuid[], p_run_ats timestamptz[]) returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Jobs that nothing blocks any more become ready, or wait for their run_at. Returns how many became ready.
declare
  v_org_ids uuid[];
  v_job_ids uuid[];
begin
  insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
  select p_job_ids[n], p_org_ids[n], 'pending', 0, p_run_ats[n]
  from generate_series(1, cardinality(p_job_ids)) as n
  where p_run_ats[n] > now();

  select array_agg(p_org_ids[n]), array_agg(p_job_ids[n])
  into v_org_ids, v_job_ids
  from generate_series(1, cardinality(p_job_ids)) as n
  where (p_run_ats[n] > now()) is not true;

  perform record_events(
    p_org_ids, p_job_ids,
    array(
      select (case when p_run_ats[n] > now() then 'pending' else 'ready' end)::job_state
      from generate_series(1, cardinality(p_job_ids)) as n
      order by n
    ),
    '{0}'
  );
  if v_job_ids is null then return 0; end if;
  perform requeue_jobs(v_org_ids, v_job_ids, '{0}');
  return cardinality(v_job_ids);
end
$$;

create or replace function fail_dependents(p_parents uuid[]) returns void
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Level by level, all the way down.
declare
  v_parents uuid[] := p_parents;
  v_org_ids uuid[];
  v_series_ids bigint[];
  v_errors jsonb[];
begin
  loop
    perform
    from blocked_jobs
    where job_id = any (array(select child_id from job_dependencies where parent_id = any (v_parents)))
      and on_parent_failure = 'fail'
    order by job_id
    for update;

    with edge as (
      select child_id, min(parent_id::text) as parent_id
      from job_dependencies
      where parent_id = any (v_parents)
      group by child_id
    ),
    failed as (
      delete from blocked_jobs b
      using edge
      where b.job_id = edge.child_id
        and b.on_parent_failure = 'fail'
      returning b.org_id, b.job_id, edge.parent_id
    )
    select
      array_agg(f.org_id), array_agg(f.job_id), array_agg(j.series_id),
      array_agg(
        jsonb_build_object(
          'code', 'dependency_failed',
          'message', 'Job ' || f.parent_id || ', which this job depends on, has failed or was cancelled.'
        )
      )
    into v_org_ids, v_parents, v_series_ids, v_errors
    from failed f
    join jobs j on j.org_id = f.org_id and j.id = f.job_id;
    exit when v_parents is null;

    perform finish_jobs('failed', v_org_ids, v_parents, v_series_ids, '{0}', p_errors => v_errors);
    perform record_events(v_org_ids, v_parents, '{failed}', '{0}', '{dependency_failed}');
  end loop;
end
$$;
