import { newCallback } from '../../db/queries/callback-job.ts'
import { describeEndedJobs, type EndedJob } from '../../db/queries/callback-outbox.ts'
import type { Run } from '../../db/query.ts'
import type { Submission } from '../../db/queue/submit.ts'
import { toBody } from './body.ts'

/** A job for each URL that is to be told of each event, as the organisation's own. */
export const toSubmissions = async (run: Run, events: readonly EndedJob[]): Promise<Submission[]> => {
  const jobs = new Map((await run(describeEndedJobs(events))).map((job) => [job.n, job]))
  return events.flatMap((ended, i) => {
    const job = jobs.get(i + 1)
    // Deleted since, as too old.
    if (!job) return []
    const body = toBody(ended, job)
    const triggeredBy = { kind: 'callback' as const, job_id: ended.job_id, event: ended.event }
    const { traceparent } = job
    return ended.urls.map((url) => ({
      orgId: ended.org_id,
      userId: null,
      jobs: [newCallback({ url, body, triggeredBy, traceparent })],
    }))
  })
}
