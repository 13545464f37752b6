/** A running estimate of ln(runtime in ms) and of its mean absolute deviation. */
export type Estimate = { runs: number; meanLog: number; deviationLog: number }

/** The estimate of a series, and how far its newest executions lay from it: above nought it is getting slower. */
export type SeriesEstimate = Estimate & { driftLog: number }

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

/** The weight of one execution in the drift: it is that of the last five or so. */
const DRIFT_STEP = 0.2

/** What runs shorter differs by noise only, and costs the queue as much. */
export const SHORTEST_MS = 1
const LEAST_DEVIATION = 0.01

/**
 * Smaller values of ln(runtime) are treated as zero. Postgres rejects arithmetic that underflows, and a
 * decaying mean would get there.
 */
export const LEAST_LOG = 1e-9

/**
 * A runtime is between e^-30 and e^30 ms (300 years). A value beyond that is corrupt, and its `exp` may
 * overflow.
 */
export const MOST_LOG = 30

export const flushTiny = (log: number): number => (Math.abs(log) < LEAST_LOG ? 0 : log)

/** Executions of one series that ended together: how many, their mean ln(runtime), and how far they lie around it. */
export type Sample = { runs: number; meanLog: number; spreadLog: number }

export const sampleOf = (runtimesMs: readonly number[]): Sample => sampleOfLogs(runtimesMs.map(logOf))

const sampleOfLogs = (logs: readonly number[]): Sample => {
  if (logs.length === 0) return { runs: 0, meanLog: 0, spreadLog: 0 }
  const meanLog = mean(logs)
  return { runs: logs.length, meanLog, spreadLog: mean(logs.map((log) => Math.abs(log - meanLog))) }
}

/** ln(runtime in ms). */
export const logOf = (ms: number): number => Math.log(Math.max(ms, SHORTEST_MS))

/** Half as long again, or two thirds: then the queued jobs of a series are scored again. */
export const MOVED_LOG = Math.log(1.5)

/** The code of the error of an attempt that ran into its timeout. */
export const TIMEOUT = 'timeout'

type Ended = { series_id: string; outcome: string; ranMs: number; error?: { code: string } }

const isTimeout = ({ error }: Ended): boolean => error?.code === TIMEOUT

/** One sample for each series that has something to learn. That of a series of which all timed out is empty. */
export const sampleRuntimes = (ended: readonly Ended[]): (Sample & { seriesId: string })[] => {
  const runtimes = new Map<string, number[]>()
  for (const end of ended) {
    if (end.outcome !== 'completed' && !isTimeout(end)) continue
    const known = runtimes.get(end.series_id) ?? []
    runtimes.set(end.series_id, known)
    if (end.outcome === 'completed') known.push(end.ranMs)
  }
  return [...runtimes].map(([seriesId, ranMs]) => ({ seriesId, ...sampleOf(ranMs) }))
}

/** Attempts that timed out, which would have taken at least as long. */
export const timeoutBounds = (ended: readonly Ended[]): { seriesId: string; log: number }[] =>
  ended.filter(isTimeout).map(({ series_id, ranMs }) => ({ seriesId: series_id, log: logOf(ranMs) }))

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
const surpriseOf = ({ meanLog, deviationLog }: Estimate, sample: Sample): number => {
  const reach = Math.max(LEAST_REACH, REACH_DEVIATIONS * deviationLog)
  return Math.min(Math.max(sample.meanLog - meanLog, -reach), reach)
}

/**
 * What a series learns from executions that ended together: first from those that completed, then from those that timed
 * out. All that is known of these is that they would have taken at least so long: where that is less than the mean they
 * count as the mean, and they never narrow the spread. Of a series that has never completed they teach nothing.
 */
export const foldEnds = (
  series: SeriesEstimate,
  sample: Sample,
  timeoutLogs: readonly number[],
): SeriesEstimate => {
  const flushed = { ...series, meanLog: flushTiny(series.meanLog), driftLog: flushTiny(series.driftLog) }
  const known = { ...foldSample(flushed, sample), driftLog: foldDrift(flushed, sample) }
  if (known.runs === 0 || timeoutLogs.length === 0) return known
  const bounds = sampleOfLogs(timeoutLogs.map((log) => Math.max(log, known.meanLog)))
  const folded = foldSample(known, bounds)
  return {
    ...folded,
    deviationLog: Math.max(folded.deviationLog, known.deviationLog),
    driftLog: foldDrift(known, bounds),
  }
}

/** The first executions have no mean to lie apart from. */
const foldDrift = (series: SeriesEstimate, sample: Sample): number =>
  series.runs === 0
    ? series.driftLog
    : series.driftLog + (1 - (1 - DRIFT_STEP) ** sample.runs) * (surpriseOf(series, sample) - series.driftLog)

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
