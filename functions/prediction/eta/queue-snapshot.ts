import { createSlots } from './slots.ts'

export type LaneSum = { lane: number; jobs: number; predictedMs: number }

/** The queue of all in sums. */
export type QueueSnapshot = {
  /** Of the live workers. */
  slots: number
  /** What each running job will probably take yet. */
  runningRemainingMs: readonly number[]
  /** Ready jobs, the lowest lane first. */
  lanes: readonly LaneSum[]
  /** Of the work that is dispatched, what goes to the oldest. */
  ageShare: number
  /** What keeps coming, by how many slots the jobs of a lane have filled lately. */
  flow: readonly { lane: number; load: number }[]
  /**
   * How many times as long as predicted work takes: predictions are medians, and the mean, which sums are made of, lies above.
   * `predictedMs` is without it.
   */
  stretch: number
}

/** Beyond so many starts one by one, jobs are taken for water. */
const MOST_STARTS = 1_000

/**
 * What a snapshot has become after some time: each slot that is free takes the next job, lowest lane first. So it is with no
 * time gone, too: a slot is not free for the next one to come if somebody waits for it.
 */
export const advanceQueue = (snapshot: QueueSnapshot, ms: number): QueueSnapshot => {
  const slots = createSlots(snapshot.slots, snapshot.runningRemainingMs)
  const lanes = snapshot.lanes.map((one) => ({ ...one }))
  let first = 0
  for (let starts = 0; starts < MOST_STARTS && slots.soonest() <= ms; starts++) {
    const one = lanes[first]
    if (!one) break
    const jobMs = one.predictedMs / Math.max(one.jobs, 1)
    slots.place(jobMs * snapshot.stretch)
    one.jobs--
    one.predictedMs -= jobMs
    if (one.jobs < 0.5) first++
  }
  let restMs = slots.idleUntil(ms) / snapshot.stretch
  const left = lanes.slice(first).flatMap((one) => {
    const doneMs = Math.min(restMs, one.predictedMs)
    restMs -= doneMs
    const leftMs = one.predictedMs - doneMs
    return leftMs > 0 ? { ...one, jobs: (one.jobs * leftMs) / one.predictedMs, predictedMs: leftMs } : []
  })
  return { ...snapshot, lanes: left, runningRemainingMs: slots.busyAfter(ms) }
}

/** With jobs that have just joined the queue. */
export const addToQueue = (
  snapshot: QueueSnapshot,
  jobs: readonly { lane: number; p50Ms: number }[],
): QueueSnapshot => {
  const lanes = new Map(snapshot.lanes.map((one) => [one.lane, { ...one }]))
  for (const { lane, p50Ms } of jobs) {
    const sum = lanes.get(lane) ?? { lane, jobs: 0, predictedMs: 0 }
    sum.jobs++
    sum.predictedMs += p50Ms
    lanes.set(lane, sum)
  }
  return { ...snapshot, lanes: [...lanes.values()].sort((a, b) => a.lane - b.lane) }
}
