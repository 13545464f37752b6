import { getJob } from '../../db/queries/jobs.ts'
import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import type { Run } from '../../db/query.ts'
import { isRetried, type RetriedJob, type RetryableState, retryJobs } from '../../db/queue/retry.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { ProblemError } from '../http/problem.ts'
import { noSuchJob } from './job-path.ts'
import { queueFull } from './quota.ts'

/** Gives a failed or cancelled job a new round of attempts. */
export const retryJob = async (run: Run, orgId: string, jobId: string, hold: Hold): Promise<void> => {
  const { retried, full } = await retryMany(run, orgId, [jobId], hold)
  if (retried > 0) return
  const [job] = await run(getJob(orgId, jobId))
  if (!job) throw noSuchJob(jobId)
  if (full) throw queueFull()
  throw new ProblemError(
    'not-retryable',
    `The job ${jobId} is ${job.status}. Only failed and cancelled jobs can be retried.`,
  )
}

/** How many were retried, and whether the queue had no room for more. */
export const retryMany = async (
  run: Run,
  orgId: string,
  jobIds: readonly string[],
  hold: Hold,
  states?: readonly RetryableState[],
): Promise<{ retried: number; full: boolean }> => {
  const rows = await run(retryJobs(orgId, jobIds, states))
  const retried = rows.filter(isRetried)
  hold(tellWorkers(run, retried))
  return { retried: retried.length, full: rows.length > retried.length }
}

const tellWorkers = async (run: Run, retried: readonly RetriedJob[]): Promise<void> => {
  const types = new Set(retried.flatMap(({ type, status }) => (status === 'ready' ? type : [])))
  if (types.size > 0) await run(notify(JOBS_READY, [...types])).catch(logFailure)
}
