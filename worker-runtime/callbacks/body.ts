import { isoTime } from '../../db/iso-time.ts'
import type { EndedJob, ToldJob } from '../../db/queries/callback-outbox.ts'
import type { JobFailure } from '../../db/queries/jobs.ts'
import type { CallbackBody } from '../../db/rules/callbacks.ts'

/** What is sent of the end of a job. */
export const toBody = (ended: EndedJob, job: ToldJob): CallbackBody => {
  const finishedAt = isoTime(ended.at)
  return {
    type: ended.event,
    timestamp: finishedAt,
    data: {
      id: ended.job_id,
      name: job.name,
      type: job.type,
      status: ended.event.slice('job.'.length),
      attempts: ended.attempts,
      tags: job.tags,
      result: job.result ?? null,
      ...(job.result_omitted && { result_omitted: true }),
      error: errorOf(ended, job),
      created_at: job.created_at,
      started_at: job.started_at,
      finished_at: finishedAt,
      org_id: ended.org_id,
      triggered_by: job.triggered_by,
    },
  }
}

/** Of a job that failed without an attempt and was retried at once, the code is all that is left. */
const errorOf = ({ event, reason }: EndedJob, { error }: ToldJob): JobFailure | null => {
  if (event !== 'job.failed') return null
  return error ?? { code: reason ?? 'unknown', message: 'The job has been retried since.' }
}
