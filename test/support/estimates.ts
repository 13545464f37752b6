import { type Sample, sampleOfLogs } from '../../db/rules/estimate.ts'
import { type Estimate, flushTiny, foldSample, surpriseOf } from '../../functions/prediction/estimate.ts'

/** The estimate of a series, and how far its newest executions lay from it: above nought it is getting slower. */
export type SeriesEstimate = Estimate & { driftLog: number }

/** The weight of one execution in the drift: it is that of the last five or so. */
const DRIFT_STEP = 0.2

/**
 * The rule of db/queue/learn.sql in TypeScript. What a series learns from executions that ended together: first from those that completed, then from those that timed
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
