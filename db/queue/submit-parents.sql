-- The parents of new jobs, for submit.sql, which holds the locks that both functions need.

create or replace function judge_parents(
  p_orgs uuid[],
  p_last_jobs integer[],
  p_kinds jsonb,
  p_job_ids uuid[],
  p_job_kinds integer[],
  p_children integer[],
  p_parents uuid[],
  p_inside boolean[],
  out refusals jsonb,
  out blocked_by integer[]
)
language plpgsql
as $$
-- Locks the parents of new jobs. Returns the parents for which a submission is refused and, by job, the number of
-- parents that have not completed, or null if all have.
begin
  with dependency as materialized (
    select
      s as submission, p_orgs[s] as org_id, p_children[e] as job, p_parents[e] as parent_id, p_inside[e] as inside,
      p_kinds -> p_job_kinds[p_children[e]] - 1 ->> 'on_parent_failure' as rule
    from generate_subscripts(p_parents, 1) as e
    cross join lateral (select width_bucket(p_children[e] - 1, p_last_jobs) + 1 as s) as child
    where p_orgs[s] is not null
  ),
  parent as materialized (
    select o.org_id, p.job_id, p.state
    from (
      select org_id, array_agg(distinct parent_id) as parent_ids
      from dependency
      where not inside
      group by org_id
      order by org_id
    ) o
    cross join lateral lock_parents(o.org_id, o.parent_ids) p
  ),
  refusal as (
    select
      d.submission, p_job_ids[d.job] as child_id, d.parent_id,
      case when p.state is null then 'unknown_parent' else 'failed_parent' end as refusal
    from dependency d
    join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
    where not d.inside
      and (p.state is null or (p.state in ('failed', 'cancelled') and d.rule = 'fail'))
  ),
  obstacle as (
    select d.job, count(*)::integer as parents
    from dependency d
    left join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
    where d.inside
      or p.state <> 'completed'
    group by d.job
  )
  select
    coalesce((select jsonb_agg(to_jsonb(r)) from refusal r), '[]'),
    array(
      select o.parents
      from generate_subscripts(p_job_ids, 1) as n
      left join obstacle o on o.job = n
      order by n
    )
  into refusals, blocked_by;
end
$$;

create or replace function block_jobs(
  p_orgs uuid[],
  p_last_jobs integer[],
  p_kinds jsonb,
  p_job_ids uuid[],
  p_job_kinds integer[],
  p_children integer[],
  p_parents uuid[],
  p_skipped boolean[],
  p_blocked_by integer[]
) returns uuid[]
language plpgsql
as $$
-- Stores the dependencies of new jobs. Returns the blocked jobs, those with a parent that has not completed.
declare
  v_blocked uuid[];
begin
  insert into job_dependencies (parent_id, child_id, org_id)
  select p_parents[e], p_job_ids[p_children[e]], p_orgs[width_bucket(p_children[e] - 1, p_last_jobs) + 1]
  from generate_subscripts(p_parents, 1) as e
  where p_skipped[p_children[e]] is not true;

  with blocked as (
    insert into blocked_jobs (job_id, org_id, remaining, on_parent_failure)
    select
      p_job_ids[n], p_orgs[width_bucket(n - 1, p_last_jobs) + 1], p_blocked_by[n],
      p_kinds -> p_job_kinds[n] - 1 ->> 'on_parent_failure'
    from generate_subscripts(p_job_ids, 1) as n
    where p_skipped[n] is not true
      and p_blocked_by[n] > 0
    returning job_id
  )
  select coalesce(array_agg(job_id), '{}') into v_blocked from blocked;
  return v_blocked;
end
$$;
