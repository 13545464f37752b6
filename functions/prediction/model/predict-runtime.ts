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
/**
 * How far a network that has learned from other organisations may move a prediction, as ln. A factor of 1.024 up or down:
 * whatever others run, two networks are at most 1.024² < 1.05 apart.
 */
const MOST_SHIFT = Math.log(1.024)

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

/**
 * The shipped prediction: the experts' advice as the mixture weighs it, with a calibrated spread. `isOwnNetwork`: the network
 * has learned from no other organisation's runs.
 */
export const predictRuntime = (
  view: SeriesView,
  job: JobTraits,
  network: Network | undefined,
  isOwnNetwork = false,
): RuntimePrediction => {
  const considered = consider(view, job)
  return conclude(considered, network?.(considered.x, view.memory.state), isOwnNetwork)
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

/**
 * Everything that is learned from an execution (errors, calibration) is learned from the organisation's own prediction. The
 * shift by a network that knows other organisations' runs comes last, and nothing is computed from it.
 */
export const conclude = (
  considered: Consideration,
  residuals: Residuals | undefined,
  isOwnNetwork = false,
): RuntimePrediction => {
  const { view, job, baseline, gapLog, advice: simple, x } = considered
  const { memory, estimate } = view
  const runs = estimate?.runs ?? 0
  const experts = residuals ? simple.with(LSTM, bounded(baseline.log + residuals.p50, simple)) : simple
  const all = mix(considered, experts, residuals)
  const own = isOwnNetwork ? all : mix(considered, experts, undefined)
  const { p50Log, p90Log, p99Log } = shift(own, all)
  return {
    p50Log,
    p90Log,
    p99Log: runs >= ENOUGH_FOR_P99 ? p99Log : null,
    source: sourceOf(own.weights, baseline.source, runs > 0),
    residualLog: estimate ? flushTiny(p50Log - estimate.meanLog) : 0,
    spreadLog: P90_DEVIATIONS * baseline.deviationLog,
    sample: {
      submittedAtS: job.submittedAtS,
      baseLog: baseline.log,
      runs,
      seen: memory.seen,
      advice: [...experts, own.together],
      ownP50Log: own.p50Log,
      p50Log,
      spreadLog: own.spreadLog,
      simpleSpreadLog: own.simpleSpreadLog,
      networkSpreadLog: all.networkSpreadLog,
      p90Log,
      sizeLog: job.sizeLog,
      timeoutLog: job.timeoutLog,
      cpuLog: job.cpuLog,
      gapLog,
      x,
    },
  }
}

type Quantiles = { p50Log: number; p90Log: number; p99Log: number }

/** A prediction by the experts; without residuals, by those that know only the organisation's runs. */
const mix = (
  { view, baseline }: Consideration,
  experts: readonly number[],
  residuals: Residuals | undefined,
) => {
  const isPresent = (n: number): boolean => n !== LSTM || residuals !== undefined
  const general = view.org.general[maturityOf(view.estimate?.runs ?? 0)] ?? noErrors()
  const errors = expectedErrors(view.memory, general)
  const weights = weighExperts(errors, isPresent)
  const together = dot(experts, weights)
  const p50Log = lookAgain(general, [...experts, together], isPresent)
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
    ...{ p50Log, p90Log, p99Log: Math.max(p90Log, p99Log) },
    ...{ weights, together, spreadLog, simpleSpreadLog, networkSpreadLog },
  }
}

/** What all experts say, as far as it is within `MOST_SHIFT` of the organisation's own prediction. */
const shift = (own: Quantiles, all: Quantiles): Quantiles => {
  const within = (name: keyof Quantiles): number =>
    bounded(all[name], [own[name] - MOST_SHIFT, own[name] + MOST_SHIFT])
  return { p50Log: within('p50Log'), p90Log: within('p90Log'), p99Log: within('p99Log') }
}

const bounded = (log: number, limits: readonly number[]): number =>
  Math.min(Math.max(log, Math.min(...limits)), Math.max(...limits))

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
