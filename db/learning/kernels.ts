import type { PastRun } from './stream-memory.ts'
import type { JobTraits } from './stream-view.ts'

/**
 * Past executions of the stream, weighted by how much they look like the new job: by size (payload, timeout, cpu), by the gap
 * since the submission before, by the hour of the day. Newer ones count more.
 */
export type Kernels = {
  /** Weighted mean of ln(runtime). */
  bySize: number
  byGap: number
  byHour: number
  /** Of all three, and how much it rests on: about the number of executions that look just like it. */
  byAll: number
  support: number
}

/** A difference of a third in ln makes an execution count half as much. */
const SIZE_SHARPNESS = 6
const FARTHEST = 2
const GAP_SHARPNESS = 0.7
/** Three hours. */
const HOUR_SHARPNESS = 1 / 3
/** Each execution counts a little less than the next. */
const AGEING = 0.93

export const kernelsOf = (
  runs: readonly PastRun[],
  job: JobTraits,
  gapLog: number,
  hour: number,
): Kernels | undefined => {
  if (runs.length === 0) return undefined
  let [size, gap, time, all] = [0, 0, 0, 0]
  let [sizeWeight, gapWeight, timeWeight, allWeight] = [0, 0, 0, 0]
  let age = 1
  for (let n = runs.length - 1; n >= 0; n--) {
    const run = runs[n] as PastRun
    const bySize = Math.exp(-SIZE_SHARPNESS * sizeDistance(run, job))
    const byGap = Math.exp(-GAP_SHARPNESS * Math.min(Math.abs(run.gapLog - gapLog), 6))
    const byHour = Math.exp(-HOUR_SHARPNESS * hoursApart(run.hour, hour))
    size += age * bySize * run.log
    sizeWeight += age * bySize
    gap += age * byGap * run.log
    gapWeight += age * byGap
    time += age * byHour * run.log
    timeWeight += age * byHour
    const together = age * bySize * byGap * byHour
    all += together * run.log
    allWeight += together
    age *= AGEING
  }
  return {
    bySize: size / sizeWeight,
    byGap: gap / gapWeight,
    byHour: time / timeWeight,
    byAll: all / allWeight,
    support: sizeWeight,
  }
}

const sizeDistance = (run: PastRun, job: JobTraits): number =>
  Math.min(Math.abs(run.sizeLog - job.sizeLog), FARTHEST) +
  Math.min(Math.abs(run.timeoutLog - job.timeoutLog), FARTHEST) +
  Math.min(Math.abs(run.cpuLog - job.cpuLog), FARTHEST)

const hoursApart = (a: number, b: number): number => {
  const apart = Math.abs(a - b)
  return Math.min(apart, 24 - apart)
}
