import { isoTime } from '../../db/iso-time.ts'
import { newCallback } from '../../db/queries/callback-job.ts'
import type { EndedJob } from '../../db/queries/callback-outbox.ts'
import type { JobFailure } from '../../db/queries/jobs.ts'
import type { Submission } from '../../db/queue/submit.ts'
import type { CallbackBody } from '../../db/rules/callbacks.ts'

/** A job for each URL that is to be told of each event, as the organisation's own. */
export const toSubmissions = (events: readonly EndedJob[]): Submission[] =>
  events.flatMap((ended) => {
    const body = toBody(ended)
    const triggeredBy = { kind: 'callback' as const, job_id: ended.job_id, event: ended.event }
    const { traceparent, fairness_key: fairnessKey } = ended
    return ended.urls.map((url) => ({
      orgId: ended.org_id,
      userId: null,
      jobs: [newCallback({ url, body, triggeredBy, traceparent, fairnessKey })],
    }))
  })

/** What is sent of the end of a job. */
const toBody = (ended: EndedJob): CallbackBody => {
  const finishedAt = isoTime(ended.at)
  return {
    type: ended.event,
    timestamp: finishedAt,
    data: {
      id: ended.job_id,
      name: ended.name,
      type: ended.type,
      status: ended.event.slice('job.'.length),
      attempts: ended.attempts,
      tags: ended.tags,
      result: ended.result,
      ...(ended.result_omitted && { result_omitted: true }),
      error: errorOf(ended),
      created_at: isoTime(ended.created_at),
      started_at: ended.started_at && isoTime(ended.started_at),
      finished_at: finishedAt,
      org_id: ended.org_id,
      triggered_by: ended.triggered_by,
    },
  }
}

/** Of a job that failed without an attempt and was retried at once, the code is all that is left. */
const errorOf = ({ event, reason, error }: EndedJob): JobFailure | null => {
  if (event !== 'job.failed') return null
  return error ?? { code: reason ?? 'unknown', message: 'The job has been retried since.' }
}
