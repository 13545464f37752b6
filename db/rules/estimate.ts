/** A running estimate of ln(runtime in ms) and of its mean absolute deviation. */
export type Estimate = { runs: number; meanLog: number; deviationLog: number }

/** Before anything of a kind has run: a second, and within ten in nine of ten cases. */
export const DEFAULT_ESTIMATE: Estimate = { runs: 0, meanLog: Math.log(1000), deviationLog: 1.44 }

/** The first execution says nothing about the spread. */
export const FIRST_DEVIATION = 0.5

/** For a normal spread of ln(runtime), the 90th percentile is this many mean absolute deviations above the mean. */
export const P90_DEVIATIONS = 1.6

/** No step is smaller than this: the estimate follows a stream that changes within about ten executions. */
export const SMALLEST_STEP = 0.1

/** One wild execution moves the mean by no more than this many deviations, and never by less than `LEAST_REACH`. */
export const REACH_DEVIATIONS = 3
export const LEAST_REACH = 0.3

export const SHORTEST_MS = 0.1
export const LEAST_DEVIATION = 0.01

/**
 * Folds executions that ended together into the estimate. With `n` executions before and `m` now the step is
 * `max(1 − 0.9^m, m / (n + m))`: for a single one the plain rule `max(0.1, 1/(n+1))`.
 * `exchange-jobs` is the same rule in SQL; a test holds the two together.
 */
export const foldRuntimes = (estimate: Estimate, runtimesMs: readonly number[]): Estimate => {
  const m = runtimesMs.length
  if (m === 0) return estimate
  const { runs, meanLog, deviationLog } = estimate
  const logs = runtimesMs.map((ms) => Math.log(Math.max(ms, SHORTEST_MS)))
  if (runs === 0) return { runs: m, meanLog: mean(logs), deviationLog: FIRST_DEVIATION }
  const step = Math.max(1 - (1 - SMALLEST_STEP) ** m, m / (runs + m))
  const reach = Math.max(LEAST_REACH, REACH_DEVIATIONS * deviationLog)
  const surprises = logs.map((log) => Math.min(Math.max(log - meanLog, -reach), reach))
  const spread = mean(surprises.map(Math.abs))
  return {
    runs: runs + m,
    meanLog: meanLog + step * mean(surprises),
    deviationLog: Math.max(deviationLog + step * (spread - deviationLog), LEAST_DEVIATION),
  }
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
