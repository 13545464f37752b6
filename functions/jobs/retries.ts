import { JOBS_READY } from '../../db/channels.ts'
import { getJob, type JobRow } from '../../db/queries/jobs.ts'
import { notify } from '../../db/queries/notifications.ts'
import { type RetriedJob, retryJobs } from '../../db/queries/retries.ts'
import type { Run } from '../../db/query.ts'
import { type Hold, logFailure } from '../http/background.ts'
import { ProblemError } from '../http/problem.ts'
import { noSuchJob } from './job-path.ts'
import { queueFull } from './quota.ts'

/** Gives a failed or cancelled job a new round of attempts. */
export const retryJob = async (run: Run, orgId: string, jobId: string, hold: Hold): Promise<JobRow> => {
  const retried = await run(retryJobs(orgId, [jobId]))
  hold(tellWorkers(run, retried))
  const [job] = await run(getJob(orgId, jobId))
  if (!job) throw noSuchJob(jobId)
  if (retried.length > 0) return job
  if (job.status === 'failed' || job.status === 'cancelled') throw queueFull()
  throw new ProblemError(
    'not-retryable',
    `The job ${jobId} is ${job.status}. Only failed and cancelled jobs can be retried.`,
  )
}

export const tellWorkers = async (run: Run, retried: readonly RetriedJob[]): Promise<void> => {
  const types = new Set(retried.flatMap(({ type, status }) => (status === 'ready' ? type : [])))
  if (types.size > 0) await run(notify(JOBS_READY, [...types])).catch(logFailure)
}
