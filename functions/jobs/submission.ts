import type { JobRow } from '../../db/queries/jobs.ts'
import type { NewJob, RefusedSubmission, SubmissionRow, SubmittedJob } from '../../db/queries/submission.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { Principal } from '../auth/access-token.ts'
import { membershipEnded } from '../auth/require-auth.ts'
import type { Hold } from '../http/background.ts'
import { toPointer } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import type { Services } from '../services.ts'
import { checkGraph, resolveParents } from './dependencies.ts'
import type { JobRequest } from './new-job.ts'
import { checkPayloads } from './payloads.ts'

/** The path of a job in the body that it came in: none if it is the body. */
export type PathOf = (job: number) => readonly PropertyKey[]

/**
 * Checks jobs that were sent together and commits them, all or none. Answers once they are committed: one round trip
 * to the database, shared with whoever submits at the same time.
 */
export const submitAll = async (
  { jobTypes, submitter }: Services,
  { org_id, user_id }: Principal,
  requests: readonly JobRequest[],
  { pathOf, hold }: { pathOf: PathOf; hold: Hold },
): Promise<JobRow[]> => {
  checkGraph(requests, pathOf)
  await checkPayloads(jobTypes, requests, pathOf)
  const ids = requests.map(uuidV7)
  const parents = resolveParents(requests, ids)
  const jobs = requests.map((request, i) => toNewJob(request, ids[i] ?? '', parents[i] ?? []))
  const rows = await submitter.submit({ orgId: org_id, userId: user_id, jobs }, hold)
  const refused = rows.filter(isRefused)
  if (refused.length > 0) throw refusedParents(refused, jobs, requests, pathOf)
  const submitted = new Map(rows.filter(isSubmitted).map((row) => [row.id, row]))
  return jobs.map((job) => {
    const row = submitted.get(job.id)
    if (!row) throw membershipEnded()
    return toRow(job, row, { org_id, created_by: user_id })
  })
}

const isRefused = (row: SubmissionRow): row is RefusedSubmission => row.id === null
const isSubmitted = (row: SubmissionRow): row is SubmittedJob => row.id !== null

const toNewJob = (request: JobRequest, id: string, depends_on: string[]): NewJob => {
  const { name, type, payload, priority, tags, retry, resources, on_parent_failure } = request
  const timeout_seconds = request.timeout_seconds ?? null
  return {
    id,
    name,
    type,
    payload,
    priority,
    tags,
    timeout_seconds,
    ...retry,
    ...resources,
    ...rankTerms(priority, timeout_seconds),
    run_at: toUtc(request.run_at),
    deadline: toUtc(request.deadline),
    depends_on,
    on_parent_failure,
  }
}

/** RFC 3339 allows what Postgres does not read: offsets up to a day, any number of digits. */
const toUtc = (time: string | undefined): string | null => (time ? new Date(time).toISOString() : null)

const toRow = (
  job: NewJob,
  submitted: SubmittedJob,
  owner: Pick<JobRow, 'org_id' | 'created_by'>,
): JobRow => ({
  ...job,
  ...submitted,
  ...owner,
  run_at: job.run_at ? new Date(job.run_at) : null,
  deadline: job.deadline ? new Date(job.deadline) : null,
  attempts: 0,
  worker_id: null,
  progress: null,
  progress_note: null,
  result: null,
  error: null,
  started_at: null,
  finished_at: null,
})

const refusedParents = (
  refused: readonly RefusedSubmission[],
  jobs: readonly NewJob[],
  requests: readonly JobRequest[],
  pathOf: PathOf,
) => {
  const positions = new Map(jobs.map(({ id }, i) => [id, i]))
  const unknown = refused.filter(({ refusal }) => refusal === 'unknown_parent')
  const shown = unknown.length > 0 ? unknown : refused
  return problemAt(
    unknown.length > 0 ? 'unknown-dependency' : 'failed-dependency',
    shown.map(({ child_id, parent_id }) => {
      const job = positions.get(child_id) ?? 0
      const entry = requests[job]?.depends_on.indexOf(parent_id) ?? 0
      return {
        in: 'body',
        pointer: toPointer([...pathOf(job), 'depends_on', entry]),
        detail:
          unknown.length > 0
            ? `names ${parent_id}, which is no job of this organisation`
            : `names ${parent_id}, which has failed or was cancelled`,
      }
    }),
  )
}
