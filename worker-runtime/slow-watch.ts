import type { Run } from '../db/query.ts'
import { reportSlowJobs } from '../db/queue/leases.ts'
import { LEAST_SLOW_MS } from '../db/rules/slow.ts'
import { describe, type HeldJob, type HeldJobs } from './held-jobs.ts'
import type { Logger } from './logger.ts'
import { createPoller } from './poller.ts'

export type SlowWatch = {
  start(): void
  stop(): Promise<void>
}

const LOOK_MS = 500

/**
 * Attempts that run longer than all but one in a hundred of their kind are said to be slow, once: in the events of the job and in
 * the log. One statement tells of all that became so since the last look.
 */
export const createSlowWatch = (options: {
  run: Run
  jobs: Pick<HeldJobs, 'held'>
  logger: Logger
  onError: (error: Error) => void
  now?: () => number
}): SlowWatch => {
  const now = options.now ?? (() => performance.now())
  const told = new WeakSet<HeldJob>()

  const isSlow = (held: HeldJob): boolean => {
    const { job, startedAtMs, outcome } = held
    if (job.predicted_p99_ms === null || startedAtMs === undefined || outcome || told.has(held)) return false
    return now() - startedAtMs > Math.max(job.predicted_p99_ms, LEAST_SLOW_MS)
  }

  const look = async (): Promise<number> => {
    const slow = options.jobs.held().filter(isSlow)
    if (slow.length === 0) return LOOK_MS
    const rows = await options.run(reportSlowJobs(slow.map(({ job }) => job)))
    const reported = new Set(rows.map(({ job_id }) => job_id))
    for (const held of slow) {
      // One that is not held any more is let go of soon, and one whose start is not known yet has its turn later.
      if (!reported.has(held.job.job_id)) continue
      told.add(held)
      const ranMs = Math.round(now() - (held.startedAtMs ?? 0))
      const p99Ms = Math.round(held.job.predicted_p99_ms ?? 0)
      options.logger.warn('job slow', { ...describe(held.job), ran_ms: ranMs, p99_ms: p99Ms })
    }
    return LOOK_MS
  }

  return createPoller({ step: look, onError: options.onError })
}
