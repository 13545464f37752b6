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

export type ScalingSettings = {
  slotsPerWorker: number
  /** How soon what is queued should be worked off. */
  drainGoalSeconds: number
  /** How far ahead work is asked for: as long as a worker takes to start. */
  leadSeconds: number
  minWorkers: number
  maxWorkers: number
}

/** In seconds of predicted work. */
export type ExpectedLoad = {
  queued: number
  /** Left of what runs. */
  running: number
  arrivingPerSecond: number
  /** Within the lead time, of jobs and schedules whose time is known. */
  scheduled: number
  /** Within the lead time, reckoned to the drain goal, of what nobody has announced. Null: there is no forecast that may be used. */
  forecast: number | null
}

export type ScalingSignal = {
  B: number
  R: number
  F: number
  T: number
  /** Workers that each asks for, unrounded: what an autoscaler compares with the workers that there are. */
  needed: { B: number; R: number; F: number }
  desired: number
}

/** Full slots have no room for what comes next. */
const LOAD = 0.8

export const scalingSignal = (load: ExpectedLoad, settings: ScalingSettings): ScalingSignal => {
  const { drainGoalSeconds, minWorkers, maxWorkers } = settings
  const T = settings.slotsPerWorker * LOAD * drainGoalSeconds
  const B = load.queued + load.running
  const R = load.queued + load.arrivingPerSecond * drainGoalSeconds
  // A forecast is a guess: it never asks for more than there may be.
  const F = Math.min((load.forecast ?? 0) + load.scheduled, maxWorkers * T)
  const needed = { B: B / T, R: R / T, F: F / T }
  const most = Math.ceil(Math.max(needed.B, needed.R, needed.F))
  return { B, R, F, T, needed, desired: Math.min(Math.max(most, minWorkers), maxWorkers) }
}
