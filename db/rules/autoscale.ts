/**
 * How many workers there should be, by predicted work instead of by count.
 *
 *   T = slots × 0.8 × drain goal          work that one worker gets done within the drain goal, at a load of 0.8
 *   B = queued + left of what runs        work that is there
 *   R = queued + arriving × drain goal    what is there to start, and what comes while it is worked off
 *   F = forecast + scheduled              what will come within the lead time: a worker that is asked for now starts then
 *   desired = clamp(max(⌈B/T⌉, ⌈R/T⌉, ⌈F/T⌉), min, max)
 *
 * All but T are seconds of predicted work, as db/queries/autoscale-snapshot.ts sums it up. The forecast is the median: with
 * its 90th percentile workers cost 6 % more, and p95 waits fall by 1 s at most (npm run bench -- autoscale).
 */

/** The leader's settings, as its snapshot has them. */
export type ScalingSettings = {
  slots_per_worker: number
  /** How soon what is queued should be worked off. */
  drain_goal_seconds: number
  /** How far ahead work is asked for: as long as a worker takes to start. */
  lead_seconds: number
  min_workers: number
  max_workers: number
}

/** Seconds of predicted work. */
export type ExpectedLoad = {
  queued_seconds: number
  /** What remains of running jobs. */
  running_seconds: number
  arriving_per_second: number
  /** Within the lead time, of jobs and schedules whose time is known. */
  scheduled_seconds: number
  /** What nobody has announced, within the lead time and scaled to the drain goal. Null: no forecast is usable. */
  forecast_p50_seconds: number | null
}

/** Full slots have no room for what comes next. */
const LOAD = 0.8

export type ScalingSignal = ReturnType<typeof scalingSignal>

export const scalingSignal = (state: ExpectedLoad & ScalingSettings) => {
  const { queued_seconds, drain_goal_seconds, min_workers, max_workers } = state
  const T = state.slots_per_worker * LOAD * drain_goal_seconds
  const B = queued_seconds + state.running_seconds
  const R = queued_seconds + state.arriving_per_second * drain_goal_seconds
  // A forecast is a guess: it never asks for more than there may be.
  const F = Math.min((state.forecast_p50_seconds ?? 0) + state.scheduled_seconds, max_workers * T)
  // Workers that each asks for, unrounded: what an autoscaler compares with the workers that there are.
  const needed = { B: B / T, R: R / T, F: F / T }
  const most = Math.ceil(Math.max(needed.B, needed.R, needed.F))
  return { B, R, F, T, needed, desired: Math.min(Math.max(most, min_workers), max_workers) }
}
