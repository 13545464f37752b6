import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { JobRow } from '../../db/queries/jobs.ts'
import type { NewJob, TriggeredBy } from '../../db/queue/job-fields.ts'
import type { SubmittedJob } from '../../db/queue/submit.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import type { JobRequest } from './new-job.ts'

/** A request as it is stored. */
export const toNewJob = (
  request: JobRequest,
  made: {
    id: string
    parents: string[]
    prediction: JobPrediction | null
    triggeredBy: TriggeredBy | null
    traceparent: string | null
  },
): NewJob => {
  const { name, type, payload, priority, tags, retry, resources, on_parent_failure } = request
  const timeout_seconds = request.timeout_seconds ?? null
  return {
    id: made.id,
    name,
    type,
    payload,
    priority,
    tags,
    timeout_seconds,
    ...retry,
    ...resources,
    ...rankTerms(priority, timeout_seconds, made.prediction?.spreadLog),
    run_at: toUtc(request.run_at),
    deadline: toUtc(request.deadline),
    depends_on: made.parents,
    on_parent_failure,
    callback_url: request.callback_url ?? null,
    fairness_key: request.fairness_key ?? null,
    triggered_by: made.triggeredBy,
    traceparent: made.traceparent,
    prediction: made.prediction,
  }
}

/** RFC 3339 allows what Postgres does not read: offsets up to a day, any number of digits. */
const toUtc = (time: string | undefined): string | null => (time ? new Date(time).toISOString() : null)

export type SubmittedRow = JobRow & Pick<SubmittedJob, 'promised_wait_ms'>

/** What has just been stored, as if it had been looked up. */
export const toRow = (
  job: NewJob,
  submitted: SubmittedJob,
  made: Pick<JobRow, 'org_id' | 'created_by' | 'triggered_by' | 'traceparent'>,
): SubmittedRow => ({
  ...job,
  ...submitted,
  ...made,
  attempts: 0,
  worker_id: null,
  progress: null,
  progress_note: null,
  result: null,
  error: null,
  started_at: null,
  finished_at: null,
  slow: false,
})
