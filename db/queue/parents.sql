-- Dependencies: locking the parents of a new job, and releasing or failing the dependents of a finished one.

create or replace function lock_parents(in_org uuid, in_jobs uuid[]) returns table (job_id uuid, state text)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Says where each job stands and keeps it from finishing until the caller commits, so that a new dependent is either
-- seen by the statement that finishes its parent or sees that the parent has finished. Each look is a statement with a
-- snapshot of its own: a job that moves from one table to another between two looks is found by the next round. Rows
-- are locked table by table in the order in which others lock them (ready and waiting, leases, blocked), and in each by
-- id or token.
declare
  sought uuid[] := array(select distinct w from unnest(in_jobs) w);
  found_jobs uuid[];
  locked bigint[];
  wanted uuid;
begin
  while cardinality(sought) > 0 loop
    found_jobs := '{}';
    for wanted in select w from unnest(sought) w order by w loop
      job_id := wanted;
      state := null;
      select f.state::text into state from finished_jobs f where f.org_id = in_org and f.job_id = wanted;
      if state <> 'completed' then
        -- A failed or cancelled job may be retried, and then complete, before the caller commits.
        perform from finished_jobs f where f.org_id = in_org and f.job_id = wanted for key share;
        if not found then state := null; end if;
      end if;
      if state is null then
        perform from ready_jobs r where r.job_id = wanted and r.org_id = in_org for key share;
        if found then state := 'ready'; end if;
      end if;
      if state is null then
        perform from waiting_jobs w where w.job_id = wanted and w.org_id = in_org for key share;
        if found then state := 'waiting'; end if;
      end if;
      if state is not null then
        found_jobs := found_jobs || wanted;
        return next;
      end if;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
    exit when cardinality(sought) = 0;

    locked := array(select l.token from leases l where l.job_ids && sought order by l.token for key share);
    -- A lease outlives those of its jobs that ended first. With the lease locked none can end any more.
    for job_id, state in
      select j.id, 'running'
      from jobs j
      where j.org_id = in_org
        and j.id = any (sought)
        and exists (select from leases l where l.token = any (locked) and j.id = any (l.job_ids))
        and not exists (select from finished_jobs f where f.org_id = in_org and f.job_id = j.id)
        and not exists (select from ready_jobs r where r.org_id = in_org and r.job_id = j.id)
        and not exists (select from waiting_jobs w where w.job_id = j.id)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select b.job_id, 'blocked'
      from blocked_jobs b
      where b.org_id = in_org
        and b.job_id = any (sought)
      order by b.job_id
      for key share
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select w, null::text
      from unnest(sought) w
      where not exists (select from jobs j where j.org_id = in_org and j.id = w)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
  end loop;
end
$$;

create or replace function settle_dependents(completed uuid[], failed uuid[]) returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Called by every statement that finishes jobs. Dependents of completed jobs come one parent closer to ready; those of
-- failed and cancelled ones fail with them, all the way down, unless they are told to wait. Answers how many became
-- ready. Being a function it looks with a fresh snapshot, after the caller has locked the finished jobs: no dependent
-- that lock_parents let in can be missed.
declare
  became_ready integer := 0;
begin
  perform from job_dependencies where parent_id = any (completed || failed) limit 1;
  if not found then return 0; end if;

  with edge as (
    select child_id, count(*) as done
    from job_dependencies
    where parent_id = any (completed)
    group by child_id
  ),
  child as materialized (
    select b.job_id, b.org_id, b.remaining - edge.done as remaining
    from blocked_jobs b
    join edge on edge.child_id = b.job_id
    order by b.job_id
    for update of b
  ),
  closer as (
    update blocked_jobs b
    set remaining = child.remaining
    from child
    where b.job_id = child.job_id
      and child.remaining > 0
  ),
  released as (
    delete from blocked_jobs b
    using child
    where b.job_id = child.job_id
      and child.remaining = 0
    returning b.job_id, b.org_id
  ),
  entry as (
    select q.*
    from released
    join queue_entries q on q.org_id = released.org_id and q.job_id = released.job_id
  ),
  pending as (
    insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
    select job_id, org_id, 'pending', 0, run_at
    from entry
    where run_at > now()
    returning job_id, org_id, 'pending'::job_state as state
  ),
  ready as (
    insert into ready_jobs (job_id, org_id, series_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
    select job_id, org_id, series_id, type, lane, 0, cpu_units, memory_mb, predicted_ms, start_by
    from entry
    where run_at is null or run_at <= now()
    returning job_id, org_id, 'ready'::job_state as state
  ),
  event as (
    insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
    select org_id, array_agg(job_id), array_agg(state), array_agg(0), array_agg(null::text), array_agg(now())
    from (select * from pending union all select * from ready) moved
    group by org_id
  )
  select count(*) into became_ready
  from ready;

  while cardinality(failed) > 0 loop
    with edge as (
      select child_id, min(parent_id::text) as parent_id
      from job_dependencies
      where parent_id = any (failed)
      group by child_id
    ),
    child as materialized (
      select b.job_id, b.org_id, edge.parent_id
      from blocked_jobs b
      join edge on edge.child_id = b.job_id
      where b.on_parent_failure = 'fail'
      order by b.job_id
      for update of b
    ),
    released as (
      delete from blocked_jobs b
      using child
      where b.job_id = child.job_id
    ),
    judged as (
      select
        child.job_id, child.org_id, j.series_id,
        jsonb_build_object(
          'code', 'dependency_failed',
          'message', 'Job ' || child.parent_id || ', which this job depends on, has failed or was cancelled.'
        ) as error
      from child
      join jobs j on j.org_id = child.org_id and j.id = child.job_id
    ),
    finished as (
      insert into finished_jobs (org_id, job_id, series_id, state, attempts, error, fingerprint)
      select org_id, job_id, series_id, 'failed', 0, error, error_fingerprint(error)
      from judged
    ),
    event as (
      insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select
        org_id, array_agg(job_id), array_agg('failed'::job_state), array_agg(0), array_agg('dependency_failed'::text),
        array_agg(now())
      from judged
      group by org_id
    )
    select coalesce(array_agg(job_id), '{}') into failed
    from judged;
  end loop;
  return became_ready;
end
$$;

grant execute on function lock_parents, settle_dependents to smartqueue_functions, smartqueue_workers;
