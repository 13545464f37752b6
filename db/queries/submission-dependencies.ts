/** Nothing is stored if any submission is over a quota, or has a key that was used before. */
export const JUDGED_ADMITTED = `not exists (select from admission)`

export const ACCEPTED = `(submission in (select submission from refusal)) is not true`

/** Who depends on whom, what stands in the way of each dependent, and what makes a submission impossible. */
export const DEPENDENCIES = `
    dependency as materialized (
      select
        r.submission, r.org_id, r.on_parent_failure, ($8::uuid[])[n] as child_id, ($9::uuid[])[n] as parent_id,
        ($11::boolean[])[n] as inside
      from generate_series(1, cardinality($8::uuid[])) as n
      join request r on r.number = ($10::integer[])[n]
    ),
    parent as materialized (
      select o.org_id, p.job_id, p.state
      from (
        select org_id, array_agg(distinct parent_id) as parent_ids
        from dependency
        where not inside
        group by org_id
      ) o
      cross join lateral smartqueue.lock_parents(o.org_id, o.parent_ids) p
    ),
    refusal as materialized (
      select
        d.submission, d.child_id, d.parent_id,
        case when p.state is null then 'unknown_parent' else 'failed_parent' end as refusal
      from dependency d
      join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
      where not d.inside
        and (p.state is null or (p.state in ('failed', 'cancelled') and d.on_parent_failure = 'fail'))
    ),
    obstacle as materialized (
      select d.child_id, count(*)::integer as remaining
      from dependency d
      left join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
      where d.inside or p.state <> 'completed'
      group by d.child_id
    )`

export const BLOCKED = `
    edge as (
      insert into smartqueue.job_dependencies (parent_id, child_id, org_id)
      select parent_id, child_id, org_id
      from dependency
      where ${ACCEPTED}
        and ${JUDGED_ADMITTED}
    ),
    blocked as (
      insert into smartqueue.blocked_jobs (job_id, org_id, remaining, on_parent_failure)
      select j.id, j.org_id, o.remaining, j.on_parent_failure
      from job j
      join obstacle o on o.child_id = j.id
    )`

export const IS_BLOCKED = `id in (select child_id from obstacle)`

export const BLOCKED_IDS = `case when number = (select min(number) from kind) then array(select child_id from obstacle) end`
