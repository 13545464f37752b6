import type { LiveWorker, QueueSums } from '../../../db/queries/queue-facts.ts'
import { AGE_SHARE } from '../../../db/rules/lanes.ts'
import {
  advanceQueue,
  givenToOthers,
  type LaneSum,
  type OthersSum,
  type QueueSnapshot,
} from './queue-snapshot.ts'

/** Whether it is time to take the sums again. */
export const areSumsDue = ({ age_ms, took_ms }: QueueSums): boolean =>
  age_ms > Math.max(1_000, 20 * took_ms) && took_ms > 20

/** The organisation's own. */
export const lanesOf = (sums: QueueSums): LaneSum[] =>
  sums.lanes.map((lane, n) => ({ lane, jobs: sums.lane_jobs[n] ?? 0, predictedMs: sums.lane_ms[n] ?? 0 }))

const othersOf = ({ others }: QueueSums): OthersSum[] =>
  others.map(({ ms, ...one }) => ({ ...one, predictedMs: ms, timeMs: 0 }))

/** Work of other organisations that goes before a job with this much of its own organisation's work ahead. */
export const othersAhead = (sums: QueueSums, aheadMs: number): number =>
  givenToOthers(othersOf(sums), aheadMs / sums.weight).ms

/** As it is now: what was running and waiting when the sums were taken has gone on. */
export const toSnapshot = (sums: QueueSums, workers: readonly LiveWorker[]): QueueSnapshot => {
  const taken = {
    slots: workers.reduce((sum, { slots }) => sum + slots, 0),
    runningRemainingMs: sums.running_ms,
    lanes: lanesOf(sums),
    weight: sums.weight,
    timeMs: 0,
    others: othersOf(sums),
    ageShare: AGE_SHARE,
    stretch: sums.stretch,
    recent: sums.recent_lanes.map((lane, n) => ({ lane, load: sums.recent_loads[n] ?? 0 })),
  }
  return advanceQueue(taken, sums.age_ms)
}

/** Some live worker handles the type and is big enough. */
export const isRunnable = (
  job: { type: string; cpu_units: number; memory_mb: number },
  workers: readonly LiveWorker[],
): boolean =>
  workers.some(
    ({ types, cpu_units, memory_mb }) =>
      types.includes(job.type) && job.cpu_units <= cpu_units && job.memory_mb <= memory_mb,
  )
