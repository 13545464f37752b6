import type { Query } from '../query.ts'
import { type JobFilter, shapeOf } from './job-filter.ts'
import { type JobSearch, searchJobs } from './job-search.ts'
import { type JobSummaryRow, SUMMARY_COLUMNS } from './jobs.ts'

/** Newest first, without payloads and results: a page stays small whatever the jobs carry. */
export const listJobs = (page: JobSearch): Query<JobSummaryRow> => {
  const search = searchJobs(page)
  return {
    name: `list-jobs${shapeOf(page.filter)}`,
    text: `
    with page as materialized (${search.text}
    )
    select o.*
    from page
    cross join lateral (
      select ${SUMMARY_COLUMNS}
      from smartqueue.job_overview
      where org_id = $1::uuid
        and id = page.id
      offset 0
    ) o
    order by page.id desc`,
    values: search.values,
  }
}

/** The same of all organisations, for an admin: a search in each, then the newest of what they found. */
export const listAllJobs = (page: Omit<JobSearch, 'orgId'>): Query<JobSummaryRow> => {
  const search = searchJobs({ ...page, orgId: null })
  return {
    name: `list-all-jobs${shapeOf(page.filter)}`,
    text: `
    with page as materialized (
      select org.id as org_id, found.id
      from smartqueue.orgs org
      cross join lateral (${search.text.replaceAll('$1::uuid', 'org.id')}
      ) found
      where $1::uuid is null
      order by found.id desc
      limit $3::int
    )
    select o.*
    from page
    cross join lateral (
      select ${SUMMARY_COLUMNS}
      from smartqueue.job_overview
      where org_id = page.org_id
        and id = page.id
      offset 0
    ) o
    order by page.id desc`,
    values: search.values,
  }
}

/** The ids alone, for actions on many jobs. */
export const listJobIds = (page: JobSearch): Query<{ id: string }> => ({
  name: `list-job-ids${shapeOf(page.filter)}`,
  ...searchJobs(page),
})

/** How many there are, counted up to a limit. */
export const countJobs = (orgId: string, filter: JobFilter, limit: number): Query<{ matched: number }> => {
  const search = searchJobs({ orgId, filter, before: null, limit })
  return {
    name: `count-jobs${shapeOf(filter)}`,
    text: `
    select count(*)::integer as matched
    from (${search.text}
    ) matching`,
    values: search.values,
  }
}
