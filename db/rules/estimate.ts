/** A running estimate of ln(runtime in ms) and of its mean absolute deviation. */
export type Estimate = { runs: number; meanLog: number; deviationLog: number }

/** Before anything of a kind has run: a second, and within ten in nine of ten cases. */
export const DEFAULT_ESTIMATE: Estimate = { runs: 0, meanLog: Math.log(1000), deviationLog: 1.44 }

/** The first execution says nothing about the spread. */
const FIRST_DEVIATION = 0.5

/** For a normal spread of ln(runtime), the 90th percentile is this many mean absolute deviations above the mean. */
export const P90_DEVIATIONS = 1.6

/** No step is smaller than this: the estimate follows a stream that changes within about ten executions. */
const SMALLEST_STEP = 0.1

/** One wild execution moves the mean by no more than this many deviations, and never by less than `LEAST_REACH`. */
const REACH_DEVIATIONS = 3
const LEAST_REACH = 0.3

/** What runs shorter differs by noise only, and costs the queue as much. */
const SHORTEST_MS = 1
const LEAST_DEVIATION = 0.01

/** Executions of one stream that ended together: how many, their mean ln(runtime), and how far they lie around it. */
export type Sample = { runs: number; meanLog: number; spreadLog: number }

export const sampleOf = (runtimesMs: readonly number[]): Sample => {
  const logs = runtimesMs.map((ms) => Math.log(Math.max(ms, SHORTEST_MS)))
  const meanLog = mean(logs)
  return { runs: logs.length, meanLog, spreadLog: mean(logs.map((log) => Math.abs(log - meanLog))) }
}

/** One sample for each stream. */
export const sampleRuntimes = (
  ended: readonly { stream_id: string; state: string; ranMs: number }[],
): (Sample & { streamId: string })[] => {
  const runtimes = new Map<string, number[]>()
  for (const { stream_id, state, ranMs } of ended) {
    if (state !== 'completed') continue
    const known = runtimes.get(stream_id)
    if (known) known.push(ranMs)
    else runtimes.set(stream_id, [ranMs])
  }
  return [...runtimes].map(([streamId, ranMs]) => ({ streamId, ...sampleOf(ranMs) }))
}

/**
 * Folds a sample into the estimate. With `n` executions before and `m` now the step is `max(1 − 0.9^m, m / (n + m))`:
 * for a single one the plain rule `max(0.1, 1/(n+1))`. `exchange-jobs` is the same rule in SQL; a test holds the two
 * together.
 */
export const foldSample = (estimate: Estimate, sample: Sample): Estimate => {
  const { runs: m, meanLog: log, spreadLog } = sample
  const { runs, meanLog, deviationLog } = estimate
  if (m === 0) return estimate
  if (runs === 0) return { runs: m, meanLog: log, deviationLog: FIRST_DEVIATION }
  const step = Math.max(1 - (1 - SMALLEST_STEP) ** m, m / (runs + m))
  const reach = Math.max(LEAST_REACH, REACH_DEVIATIONS * deviationLog)
  const surprise = Math.min(Math.max(log - meanLog, -reach), reach)
  return {
    runs: runs + m,
    meanLog: meanLog + step * surprise,
    deviationLog: Math.max(
      deviationLog + step * (Math.abs(surprise) + spreadLog - deviationLog),
      LEAST_DEVIATION,
    ),
  }
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
