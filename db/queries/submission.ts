import { arrayOf } from '../array-literal.ts'
import type { Query, QueryValue } from '../query.ts'
import { DEFAULT_ESTIMATE, P90_DEVIATIONS } from '../rules/estimate.ts'
import type { Priority, RankTerms } from '../rules/priority.ts'
import { toKinds } from './submission-kinds.ts'
import { submissionText } from './submission-text.ts'

export type NewJob = RankTerms & {
  id: string
  type: string
  name: string
  payload: Record<string, unknown>
  priority: Priority
  tags: string[]
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  cpu_units: number
  memory_mb: number
  run_at: string | null
  deadline: string | null
  /** Ids of jobs of the organisation, or of the same submission, which must have no cycle. */
  depends_on: string[]
  on_parent_failure: OnParentFailure
}

export type OnParentFailure = 'fail' | 'wait'

export type PredictionSource = 'lstm' | 'stream' | 'type' | 'default'

/** Jobs that are accepted together or not at all. */
export type Submission = { orgId: string; userId: string; jobs: readonly NewJob[] }

export type SubmittedJob = {
  /** Position of the submission in the statement, from 1. */
  submission: number
  id: string
  status: 'pending' | 'blocked' | 'ready'
  created_at: Date
  predicted_ms: number
  predicted_p90_ms: number
  prediction_source: PredictionSource
  model_version: number | null
  rank: number
  /** Even if it started now, its 90th percentile would pass the deadline. */
  deadline_at_risk: boolean
  /** Workers have been told of it. */
  announced: boolean
}

/** Why a submission was refused as a whole. */
export type RefusedSubmission = {
  submission: number
  id: null
  child_id: string
  parent_id: string
  refusal: 'unknown_parent' | 'failed_parent'
}

export type SubmissionRow = SubmittedJob | RefusedSubmission

/**
 * What the statement answers: a row for each kind of job, and one for each dependency that it refuses. The first row
 * has the blocked jobs of all kinds: with them in each, a thousand kinds would answer a million ids.
 */
export type AnswerRow =
  | (Omit<SubmittedJob, 'id'> & { kind: number; blocked: string[] | null })
  | (Omit<RefusedSubmission, 'id'> & { kind: null })

/**
 * Commits many submissions in one statement, each for itself: all of its jobs or none. One without a row was not
 * made by a member of its organisation.
 *
 * The prediction is the stream's running estimate as of this statement, else the type's, else the default.
 *
 * Jobs that are submitted together are mostly alike but for their ids and payloads. So what they have in common is
 * sent, looked up and answered once, as a kind; `readSubmitted` puts the answer together.
 */
export const submitJobs = (submissions: readonly Submission[]): Query<AnswerRow> => {
  const { kinds, jobs, edges } = toKinds(submissions)
  const dependent = edges.length > 0
  const delayed = jobs.some(({ job }) => job.run_at !== null)
  const alike = !dependent && kinds.length === 1
  const values: QueryValue[] = [
    JSON.stringify(kinds),
    arrayOf(jobs.map(({ job }) => job.id)),
    JSON.stringify(jobs.map(({ job }) => job.payload)),
    DEFAULT_ESTIMATE.meanLog,
    DEFAULT_ESTIMATE.deviationLog,
    P90_DEVIATIONS,
  ]
  if (!alike) values.push(arrayOf(jobs.map(({ kind }) => kind)))
  if (dependent) {
    values.push(
      arrayOf(edges.map(({ childId }) => childId)),
      arrayOf(edges.map(({ parentId }) => parentId)),
      arrayOf(edges.map(({ kind }) => kind)),
      arrayOf(edges.map(({ inside }) => inside)),
    )
  }
  return { ...submissionText({ dependent, delayed, alike }), values }
}

/** The rows of each submission's jobs, in their order, and those of its refusal. */
export const readSubmitted = (
  submissions: readonly Submission[],
  rows: readonly AnswerRow[],
): SubmissionRow[] => {
  const { jobs } = toKinds(submissions)
  const kinds = new Map(rows.flatMap((row) => (row.kind === null ? [] : [[row.kind, row]])))
  const refusals = rows.flatMap((row) => (row.kind === null ? { ...row, id: null } : []))
  const blocked = new Set([...kinds.values()].flatMap((row) => row.blocked ?? []))
  const submitted = jobs.flatMap(({ job: { id }, submission, kind }) => {
    const answer = kinds.get(kind)
    if (!answer) return []
    const { kind: _, blocked: __, ...row } = answer
    return { ...row, submission, id, status: blocked.has(id) ? ('blocked' as const) : row.status }
  })
  return [...submitted, ...refusals]
}

/** What `submitJobs` has answered, or would have, for one submission that was committed. */
export const findSubmitted = ({ orgId, jobs }: Submission): Query<SubmissionRow> => ({
  name: 'find-submitted',
  text: `
    select
      1 as submission, id, case when status in ('pending', 'blocked') then status else 'ready' end as status, created_at,
      predicted_ms, predicted_p90_ms, prediction_source, model_version, rank,
      coalesce(
        deadline - predicted_p90_ms * interval '1 millisecond' < greatest(created_at, run_at),
        false
      ) as deadline_at_risk,
      false as announced
    from job_overview
    where org_id = $1::uuid
      and id = any ($2::uuid[])`,
  values: [orgId, jobs.map(({ id }) => id)],
})
