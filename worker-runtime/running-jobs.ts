import { setTimeout as delay } from 'node:timers/promises'
import { type ClaimedJob, type LeaseKey, releaseJobs } from '../db/queries/leases.ts'
import type { Run } from '../db/query.ts'
import { retryFor } from './database.ts'
import { type Execution, startExecution } from './executor.ts'
import type { GuardedFetch, JobHandler, JobLog } from './handler-api.ts'
import { LEASE_SECONDS } from './lease-keeper.ts'
import type { LogWriter } from './log-writer.ts'
import type { Logger } from './logger.ts'
import { ExecutionAborted, endAttempt } from './outcome.ts'
import type { Recorder } from './recorder.ts'

export type RunningJobs = {
  count(): number
  /** `claimedAtMs`: when the claim was sent, the earliest that its lease can have begun. */
  begin(job: ClaimedJob, claimedAtMs: number): void
  /** What to renew, and since when it is held. */
  leases(): (LeaseKey & { claimedAtMs: number })[]
  loseLease(token: string): void
  /** Lets jobs finish for `seconds`, then stops them and gives them back. */
  drain(seconds: number): Promise<void>
}

type RunningJob = { execution: Execution; settled: Promise<void>; claimedAtMs: number }

/**
 * The attempts in this worker's hands, from the claim until their outcome is stored. Known by their token: after
 * a lost lease this very worker may claim the same job again while the lost attempt has not ended yet.
 */
export const createRunningJobs = (options: {
  run: Run
  handlers: ReadonlyMap<string, JobHandler>
  logs: LogWriter
  recorder: Recorder
  fetch: GuardedFetch
  logger: Logger
  onSettled: () => void
}): RunningJobs => {
  const { run, logs, recorder, logger } = options
  const running = new Map<string, RunningJob>()
  let unfinished: ClaimedJob[] = []

  const begin = (job: ClaimedJob, claimedAtMs: number): void => {
    for (const { execution } of running.values()) {
      if (execution.job.job_id === job.job_id) execution.abort(leaseLost())
    }
    const handler = options.handlers.get(job.type)
    if (!handler) throw new Error(`Claimed a job of type ${job.type}, which has no handler`)
    logger.debug('job started', describe(job))
    const log = logs.logFor(job)
    const execution = startExecution(job, handler, { log, fetch: options.fetch })
    const settled = settle(execution, log).finally(() => {
      running.delete(job.token)
      options.onSettled()
    })
    running.set(job.token, { execution, settled, claimedAtMs })
  }

  const settle = async (execution: Execution, log: JobLog): Promise<void> => {
    const { job } = execution
    const outcome = await execution.outcome
    switch (outcome.kind) {
      case 'lost':
        return logger.warn('lease lost, outcome dropped', describe(job))
      case 'released':
        unfinished.push(job)
        return
      case 'done':
      case 'failed': {
        const ended = endAttempt(job, outcome, Math.random)
        if (outcome.kind === 'failed') log.error(`${outcome.error.code}: ${outcome.error.message}`)
        if (!(await recorder.record(ended))) return logger.warn('lease lost, outcome dropped', describe(job))
        if (ended.state === 'completed') return logger.info('job completed', describe(job))
        const { code, message } = ended.error
        logger.warn(`job ${ended.state}`, { ...describe(job), error: code, reason: message })
      }
    }
  }

  const drain = async (seconds: number): Promise<void> => {
    const settled = Promise.all(Array.from(running.values(), (job) => job.settled))
    const timer = new AbortController()
    await Promise.race([settled, delay(seconds * 1000, undefined, { signal: timer.signal }).catch(() => {})])
    timer.abort()
    for (const { execution } of running.values()) {
      execution.abort(new ExecutionAborted('shutdown', 'The worker is shutting down.'))
    }
    await settled
    await logs.flush().catch(() => {})
    if (unfinished.length > 0) await giveBack(unfinished)
  }

  const giveBack = async (jobs: ClaimedJob[]): Promise<void> => {
    unfinished = []
    try {
      await retryFor(LEASE_SECONDS * 1000, () => run(releaseJobs(jobs, 'shutdown')))
      logger.info('unfinished jobs given back', { jobs: jobs.length })
    } catch (error) {
      logger.error('giving jobs back failed; they are taken over when their leases run out', { error })
    }
  }

  return {
    count: () => running.size,
    begin,
    leases: () =>
      Array.from(running.values(), ({ execution: { job }, claimedAtMs }) => ({
        job_id: job.job_id,
        token: job.token,
        claimedAtMs,
      })),
    loseLease: (token) => running.get(token)?.execution.abort(leaseLost()),
    drain,
  }
}

const leaseLost = (): ExecutionAborted =>
  new ExecutionAborted('lease_lost', 'The lease of this attempt was lost.')

const describe = ({ job_id, type, name, attempt }: ClaimedJob) => ({ job_id, type, name, attempt })
