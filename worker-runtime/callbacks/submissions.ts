import { newCallback } from '../../db/queries/callback-job.ts'
import type { EndedJob } from '../../db/queries/callback-outbox.ts'
import { describeEndedJobs } from '../../db/queries/ended-jobs.ts'
import type { Submission } from '../../db/queries/submission.ts'
import type { Run } from '../../db/query.ts'
import { toBody } from './body.ts'

/** A job for each URL that is to be told of each event. Nobody's: they are the organisation's own. */
export const toSubmissions = async (run: Run, events: readonly EndedJob[]): Promise<Submission[]> => {
  const jobs = new Map((await run(describeEndedJobs(events))).map((job) => [job.n, job]))
  const callbacks = events.flatMap((ended, i) => {
    const job = jobs.get(i + 1)
    // Deleted since, as too old.
    if (!job) return []
    const body = toBody(ended, job)
    const triggeredBy = { kind: 'callback' as const, job_id: ended.job_id, event: ended.event }
    const { traceparent } = job
    return ended.urls.map((url) => ({
      orgId: ended.org_id,
      job: newCallback({ url, body, triggeredBy, traceparent }),
    }))
  })
  return [...Map.groupBy(callbacks, ({ orgId }) => orgId)].map(([orgId, members]) => ({
    orgId,
    userId: null,
    jobs: members.map(({ job }) => job),
  }))
}
