/**
 * For `update leases l set …`: what the lease still names, without the jobs of the CTE `left`. The four arrays always
 * change together.
 */
export const withoutJobs = (left: string): string => `(job_ids, org_ids, attempts, started_ats) = (
          select
            coalesce(array_agg(h.job_id order by n), '{}'), coalesce(array_agg(h.org_id order by n), '{}'),
            coalesce(array_agg(h.attempt order by n), '{}'), coalesce(array_agg(h.started_at order by n), '{}')
          from unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
            with ordinality as h (job_id, org_id, attempt, started_at, n)
          where h.job_id not in (select job_id from ${left})
        )`
