import type { Query } from '../query.ts'
import type { JobSummaryRow } from './jobs.ts'

export type GraphRow = Pick<
  JobSummaryRow,
  'id' | 'name' | 'type' | 'status' | 'attempts' | 'predicted_ms' | 'predicted_p90_ms'
> & {
  /** Those of its parents that are among the rows. */
  parents: string[]
}

/**
 * The jobs connected with a job by dependencies, nearest first, starting with itself. The recursion meets each job
 * once and stops at the limit. No row: no such job. Limited subqueries make it read from the indexes whatever the
 * statistics say.
 */
export const getJobGraph = (orgId: string, jobId: string, limit: number): Query<GraphRow> => ({
  name: 'get-job-graph',
  text: `
    with recursive near (id) as (
      select id
      from smartqueue.jobs
      where org_id = $1::uuid
        and id = $2::uuid
      union
      select next.id
      from near
      cross join lateral (
        (
          select parent_id as id
          from smartqueue.job_dependencies
          where child_id = near.id
            and org_id = $1::uuid
          order by parent_id
          limit $3::int
        )
        union all
        (
          select child_id
          from smartqueue.job_dependencies
          where parent_id = near.id
            and org_id = $1::uuid
          order by child_id
          limit $3::int
        )
      ) next
    ),
    shown as materialized (
      select id, row_number() over () as place
      from (select id from near limit $3::int) nearest
    )
    select
      o.id, o.name, o.type, o.status, o.attempts, o.predicted_ms, o.predicted_p90_ms,
      array(
        select d.parent_id
        from smartqueue.job_dependencies d
        where d.child_id = shown.id
          and d.org_id = $1::uuid
          and d.parent_id in (select id from shown)
        order by d.parent_id
      ) as parents
    from shown
    cross join lateral (
      select id, name, type, status, attempts, predicted_ms, predicted_p90_ms
      from smartqueue.job_overview
      where org_id = $1::uuid
        and id = shown.id
      offset 0
    ) o
    order by shown.place`,
  values: [orgId, jobId, limit],
})
