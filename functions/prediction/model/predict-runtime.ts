import type { PredictionSource } from '../../../db/queue/job-fields.ts'
import { flushTiny, MOST_LOG, P90_DEVIATIONS } from '../estimate.ts'
import { spreadP90, spreadP99 } from './calibration.ts'
import { encode, gapLogOf, hourOf } from './encoder.ts'
import { adviseAll, EXPERTS, type Expert } from './experts.ts'
import { alikeIn, kernelsOf } from './kernels.ts'
import { expectedErrors, lookAgain, maturityOf, noErrors, weighExperts } from './mixture.ts'
import type { Sample } from './sample.ts'
import { type Baseline, baselineOf, type JobTraits, type SeriesView } from './series-view.ts'

/** What the network says of a job beyond the baseline, from its inputs and the state of its series. */
export type Residuals = { p50: number; p90: number }
export type Network = (x: Float32Array, state: Float32Array) => Residuals | undefined

export type RuntimePrediction = {
  p50Log: number
  p90Log: number
  /** Null before the series has run often enough to tell what is unusual. */
  p99Log: number | null
  source: PredictionSource
  residualLog: number
  /** ln p90 − ln p50 as the series itself has spread so far, whatever the experts make of it: what the order goes by. */
  spreadLog: number
  sample: Sample
}

const LSTM = EXPERTS.indexOf('lstm')
const ENOUGH_FOR_P99 = 20
/** How many times as wide, or as narrow, the network may make a spread. */
const MOST_STRETCH = 2

const SOURCES: Record<Expert, PredictionSource> = {
  series: 'series',
  'last-two': 'series',
  median: 'series',
  kernel: 'series',
  alike: 'series',
  organisation: 'type',
  'type-median': 'type',
  lstm: 'lstm',
}

/** All of a prediction but what the network says, with the inputs that it says it from. */
export type Consideration = {
  view: SeriesView
  job: JobTraits
  baseline: Baseline
  gapLog: number
  /** Of each expert, with the baseline in the network's place. */
  advice: number[]
  x: Float32Array
}

/** The shipped prediction: the experts' advice as the mixture weighs it, with a calibrated spread. */
export const predictRuntime = (
  view: SeriesView,
  job: JobTraits,
  network: Network | undefined,
): RuntimePrediction => {
  const considered = consider(view, job)
  return conclude(considered, network?.(considered.x, view.memory.state))
}

/** The first half: whoever has many jobs asks the network once for all of them, before the second. */
export const consider = (view: SeriesView, job: JobTraits): Consideration => {
  const baseline = baselineOf(view)
  const { runs } = view.memory
  const situation = { gapLog: gapLogOf(view, job), hour: hourOf(job.submittedAtS) }
  const kernels = kernelsOf(runs, job, situation.gapLog, situation.hour)
  const ofOrg = view.orgType && alikeIn(view.orgType.newest, job)
  const advice = adviseAll(view, baseline, { kernels, ofOrg })
  const x = encode(view, job, baseline, {
    ...situation,
    kernels,
    ofOrg,
    lastTwo: advice[EXPERTS.indexOf('last-two')] as number,
    median: advice[EXPERTS.indexOf('median')] as number,
    typeMedian: advice[EXPERTS.indexOf('type-median')] as number,
  })
  return { view, job, baseline, gapLog: situation.gapLog, advice, x }
}

export const conclude = (
  { view, job, baseline, gapLog, advice: simple, x }: Consideration,
  residuals: Residuals | undefined,
): RuntimePrediction => {
  const { memory, estimate } = view
  const experts = residuals ? simple.with(LSTM, bounded(baseline.log + residuals.p50, simple)) : simple
  const isPresent = (n: number): boolean => n !== LSTM || residuals !== undefined
  const runs = estimate?.runs ?? 0
  const general = view.org.general[maturityOf(runs)] ?? noErrors()
  const errors = expectedErrors(memory, general)
  const weights = weighExperts(errors, isPresent)
  const together = dot(experts, weights)
  const advice = [...experts, together]
  const p50Log = lookAgain(general, advice, isPresent)
  const simpleSpreadLog = P90_DEVIATIONS * (general.weight > 0 ? dot(errors, weights) : baseline.deviationLog)
  const networkSpreadLog =
    residuals && general.weight > 0
      ? bounded(residuals.p90 - residuals.p50, [
          simpleSpreadLog / MOST_STRETCH,
          simpleSpreadLog * MOST_STRETCH,
        ])
      : simpleSpreadLog
  const share = weights[LSTM] ?? 0
  const spreadLog = share * networkSpreadLog + (1 - share) * simpleSpreadLog
  const p90Log = Math.min(p50Log + spreadP90(spreadLog, view.org.stretch), MOST_LOG)
  const p99Log = Math.min(p50Log + spreadP99(spreadLog, view.org.stretch), MOST_LOG)
  return {
    p50Log,
    p90Log,
    p99Log: runs >= ENOUGH_FOR_P99 ? Math.max(p90Log, p99Log) : null,
    source: sourceOf(weights, baseline.source, runs > 0),
    residualLog: estimate ? flushTiny(p50Log - estimate.meanLog) : 0,
    spreadLog: P90_DEVIATIONS * baseline.deviationLog,
    sample: {
      submittedAtS: job.submittedAtS,
      baseLog: baseline.log,
      runs,
      seen: memory.seen,
      advice,
      p50Log,
      spreadLog,
      simpleSpreadLog,
      networkSpreadLog,
      p90Log,
      sizeLog: job.sizeLog,
      timeoutLog: job.timeoutLog,
      cpuLog: job.cpuLog,
      gapLog,
      x,
    },
  }
}

/**
 * The network learns from everybody's runs, all others only from the organisation's own. So whatever it says, the prediction
 * stays between what these say: nobody's runs can move it further.
 */
const bounded = (log: number, own: readonly number[]): number =>
  Math.min(Math.max(log, Math.min(...own)), Math.max(...own))

const dot = (values: readonly number[], weights: readonly number[]): number =>
  values.reduce((sum, value, n) => sum + value * (weights[n] ?? 0), 0)

/** Whose word weighs most; of a series that has not run, where its baseline comes from. */
const sourceOf = (
  weights: readonly number[],
  baseline: PredictionSource,
  hasRun: boolean,
): PredictionSource => {
  const most = weights.indexOf(Math.max(...weights))
  const source = SOURCES[EXPERTS[most] ?? 'series']
  return source === 'series' && !hasRun ? baseline : source
}
