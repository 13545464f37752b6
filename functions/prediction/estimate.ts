import type { Sample } from '../../db/rules/estimate.ts'

/** A running estimate of ln(runtime in ms) and of its mean absolute deviation. */
export type Estimate = { runs: number; meanLog: number; deviationLog: number }

/** Before anything of a kind has run: a second, and within ten in nine of ten cases. */
export const DEFAULT_ESTIMATE: Estimate = { runs: 0, meanLog: Math.log(1000), deviationLog: 1.44 }

/** The first execution says nothing about the spread. */
const FIRST_DEVIATION = 0.5

/** For a normal spread of ln(runtime), the 90th percentile is this many mean absolute deviations above the mean. */
export const P90_DEVIATIONS = 1.6

/** No step is smaller than this: the estimate follows a series that changes within about ten executions. */
const SMALLEST_STEP = 0.1

/** One wild execution moves the mean by no more than this many deviations, and never by less than `LEAST_REACH`. */
const REACH_DEVIATIONS = 3
const LEAST_REACH = 0.3

const LEAST_DEVIATION = 0.01

/**
 * Smaller values of ln(runtime) are treated as zero. Postgres rejects arithmetic that underflows, and a
 * decaying mean would get there.
 */
const LEAST_LOG = 1e-9

/**
 * A runtime is between e^-30 and e^30 ms (300 years). A value beyond that is corrupt, and its `exp` may
 * overflow.
 */
export const MOST_LOG = 30

export const flushTiny = (log: number): number => (Math.abs(log) < LEAST_LOG ? 0 : log)

/** Half as long again, or two thirds: then the queued jobs of a series are scored again. */
export const MOVED_LOG = Math.log(1.5)

/**
 * Folds a sample into the estimate. With `n` executions before and `m` now the step is `max(1 − 0.9^m, m / (n + m))`:
 * for a single one the plain rule `max(0.1, 1/(n+1))`. db/queue/learn.sql is the same rule in SQL; a test
 * holds the two together.
 */
export const foldSample = (estimate: Estimate, sample: Sample): Estimate => {
  const { runs: m, meanLog: log, spreadLog } = sample
  const { runs, meanLog, deviationLog } = estimate
  if (m === 0) return estimate
  if (runs === 0) return { runs: m, meanLog: log, deviationLog: FIRST_DEVIATION }
  const step = Math.max(1 - (1 - SMALLEST_STEP) ** m, m / (runs + m))
  const surprise = surpriseOf(estimate, sample)
  return {
    runs: runs + m,
    meanLog: meanLog + step * surprise,
    deviationLog: Math.max(
      deviationLog + step * (Math.abs(surprise) + spreadLog - deviationLog),
      LEAST_DEVIATION,
    ),
  }
}

/** How far a sample lies from the mean before it, as far as the estimate believes it. */
export const surpriseOf = ({ meanLog, deviationLog }: Estimate, sample: Sample): number => {
  const reach = Math.max(LEAST_REACH, REACH_DEVIATIONS * deviationLog)
  return Math.min(Math.max(sample.meanLog - meanLog, -reach), reach)
}
