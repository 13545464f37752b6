import { DEFAULT_ESTIMATE, P90_DEVIATIONS } from '../../functions/prediction/estimate.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import { createEventHeap } from './event-heap.ts'
import type { PastJob } from './history.ts'
import { createRunningMean, createRunningMeans } from './running-mean.ts'
import { type PredictorScore, scorePredictions } from './score.ts'
import { createWorld, type PredictedJob } from './world.ts'

export const PREDICTORS = [
  'global-mean',
  'type-mean',
  'type-median',
  'series-ewma',
  'last-two',
  'lstm',
  'smartqueue',
] as const

export type PredictorName = (typeof PREDICTORS)[number]

/** Of one predictor, as logarithms, a job each. */
export type Predictions = { p50: Float64Array; p90: Float64Array }

export type Accuracy = {
  predictors: Record<PredictorName, PredictorScore>
  promotions: number
  rollbacks: number
}

/**
 * Predicts each job from what had ended before it was submitted, on the history's own timeline, and then learns from it when
 * it ends there (prequentially).
 */
export const measureAccuracy = (options: {
  jobs: readonly PastJob[]
  skip: number
  floorMs: number
  seed: number
  onProgress: (submitted: number) => void
}): Accuracy => {
  const { jobs, floorMs } = options
  const world = createWorld(options)
  const global = createRunningMean()
  const types = createRunningMeans()
  const ends = createEventHeap<{ predicted: PredictedJob; log: number; endedAtS: number }>()
  const actual = new Float64Array(jobs.length)
  const predictions = Object.fromEntries(
    PREDICTORS.map((name) => [
      name,
      { p50: new Float64Array(jobs.length), p90: new Float64Array(jobs.length) },
    ]),
  ) as Record<PredictorName, Predictions>

  const endUntil = (nowS: number): void => {
    while (ends.peekAt() <= nowS) {
      const { predicted, log, endedAtS } = ends.pop()
      world.learn(predicted, endedAtS)
      global.add(log)
      types(predicted.job.type).add(log)
    }
  }

  for (const [n, job] of jobs.entries()) {
    endUntil(job.submitS)
    const predicted = world.predict(job, job.submitS, 0)
    const all = adviceOf(predicted, global, types(job.type))
    for (const name of PREDICTORS) {
      predictions[name].p50[n] = all[name].p50
      predictions[name].p90[n] = all[name].p90
    }
    const log = Math.log(Math.max(job.runtimeMs, floorMs))
    actual[n] = log
    const endedAtS = job.submitS + job.waitS + job.runtimeMs / 1000
    ends.push(endedAtS, { predicted, log, endedAtS })
    if (n % 500 === 0) options.onProgress(n)
  }
  const kinds = world.decisions.map(({ kind }) => kind)
  return {
    predictors: Object.fromEntries(
      PREDICTORS.map((name) => [
        name,
        scorePredictions(predictions[name], actual, options.skip, Math.log(floorMs)),
      ]),
    ) as Record<PredictorName, PredictorScore>,
    promotions: kinds.filter((kind) => kind === 'promoted').length,
    rollbacks: kinds.filter((kind) => kind === 'rolled_back').length,
  }
}

const adviceOf = (
  { prediction }: PredictedJob,
  global: ReturnType<typeof createRunningMean>,
  type: ReturnType<typeof createRunningMean>,
): Record<PredictorName, { p50: number; p90: number }> => {
  const { advice, baseLog, simpleSpreadLog, networkSpreadLog } = prediction.sample
  const expert = (name: (typeof EXPERTS)[number]): number => advice[EXPERTS.indexOf(name)] ?? baseLog
  const around = (p50: number, spread = simpleSpreadLog) => ({ p50, p90: p50 + spread })
  const globalLog = global.mean() ?? DEFAULT_ESTIMATE.meanLog
  return {
    'global-mean': around(globalLog, P90_DEVIATIONS * global.deviation()),
    'type-mean': around(type.mean() ?? globalLog, P90_DEVIATIONS * type.deviation()),
    'type-median': around(expert('type-median')),
    'series-ewma': around(baseLog),
    'last-two': around(expert('last-two')),
    lstm: around(expert('lstm'), networkSpreadLog),
    smartqueue: { p50: prediction.p50Log, p90: prediction.p90Log },
  }
}
