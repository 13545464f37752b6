import { getJob, type JobRow } from '../../db/queries/jobs.ts'
import { JOBS_CANCELLED, notify } from '../../db/queries/notifications.ts'
import type { Run } from '../../db/query.ts'
import { type CancelledJob, cancelJobs } from '../../db/queue/cancel.ts'
import { isFinished } from '../../db/rules/job-states.ts'
import { afterCommit } from '../database-errors.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { ProblemError } from '../http/problem.ts'
import { noSuchJob } from './job-path.ts'

/** A job moves on at most this often while one request looks for it. */
const TRIES = 5

/** Cancels a job in whatever state it is. To cancel one that is cancelled changes nothing, and is no error. */
export const cancelJob = async (run: Run, orgId: string, jobId: string, hold: Hold): Promise<JobRow> => {
  for (let tried = 1; ; tried++) {
    hold(tellHolders(run, await run(cancelJobs(orgId, [jobId]))))
    const [job] = await afterCommit(run(getJob(orgId, jobId)))
    if (!job) throw noSuchJob(jobId)
    if (job.status === 'cancelled') return job
    if (isFinished(job.status)) {
      throw new ProblemError(
        'already-finished',
        `The job ${jobId} has ${job.status} and cannot be cancelled.`,
      )
    }
    if (tried === TRIES) throw new Error(`The job ${jobId} could not be caught in ${TRIES} tries`)
  }
}

/** A worker that is told lets go at once; one that is not, because the notification got lost, at its next renewal. */
export const tellHolders = async (run: Run, cancelled: readonly CancelledJob[]): Promise<void> => {
  const holders = new Set(cancelled.flatMap(({ worker_id }) => worker_id ?? []))
  if (holders.size > 0) await run(notify(JOBS_CANCELLED, [...holders])).catch(logFailure)
}
