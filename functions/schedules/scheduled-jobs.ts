import { deadlineOf, type ScheduledJob } from '../../db/rules/scheduled-job.ts'
import type { JobTypes } from '../jobs/job-types.ts'
import type { JobRequest } from '../jobs/new-job.ts'
import { checkPayloads } from '../jobs/payloads.ts'
import type { ScheduledJobRequest } from './schemas.ts'

/** As it is kept: with what was left out. Its name is its own from then on, so that what was learned of it stays with it. */
export const toScheduledJob = (job: ScheduledJobRequest, scheduleName: string): ScheduledJob => ({
  name: job.name ?? scheduleName,
  type: job.type,
  payload: job.payload,
  priority: job.priority,
  resources: job.resources,
  retry: job.retry,
  tags: job.tags,
  timeout_seconds: job.timeout_seconds ?? null,
  callback_url: job.callback_url ?? null,
  fairness_key: job.fairness_key ?? null,
  deadline_seconds: job.deadline_seconds ?? null,
})

/** The job of a tick at this moment, as somebody would have sent it. */
export const toJobRequest = (job: ScheduledJob, at: Date): JobRequest => ({
  name: job.name,
  type: job.type,
  payload: job.payload,
  priority: job.priority,
  resources: job.resources,
  retry: job.retry,
  tags: job.tags,
  timeout_seconds: job.timeout_seconds ?? undefined,
  callback_url: job.callback_url ?? undefined,
  fairness_key: job.fairness_key ?? undefined,
  deadline: deadlineOf(job, at) ?? undefined,
  depends_on: [],
  on_parent_failure: 'fail',
})

/** What would be refused if it were submitted now is refused at once, and not at the first tick. */
export const checkScheduledJob = (jobTypes: JobTypes, job: ScheduledJob): Promise<void> =>
  checkPayloads(jobTypes, [toJobRequest(job, new Date())], () => ['job'])
