import { findNearTicks, takeAutoscaleSnapshot } from '../../db/queries/autoscale-snapshot.ts'
import type { Run } from '../../db/query.ts'
import type { ScalingSettings } from '../../db/rules/autoscale.ts'
import { DEFAULT_ESTIMATE } from '../../functions/prediction/estimate.ts'
import type { Config } from '../config.ts'
import type { Duty } from '../duties.ts'
import { createScheduledWork } from './scheduled-work.ts'

const SNAPSHOT_MS = 5_000
/** A tenth of the time at most goes into it, as long as nobody takes the snapshot for stale. */
const LEAST_PAUSE_SHARE = 10
const LONGEST_PAUSE_MS = 15_000
/** Times at which some schedule ticks: those of one time are one. */
const NEAR_TICKS = 1_000

/** Keeps what the number of workers is decided by, so that whoever decides need not look at the queue. */
export const createAutoscaleDuty = ({ run, config }: { run: Run; config: Config }): Duty => {
  const settings = scalingSettings(config)
  const scheduled = createScheduledWork()
  return {
    name: 'autoscale snapshot',
    step: async (term) => {
      const startedAtMs = performance.now()
      const near = await run(
        findNearTicks(term, settings, { limit: NEAR_TICKS, defaultLog: DEFAULT_ESTIMATE.meanLog }),
      )
      const ticksSeconds = scheduled.secondsWithin(settings.lead_seconds, near)
      await run(takeAutoscaleSnapshot({ term, settings, ticksSeconds }))
      const tookMs = performance.now() - startedAtMs
      return Math.min(Math.max(SNAPSHOT_MS, LEAST_PAUSE_SHARE * tookMs), LONGEST_PAUSE_MS)
    },
  }
}

const scalingSettings = (config: Config): ScalingSettings => ({
  slots_per_worker: config.SMARTQUEUE_WORKER_SLOTS,
  drain_goal_seconds: config.SMARTQUEUE_DRAIN_GOAL_SECONDS,
  lead_seconds: config.SMARTQUEUE_LEAD_SECONDS,
  min_workers: config.SMARTQUEUE_MIN_WORKERS,
  max_workers: config.SMARTQUEUE_MAX_WORKERS,
})
