import type { Predictions } from './accuracy.ts'

export type PredictorScore = {
  mean_abs_log_error: number
  median_abs_log_error: number
  /** Share of the jobs that took between half and twice as long as predicted. */
  within_2x: number
  spearman: number
  /** Share of the jobs that took no longer than the p90. */
  coverage: number
}

export type PolicyScore = {
  mean_wait_s: number
  p95_wait_s: number
  max_wait_s: number
  /** (wait + runtime) / runtime, with runtimes of at least ten seconds: bounded slowdown. */
  mean_slowdown: number
  /** How much of what knowing every runtime would gain over FIFO in mean wait. */
  gain_share: number
}

/** Shorter jobs would make any wait look endless. */
const SLOWDOWN_FLOOR_S = 10

export const scorePredictions = (
  { p50, p90 }: Predictions,
  actual: Float64Array,
  skip: number,
  floorLog: number,
): PredictorScore => {
  const predicted = p50.slice(skip).map((log) => Math.max(log, floorLog))
  const real = actual.slice(skip)
  const errors = predicted.map((log, n) => Math.abs(log - (real[n] ?? 0)))
  return {
    mean_abs_log_error: meanOf(errors),
    median_abs_log_error: quantileOf(errors, 0.5),
    within_2x: meanOf(errors.map((error) => (error <= Math.LN2 ? 1 : 0))),
    spearman: correlation(ranksOf(predicted), ranksOf(real)),
    coverage: meanOf(real.map((log, n) => (log <= Math.max(p90[skip + n] ?? 0, floorLog) ? 1 : 0))),
  }
}

export const scoreWaits = (
  waitS: Float64Array,
  runtimesS: Float64Array,
): Omit<PolicyScore, 'gain_share'> => ({
  mean_wait_s: meanOf(waitS),
  p95_wait_s: quantileOf(waitS, 0.95),
  max_wait_s: waitS.reduce((longest, wait) => Math.max(longest, wait), 0),
  mean_slowdown: meanOf(
    waitS.map((wait, n) => {
      const runtime = runtimesS[n] ?? 0
      return Math.max(1, (wait + runtime) / Math.max(runtime, SLOWDOWN_FLOOR_S))
    }),
  ),
})

const meanOf = (values: Float64Array): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

const quantileOf = (values: Float64Array, p: number): number => {
  const sorted = values.slice().sort()
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? 0
}

/** From 1; equals share the middle of their places. */
const ranksOf = (values: Float64Array): Float64Array => {
  const order = Uint32Array.from(values.keys()).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0))
  const ranks = new Float64Array(values.length)
  for (let from = 0; from < order.length; ) {
    const value = values[order[from] ?? 0]
    let to = from
    while (to < order.length && values[order[to] ?? 0] === value) to++
    for (let n = from; n < to; n++) ranks[order[n] ?? 0] = (from + to + 1) / 2
    from = to
  }
  return ranks
}

const correlation = (a: Float64Array, b: Float64Array): number => {
  const [meanA, meanB] = [meanOf(a), meanOf(b)]
  let [both, squaresA, squaresB] = [0, 0, 0]
  a.forEach((value, n) => {
    const [apartA, apartB] = [value - meanA, (b[n] ?? 0) - meanB]
    both += apartA * apartB
    squaresA += apartA * apartA
    squaresB += apartB * apartB
  })
  return squaresA > 0 && squaresB > 0 ? both / Math.sqrt(squaresA * squaresB) : 0
}
