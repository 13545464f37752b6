-- Parts of the statements that maintain the rollups (db/queries/analytics-rollup.ts). All of them are inlined.

create or replace function count_in_state(p_states job_state[], p_jobs integer, p_state job_state) returns integer
language sql immutable parallel safe
-- How many jobs of a row of events entered a state. A single state applies to all jobs.
return case
  when cardinality(p_states) = 1 then case p_states[1] when p_state then p_jobs else 0 end
  else cardinality(array_positions(p_states, p_state))
end;

create or replace function readiness_of(
  p_org uuid, p_job uuid, p_created_at timestamptz, p_run_at timestamptz, p_ended_at timestamptz
) returns table (ready_at timestamptz, is_later_try boolean)
language sql stable
-- A job waits from the moment it could have started: its submission, its run_at, or the end of its last parent. Only
-- first attempts count, because later ones waited for other reasons. `is_later_try` also covers attempts after somebody
-- retried the job.
begin atomic
  select
    greatest(
      p_created_at, p_run_at,
      case
        when (select true from job_dependencies limit 1) then (
          select max(p.finished_at)
          from job_dependencies d
          join finished_jobs p on p.org_id = d.org_id and p.job_id = d.parent_id
          where d.child_id = p_job
        )
      end
    ),
    exists (
      select
      from attempts
      where org_id = p_org
        and job_id = p_job
        and finished_at < p_ended_at
    );
end;

create or replace function first_uncounted_at() returns timestamptz
language sql stable
-- The time of the first event that is not in the rollups yet. Null if all are.
begin atomic
  select g.at
  from event_cursors c
  cross join lateral (
    select at
    from job_event_groups
    where (xid, id) > (c.xid, c.id)
      and (id > c.foreign_id) is true
    order by xid, id
    limit 1
  ) g
  where c.reader = 'rollups';
end;

create or replace function gain_stretch(p_rows integer, p_jobs integer)
returns table (
  xid xid8, id bigint, org_id uuid, at timestamptz, outcome text, job_ids uuid[], ran_ms real[], upto bigint
)
language sql stable
-- Ended attempts that the simulation of the queue has not read yet: at most p_rows rows, and about p_jobs jobs.
begin atomic
  select xid, id, org_id, at, outcome, job_ids, ran_ms, upto
  from (
    select e.*, sum(cardinality(e.job_ids)) over (order by e.xid, e.id) as upto
    from event_cursors c
    cross join lateral (
      select xid, id, org_id, at, outcome, job_ids, ran_ms
      from executions
      where (xid, id) > (c.xid, c.id)
        and xid < pg_snapshot_xmin(pg_current_snapshot())
        and (id > c.foreign_id) is true
      order by xid, id
      limit p_rows
    ) e
    where c.reader = 'gains'
  ) counted
  where upto - cardinality(job_ids) < p_jobs;
end;

grant execute on function count_in_state, readiness_of, first_uncounted_at, gain_stretch to smartqueue_workers;
