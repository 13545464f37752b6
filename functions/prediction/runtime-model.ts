import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { PredictionSource } from '../../db/queries/submission.ts'
import { DEFAULT_ESTIMATE, type Estimate, P90_DEVIATIONS } from '../../db/rules/estimate.ts'
import type { Priority } from '../../db/rules/priority.ts'

export type TypeEstimate = Estimate & { medianLog: number; driftLog: number }

/** A job that is to be predicted, and all that is known for it. */
export type PredictionRequest = {
  type: string
  name: string
  priority: Priority
  payloadBytes: number
  timeoutSeconds: number | null
  cpuUnits: number
  memoryMb: number
  nowMs: number
  /** Jobs that wait, of everybody. */
  queueDepth: number
  /** Of the stream; undefined before its first execution. */
  estimate: Estimate | undefined
  driftLog: number
  /** Packed by db/learning/stream-memory.ts. */
  streamMemory: Uint8Array | undefined
  newestJobId: string | undefined
  orgType: Estimate | undefined
  typeEstimate: TypeEstimate | undefined
  allTypes: TypeEstimate | undefined
  /** Packed by db/learning/global-memory.ts. */
  learningMemory: Uint8Array | undefined
}

/** Without the wait: that is the queue's. */
export type RuntimePrediction = Omit<JobPrediction, 'promisedWaitMs'>

export type RuntimeModel = { predict(jobs: readonly PredictionRequest[]): RuntimePrediction[] }

/** The version of the network that is in use, as it was stored. */
export type Champion = { version: number; weights: Uint8Array }

export type BuildModel = (champion: Champion | null) => RuntimeModel

/** By the running estimate of the stream alone. Throws if the weights are none. */
export const buildRuntimeModel: BuildModel = (champion) => {
  if (champion?.weights.length === 0) throw new Error(`Version ${champion.version} has no weights`)
  return { predict: (jobs) => jobs.map(predictByEstimate) }
}

const ENOUGH_FOR_P99 = 20

const predictByEstimate = (job: PredictionRequest): RuntimePrediction => {
  const { meanLog, deviationLog, source } = baselineOf(job)
  const isKnown = (job.estimate?.runs ?? 0) >= ENOUGH_FOR_P99
  return {
    p50Log: meanLog,
    p90Log: meanLog + P90_DEVIATIONS * deviationLog,
    p99Log: isKnown ? meanLog + 3 * deviationLog + 0.5 : null,
    source,
    modelVersion: null,
    residualLog: 0,
    sample: null,
  }
}

const baselineOf = (job: PredictionRequest): Estimate & { source: PredictionSource } => {
  if (job.estimate) return { ...job.estimate, source: 'stream' }
  if (job.orgType) return { ...job.orgType, source: 'type' }
  if (job.typeEstimate) return { ...job.typeEstimate, source: 'type' }
  return { ...(job.allTypes ?? DEFAULT_ESTIMATE), source: 'default' }
}
