import type { JobSummaryRow } from '../queries/jobs.ts'
import type { NewestFirst, Query, QueryValue } from '../query.ts'
import type { JobState } from '../rules/job-states.ts'
import type { Priority } from '../rules/priority.ts'
import { uuidV7Floor } from '../rules/uuid-v7.ts'

export type JobFilter = {
  statuses?: readonly JobState[] | undefined
  type?: string | undefined
  name?: string | undefined
  tag?: string | undefined
  /** A part of the name, ignoring case, or a tag, or the id. */
  text?: string | undefined
  priority?: Priority | undefined
  created_by?: string | undefined
  created_after?: Date | undefined
  created_before?: Date | undefined
  /** Identifies failed jobs with the same error; only with the status `failed`. */
  fingerprint?: string | undefined
}

/** `orgId`: null searches all organisations, for an admin. `before`: the `next_id` of the previous page. */
export type JobSearch = NewestFirst & { orgId: string | null; filter: JobFilter }

/** An empty page is one row without a job. */
export type ListedJob = (JobSummaryRow | { [Column in keyof JobSummaryRow]: null }) & {
  /** Null on the last page. A page that is not full may also have one. */
  next_id: string | null
}

/** Newest first, without payloads and results, so that a page stays small. */
export const listJobs = (search: JobSearch): Query<ListedJob> => ({
  name: 'list-jobs',
  text: `
    select next_id, (job).*
    from smartqueue.list_jobs(
      p_org => $1::uuid, p_filter => $2::jsonb, p_from => $3::uuid, p_below => $4::uuid, p_limit => $5::integer,
      p_entry => $6::jsonb
    )`,
  values: [...valuesOf(search), null],
  takesProof: true,
})

/** The ids alone, to count jobs or to act on them. */
export const findJobs = (search: JobSearch): Query<{ ids: string[]; next_id: string | null }> => ({
  name: 'find-jobs',
  text: `
    select ids, next_id
    from smartqueue.find_jobs(
      p_org => $1::uuid, p_filter => $2::jsonb, p_from => $3::uuid, p_below => $4::uuid, p_limit => $5::integer
    )`,
  values: valuesOf(search),
})

const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
/** An id is generated shortly before its row is inserted, and the clocks of two machines may differ by this much. */
const SLACK_MS = 60_000

const valuesOf = ({ orgId, filter, before, limit }: JobSearch): QueryValue[] => {
  const { created_after, created_before } = filter
  const from = created_after ? uuidV7Floor(created_after.getTime() - SLACK_MS) : FIRST_ID
  const end = created_before ? uuidV7Floor(created_before.getTime() + SLACK_MS) : LAST_ID
  const below = before !== null && before < end ? before : end
  return [orgId, JSON.stringify(filter), from, below, limit]
}
