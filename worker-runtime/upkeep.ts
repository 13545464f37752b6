import { reclaimExpiredLeases, wakeDueJobs } from '../db/queries/upkeep.ts'
import type { Run } from '../db/query.ts'
import type { Logger } from './logger.ts'
import { createPoller, type Poller } from './poller.ts'

const INTERVAL_MS = 500
const BATCH = 500

/**
 * Moves jobs along that nobody holds: delays that are over, leases that ran out. Every worker does it; the
 * statements skip what another is moving, so that more workers do not do more work.
 */
export const createUpkeep = (options: {
  run: Run
  logger: Logger
  onError: (error: Error) => void
}): Poller => {
  const step = async (): Promise<number> => {
    const woken = await options.run(wakeDueJobs(BATCH))
    const reclaimed = await options.run(reclaimExpiredLeases(BATCH))
    for (const { job_id, worker_id, state } of reclaimed) {
      options.logger.warn('lease expired', { job_id, held_by: worker_id, state })
    }
    return woken.length === BATCH || reclaimed.length === BATCH ? 0 : INTERVAL_MS
  }
  return createPoller({ step, onError: options.onError })
}
