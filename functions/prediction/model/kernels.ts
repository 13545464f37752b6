import type { PastRun } from './series-memory.ts'
import type { JobTraits } from './series-view.ts'

/**
 * Past executions of the series, weighted by how much they look like the new job: by size (payload, timeout, cpu), by the gap
 * since the submission before, by the hour of the day. Newer ones count more. Each is a weighted mean of ln(runtime).
 */
export type Kernels = {
  bySize: number
  byGap: number
  byHour: number
  byAll: number
  /** By size, and by little but the newest. */
  alike: number
  /** How much `bySize` rests on: about the number of executions of the same size. */
  support: number
  /** As if runtimes grew with the payload, or were a share of the timeout: the mean of what is left, on top of it. */
  perSize: number
  perTimeout: number
}

/** A difference of a ninth in ln makes an execution count half as much. */
const SIZE_SHARPNESS = 6
const FARTHEST = 2
const GAP_SHARPNESS = 0.7
const LONGEST_GAP = 6
/** Two hours. */
const HOUR_SHARPNESS = 1 / 3
/** Each execution counts a little less than the next, or half as much. */
const SLOW_AGEING = 0.93
const FAST_AGEING = 0.5

export const kernelsOf = (
  runs: readonly PastRun[],
  job: JobTraits,
  gapLog: number,
  hour: number,
): Kernels | undefined => {
  if (runs.length === 0) return undefined
  const [bySize, byGap, byHour, byAll, alike, ages] = [mean(), mean(), mean(), mean(), mean(), mean()]
  let [perSize, perTimeout] = [0, 0]
  let [age, fastAge] = [1, 1]
  for (let n = runs.length - 1; n >= 0; n--) {
    const run = runs[n] as PastRun
    const size = sizeLikeness(run, job)
    const gap = Math.exp(-GAP_SHARPNESS * Math.min(Math.abs(run.gapLog - gapLog), LONGEST_GAP))
    const time = Math.exp(-HOUR_SHARPNESS * hoursApart(run.hour, hour))
    add(bySize, age * size, run.log)
    add(byGap, age * gap, run.log)
    add(byHour, age * time, run.log)
    add(byAll, age * size * gap * time, run.log)
    add(alike, fastAge * size, run.log)
    add(ages, age, run.log)
    perSize += age * (run.log - run.sizeLog)
    perTimeout += age * (run.log - run.timeoutLog)
    age *= SLOW_AGEING
    fastAge *= FAST_AGEING
  }
  return {
    bySize: bySize.sum / bySize.weight,
    byGap: byGap.sum / byGap.weight,
    byHour: byHour.sum / byHour.weight,
    byAll: byAll.sum / byAll.weight,
    alike: alike.sum / alike.weight,
    support: bySize.weight,
    perSize: job.sizeLog + perSize / ages.weight,
    perTimeout: job.timeoutLog + perTimeout / ages.weight,
  }
}

/** The newest executions that look like the job, of whatever series: what `alike` is inside one. */
export const alikeIn = (runs: readonly PastRun[], job: JobTraits): number | undefined => {
  if (runs.length === 0) return undefined
  const alike = mean()
  let age = 1
  for (let n = runs.length - 1; n >= 0; n--) {
    const run = runs[n] as PastRun
    add(alike, age * sizeLikeness(run, job), run.log)
    age *= FAST_AGEING
  }
  return alike.sum / alike.weight
}

type Mean = { sum: number; weight: number }

const mean = (): Mean => ({ sum: 0, weight: 0 })

const add = (into: Mean, weight: number, log: number): void => {
  into.sum += weight * log
  into.weight += weight
}

const sizeLikeness = (run: PastRun, job: JobTraits): number =>
  Math.exp(
    -SIZE_SHARPNESS *
      (Math.min(Math.abs(run.sizeLog - job.sizeLog), FARTHEST) +
        Math.min(Math.abs(run.timeoutLog - job.timeoutLog), FARTHEST) +
        Math.min(Math.abs(run.cpuLog - job.cpuLog), FARTHEST)),
  )

const hoursApart = (a: number, b: number): number => {
  const apart = Math.abs(a - b)
  return Math.min(apart, 24 - apart)
}
