import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { Priority } from '../../db/rules/priority.ts'
import { utf8Bytes } from '../../db/rules/utf8-bytes.ts'
import { MOST_LOG } from './estimate.ts'
import type { Inputs } from './inputs.ts'
import type { PredictionRequest, RuntimeModel, RuntimePrediction } from './runtime-model.ts'
import type { SeriesInputs } from './series-inputs.ts'
import { predictWaits, type Waits } from './waits.ts'

/** What a prediction looks at of a job. */
export type JobToPredict = {
  type: string
  name: string
  priority: Priority
  payload: Record<string, unknown>
  timeoutSeconds: number | null
  cpuUnits: number
  memoryMb: number
  runAtMs: number | null
  /** Positions of the jobs of the same request that it waits for; null if it waits for others, too. */
  parents: readonly number[] | null
}

/**
 * A prediction for each job, in their order; null for those whose series nothing is known of, because there were too many.
 * Jobs that look alike are predicted once, and then share a kind in the statement that stores them.
 */
export const predictAll = (
  jobs: readonly JobToPredict[],
  inputs: Inputs,
  model: RuntimeModel,
  nowMs: number,
): { predictions: (JobPrediction | null)[]; arriving: Waits['arriving'] } => {
  const runtimes = predictRuntimes(jobs, inputs, model, nowMs)
  const { etas, arriving } = predictWaits(jobs, runtimes, inputs, nowMs)
  const predictions = runtimes.map(
    (runtime, n) => runtime && { ...runtime, promisedWaitMs: finiteOrNull(etas[n]?.startP50Ms) },
  )
  return { predictions, arriving }
}

const finiteOrNull = (value: number | undefined): number | null =>
  value !== undefined && Number.isFinite(value) ? value : null

const predictRuntimes = (
  jobs: readonly JobToPredict[],
  inputs: Inputs,
  model: RuntimeModel,
  nowMs: number,
): (RuntimePrediction | null)[] => {
  const places = new Map<string, number>()
  const requests: PredictionRequest[] = []
  const placeOf = jobs.map((job) => {
    const series = inputs.series(job)
    if (!series) return -1
    const payloadBytes = utf8Bytes(JSON.stringify(job.payload))
    const looks = [job.type, job.name, payloadBytes, job.timeoutSeconds, job.cpuUnits, job.memoryMb]
    const key = looks.join('\0')
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, requests.length)
    return requests.push(toRequest(job, payloadBytes, series, inputs, nowMs)) - 1
  })
  const predictions = requests.length > 0 ? model.predict(requests, inputs.orgId) : []
  if (!predictions.every(isSane)) throw new Error('The model predicts what no runtime can be')
  return placeOf.map((place) => predictions[place] ?? null)
}

/** Whether the database can store the prediction and compute with it. */
const isSane = ({ p50Log, p90Log, p99Log, spreadLog, residualLog }: RuntimePrediction): boolean =>
  [p50Log, p90Log, p99Log ?? 0, spreadLog, residualLog].every((log) => Math.abs(log) <= MOST_LOG) &&
  p90Log >= p50Log

const toRequest = (
  job: JobToPredict,
  payloadBytes: number,
  { view }: SeriesInputs,
  { queueDepth }: Inputs,
  nowMs: number,
): PredictionRequest => ({
  view,
  job: {
    type: job.type,
    name: job.name,
    sizeLog: Math.log1p(payloadBytes),
    timeoutLog: Math.log1p((job.timeoutSeconds ?? 0) * 1000),
    cpuLog: Math.log1p(job.cpuUnits),
    memoryLog: Math.log1p(job.memoryMb),
    submittedAtS: nowMs / 1000,
    depthLog: Math.log1p(queueDepth),
  },
})
