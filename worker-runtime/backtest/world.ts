import { type Estimate, foldSample } from '../../functions/prediction/estimate.ts'
import {
  type Network,
  predictRuntime,
  type RuntimePrediction,
} from '../../functions/prediction/model/predict-runtime.ts'
import type { JobTraits, SeriesView } from '../../functions/prediction/model/series-view.ts'
import { createLearner, type Learner } from '../learning/learner.ts'
import type { Decision } from '../learning/tournament.ts'
import type { PastJob } from './history.ts'

/** A job of the history on its way: what was predicted, and from what. */
export type PredictedJob = { job: PastJob; series: string; prediction: RuntimePrediction }

/**
 * All that the product keeps in its tables, in memory: the running estimates that SQL folds, and the learner. It predicts and
 * learns by the very functions of the edge and of the pods.
 */
export type World = {
  predict(job: PastJob, atS: number, depth: number): PredictedJob
  /** The job has ended. */
  learn(predicted: PredictedJob, endedAtS: number): void
  /** The series' newest running mean. */
  meanLog(series: string): number | undefined
  readonly learner: Learner
  readonly decisions: Decision[]
}

/** The learner of a pod looks every second; here after so many executions. */
const SETTLE_EVERY = 50

export const createWorld = (options: { seed: number; floorMs: number; withNetwork?: boolean }): World => {
  const { withNetwork = true } = options
  const learner = createLearner({ seed: options.seed })
  const rows = new Map<
    string,
    { estimate: Estimate | undefined; driftLog: number; lastSubmittedAtS: number | undefined }
  >()
  const decisions: Decision[] = []
  let unsettled = 0

  const seriesOf = (key: string) => {
    const known = rows.get(key) ?? { estimate: undefined, driftLog: 0, lastSubmittedAtS: undefined }
    rows.set(key, known)
    return known
  }

  const network: Network | undefined = withNetwork
    ? (x, state) => {
        const predictor = learner.predictor()
        const { outputs } = predictor.step(x, state.length > 0 ? state : new Float32Array(predictor.width))
        return { p50: outputs[0] as number, p90: outputs[1] as number }
      }
    : undefined

  const predict: World['predict'] = (job, atS, depth) => {
    const series = `${job.org}\0${job.type}\0${job.name}`
    const row = seriesOf(series)
    const view: SeriesView = {
      ...row,
      memory: learner.memory(series),
      orgType: learner.types.orgType(job.org, job.type),
      sharedType: learner.types.sharedType(job.type),
      org: learner.orgMemory(job.org),
    }
    const isOwnNetwork = learner.champion().onlyOrg === job.org
    const prediction = predictRuntime(view, traitsOf(job, atS, depth), network, isOwnNetwork)
    row.lastSubmittedAtS = atS
    return { job, series, prediction }
  }

  const learn: World['learn'] = ({ job, series, prediction }, endedAtS) => {
    const log = Math.log(Math.max(job.runtimeMs, options.floorMs))
    const row = seriesOf(series)
    if (row.estimate) row.driftLog += DRIFT_STEP * (clip(log - row.estimate.meanLog) - row.driftLog)
    row.estimate = foldSample(row.estimate ?? NOTHING, { runs: 1, meanLog: log, spreadLog: 0 })
    learner.learn({
      series,
      org: job.org,
      type: job.type,
      log,
      censored: false,
      endedAtS,
      sample: prediction.sample,
    })
    if (!withNetwork) return
    if (++unsettled >= SETTLE_EVERY) {
      unsettled = 0
      learner.settle()
    }
    if (learner.isRoundDue()) decisions.push(...learner.round())
  }

  return { predict, learn, meanLog: (series) => rows.get(series)?.estimate?.meanLog, learner, decisions }
}

const NOTHING: Estimate = { runs: 0, meanLog: 0, deviationLog: 0 }
const DRIFT_STEP = 0.2
const clip = (value: number): number => Math.min(Math.max(value, -2), 2)

const traitsOf = (job: PastJob, atS: number, depth: number): JobTraits => ({
  type: job.type,
  name: job.name,
  sizeLog: Math.log1p(job.payloadSize),
  timeoutLog: Math.log1p(job.requestedMs),
  cpuLog: Math.log1p(job.cpu),
  memoryLog: Math.log1p(job.memoryMb),
  submittedAtS: atS,
  depthLog: Math.log1p(depth),
})
