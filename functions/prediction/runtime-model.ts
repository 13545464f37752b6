import type { JobPrediction } from '../../db/learning/prediction.ts'
import { toBase64 } from './base64.ts'
import { P90_DEVIATIONS } from './estimate.ts'
import { type RuntimePrediction as Concluded, conclude, consider } from './model/predict-runtime.ts'
import { packSample } from './model/sample.ts'
import { baselineOf, type JobTraits, type SeriesView } from './model/series-view.ts'
import { openNetwork } from './network.ts'

/** A job that is to be predicted, and all that is known for it. */
export type PredictionRequest = { view: SeriesView; job: JobTraits }

/** Without the wait: that is the queue's. */
export type RuntimePrediction = Omit<JobPrediction, 'promisedWaitMs'>

export type RuntimeModel = {
  /** The jobs are all of one organisation. */
  predict(jobs: readonly PredictionRequest[], orgId: string): RuntimePrediction[]
  dispose(): void
}

/** The version of the network that is in use, as it was stored; `onlyOrg`: it has learned from no one else's runs. */
export type Champion = { version: number; weights: Uint8Array; onlyOrg: string | null }

export type BuildModel = (champion: Champion | null) => RuntimeModel

/** The experts and, if there is a champion, the network among them. Throws if its weights are none. */
export const buildRuntimeModel: BuildModel = (champion) => {
  const network = champion && openNetwork(champion.weights)
  const version = champion?.version ?? null
  return {
    predict: (jobs, orgId) => {
      const isOwnNetwork = champion?.onlyOrg === orgId
      const considered = jobs.map(({ view, job }) => consider(view, job))
      const residuals = network?.advise(considered)
      return considered.map((one, n) => toPrediction(conclude(one, residuals?.[n], isOwnNetwork), version))
    },
    dispose: () => network?.dispose(),
  }
}

const toPrediction = (concluded: Concluded, modelVersion: number | null): RuntimePrediction => {
  const { p50Log, p90Log, p99Log, source, residualLog, spreadLog, sample } = concluded
  return {
    p50Log,
    p90Log,
    p99Log,
    spreadLog,
    source,
    modelVersion,
    residualLog,
    sample: toBase64(packSample(sample)),
  }
}

/** By the running estimate alone, for when what is remembered makes the experts fail. Nothing is learned from these. */
export const ESTIMATE_MODEL: RuntimeModel = {
  predict: (jobs) =>
    jobs.map(({ view }) => {
      const { log, deviationLog, source } = baselineOf(view)
      const spreadLog = P90_DEVIATIONS * deviationLog
      return {
        p50Log: log,
        p90Log: log + spreadLog,
        p99Log: null,
        spreadLog,
        source,
        modelVersion: null,
        residualLog: 0,
        sample: null,
      }
    }),
  dispose: () => {},
}
