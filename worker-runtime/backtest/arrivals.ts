import type { PastJob } from './history.ts'

export type ArrivalOptions = { load: number; workers: number; burst: boolean }

/** A burst: so many times the arrivals, on this part of the jobs. */
const BURST_FACTOR = 4
const BURST_FROM = 0.45
const BURST_SHARE = 0.1

/** When each job is submitted, in seconds from the first: the history's rhythm, at the pace that makes the load. */
export const compressArrivals = (jobs: readonly PastJob[], options: ArrivalOptions): Float64Array => {
  const workS = jobs.reduce((sum, { runtimeMs }) => sum + runtimeMs / 1000, 0)
  const firstS = jobs[0]?.submitS ?? 0
  const spanS = (jobs.at(-1)?.submitS ?? 0) - firstS
  const pace = spanS > 0 ? workS / (options.workers * options.load) / spanS : 0
  const from = Math.floor(BURST_FROM * jobs.length)
  const to = from + Math.round(BURST_SHARE * jobs.length)
  const isBurst = (n: number): boolean => options.burst && n >= from && n < to
  const submitS = new Float64Array(jobs.length)
  for (let n = 1; n < jobs.length; n++) {
    const gapS = ((jobs[n]?.submitS ?? 0) - (jobs[n - 1]?.submitS ?? 0)) * pace
    submitS[n] = (submitS[n - 1] ?? 0) + (isBurst(n) ? gapS / BURST_FACTOR : gapS)
  }
  return submitS
}
