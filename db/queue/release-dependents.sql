-- Release the dependents of jobs that finished.
--
-- Every transition that finishes jobs calls this in the same transaction. Dependents of completed jobs have one parent
-- fewer to wait for. Dependents of failed and cancelled jobs fail too, and so do their own dependents, unless they were
-- submitted with on_parent_failure = 'wait'. Returns how many jobs became ready.
--
-- Locks: rows of blocked_jobs, by id, after everything that the caller has locked. The first statement starts after the
-- caller has locked the parents (their leases or rows), and has a fresh snapshot: a dependent that was admitted by
-- lock_parents has been committed by then and is not missed.
--
-- Index: the primary key of job_dependencies, (parent_id, child_id). A job without dependents costs one probe.

create or replace function release_dependents(p_completed uuid[], p_failed uuid[]) returns integer
language plpgsql
as $$
declare
  v_org_ids uuid[];
  v_job_ids uuid[];
  v_ready integer := 0;
begin
  perform from job_dependencies where parent_id = any (p_completed || p_failed) limit 1;
  if not found then return 0; end if;

  perform
  from blocked_jobs
  where job_id = any (array(select child_id from job_dependencies where parent_id = any (p_completed || p_failed)))
  order by job_id
  for update;

  with edge as materialized (
    select child_id, count(*) as done
    from job_dependencies
    where parent_id = any (p_completed)
    group by child_id
  ),
  closer as (
    update blocked_jobs b
    set remaining = b.remaining - edge.done
    from edge
    where b.job_id = edge.child_id
      and b.remaining > edge.done
  ),
  released as (
    delete from blocked_jobs b
    using edge
    where b.job_id = edge.child_id
      and b.remaining = edge.done
    returning b.org_id, b.job_id
  )
  select array_agg(r.org_id), array_agg(r.job_id) into v_org_ids, v_job_ids from released r;

  if v_job_ids is not null then
    v_ready := (select count(*) from place_unblocked(v_org_ids, v_job_ids) p where p.status = 'ready');
  end if;
  if cardinality(p_failed) > 0 then
    perform fail_dependents(p_failed);
  end if;
  return v_ready;
end
$$;

create or replace function place_unblocked(p_org_ids uuid[], p_job_ids uuid[], p_reasons text[] default '{}')
returns table (job_id uuid, type text, status job_state)
language plpgsql
as $$
-- Jobs that are no longer blocked become ready, or wait for their run_at. A single organisation applies to all jobs.
declare
  v_org_ids uuid[];
  v_job_ids uuid[];
  v_types text[];
  v_statuses job_state[];
  v_ready_org_ids uuid[];
  v_ready_ids uuid[];
begin
  insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
  select j.id, j.org_id, 'pending', 0, j.run_at
  from jobs_of(p_org_ids, p_job_ids) j
  where j.run_at > now();

  select
    array_agg(j.org_id), array_agg(j.id), array_agg(j.type), array_agg(j.status),
    array_agg(j.org_id) filter (where j.status = 'ready'), array_agg(j.id) filter (where j.status = 'ready')
  into v_org_ids, v_job_ids, v_types, v_statuses, v_ready_org_ids, v_ready_ids
  from generate_series(1, cardinality(p_job_ids)) as n
  cross join lateral (
    select j.org_id, j.id, j.type, (case when j.run_at > now() then 'pending' else 'ready' end)::job_state as status
    from jobs j
    where j.org_id = nth(p_org_ids, n)
      and j.id = p_job_ids[n]
    offset 0
  ) j;
  perform requeue_jobs(v_ready_org_ids, v_ready_ids, '{0}');
  perform record_events(v_org_ids, v_job_ids, v_statuses, '{0}', p_reasons);
  return query select * from unnest(v_job_ids, v_types, v_statuses);
end
$$;

create or replace function fail_dependents(p_parents uuid[]) returns void
language plpgsql
as $$
-- Fails the dependents of these jobs level by level, down to the last.
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
