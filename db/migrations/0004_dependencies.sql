-- Jobs that wait for other jobs.

create table job_dependencies (
  parent_id uuid not null,
  child_id uuid not null,
  org_id uuid not null,
  primary key (parent_id, child_id),
  foreign key (org_id, parent_id) references jobs (org_id, id) on delete cascade,
  foreign key (org_id, child_id) references jobs (org_id, id) on delete cascade
);
comment on table job_dependencies is 'The child may not start before the parent has completed.';

create index job_dependencies_by_child on job_dependencies (child_id, parent_id);
comment on index job_dependencies_by_child is 'Serves get-job.';

create table blocked_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  -- Parents that have not completed.
  remaining integer not null,
  on_parent_failure text not null,
  constraint blocked_jobs_remaining check (remaining > 0)
);

create index blocked_jobs_by_org on blocked_jobs (org_id, job_id);
comment on index blocked_jobs_by_org is 'Serves list-jobs by status blocked, next to organisations with many.';

create function lock_parents(in_org uuid, in_jobs uuid[]) returns table (job_id uuid, state text)
language plpgsql
as $$
-- Says where each job stands and keeps it from finishing until the caller commits, so that a new dependent is either
-- seen by the statement that finishes its parent or sees that the parent has finished. Each look is a statement with a
-- snapshot of its own: a job that moves from one table to another between two looks is found by the next round.
declare
  wanted uuid;
begin
  for wanted in select distinct w from unnest(in_jobs) w order by w loop
    job_id := wanted;
    loop
      state := null;
      select f.state::text into state from finished_jobs f where f.org_id = in_org and f.job_id = wanted;
      exit when state = 'completed';
      if found then
        -- A failed or cancelled job may be retried, and then complete, before the caller commits.
        perform from finished_jobs f where f.org_id = in_org and f.job_id = wanted for key share;
        exit when found;
        state := null;
      end if;
      perform from ready_jobs r where r.job_id = wanted and r.org_id = in_org for key share;
      if found then state := 'ready'; exit; end if;
      perform from waiting_jobs w where w.job_id = wanted and w.org_id = in_org for key share;
      if found then state := 'waiting'; exit; end if;
      perform from blocked_jobs b where b.job_id = wanted and b.org_id = in_org for key share;
      if found then state := 'blocked'; exit; end if;
      perform from leases l where wanted = any (l.job_ids) for key share;
      if found then
        -- A lease outlives those of its jobs that ended first. With the lease locked none can end any more.
        perform from finished_jobs f where f.org_id = in_org and f.job_id = wanted;
        continue when found;
        perform from ready_jobs r where r.org_id = in_org and r.job_id = wanted union all select from waiting_jobs w where w.job_id = wanted;
        continue when found;
        perform from jobs j where j.org_id = in_org and j.id = wanted;
        if found then state := 'running'; end if;
        exit;
      end if;
      perform from jobs j where j.org_id = in_org and j.id = wanted;
      exit when not found;
    end loop;
    return next;
  end loop;
end
$$;

create function settle_dependents(completed uuid[], failed uuid[]) returns integer
language plpgsql
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
    insert into ready_jobs (job_id, org_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
    select job_id, org_id, stream_id, type, lane, 0, cpu_units, memory_mb, predicted_ms, start_by
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
        child.job_id, child.org_id, j.stream_id,
        jsonb_build_object(
          'code', 'dependency_failed',
          'message', 'Job ' || child.parent_id || ', which this job depends on, has failed or was cancelled.'
        ) as error
      from child
      join jobs j on j.org_id = child.org_id and j.id = child.job_id
    ),
    finished as (
      insert into finished_jobs (org_id, job_id, stream_id, state, attempts, error, fingerprint)
      select org_id, job_id, stream_id, 'failed', 0, error, error_fingerprint(error)
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
