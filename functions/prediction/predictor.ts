import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { EstimateRow, TypeEstimateRow } from '../../db/queries/prediction-inputs.ts'
import type { Estimate } from '../../db/rules/estimate.ts'
import type { Priority } from '../../db/rules/priority.ts'
import { utf8Bytes } from '../../db/rules/utf8-bytes.ts'
import type { Inputs, StreamInputs } from './inputs.ts'
import type { PredictionRequest, RuntimeModel, RuntimePrediction, TypeEstimate } from './runtime-model.ts'
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
 * A prediction for each job, in their order; null for those whose stream nothing is known of, because there were too many.
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
    (runtime, n) => runtime && { ...runtime, promisedWaitMs: etas[n]?.startP50Ms ?? null },
  )
  return { predictions, arriving }
}

const predictRuntimes = (
  jobs: readonly JobToPredict[],
  inputs: Inputs,
  model: RuntimeModel,
  nowMs: number,
): (RuntimePrediction | null)[] => {
  const places = new Map<string, number>()
  const requests: PredictionRequest[] = []
  const placeOf = jobs.map((job) => {
    const stream = inputs.stream(job)
    if (!stream) return -1
    const payloadBytes = utf8Bytes(JSON.stringify(job.payload))
    const looks = [
      job.type,
      job.name,
      payloadBytes,
      job.timeoutSeconds,
      job.cpuUnits,
      job.memoryMb,
      job.priority,
    ]
    const key = looks.join('\0')
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, requests.length)
    return requests.push(toRequest(job, payloadBytes, stream, inputs, nowMs)) - 1
  })
  const predictions = requests.length > 0 ? model.predict(requests) : []
  if (!predictions.every(isSane)) throw new Error('The model predicts what no runtime can be')
  return placeOf.map((place) => predictions[place] ?? null)
}

/** From a tenth of a microsecond to three hundred years: what the database can reckon with. */
const isSane = ({ p50Log, p90Log, p99Log }: RuntimePrediction): boolean =>
  [p50Log, p90Log, p99Log ?? 0].every((value) => Math.abs(value) <= 30) && p90Log >= p50Log

const toRequest = (
  job: JobToPredict,
  payloadBytes: number,
  stream: StreamInputs,
  { queueDepth, learningMemory }: Inputs,
  nowMs: number,
): PredictionRequest => ({
  type: job.type,
  name: job.name,
  priority: job.priority,
  payloadBytes,
  timeoutSeconds: job.timeoutSeconds,
  cpuUnits: job.cpuUnits,
  memoryMb: job.memoryMb,
  nowMs,
  queueDepth,
  estimate: streamEstimate(stream),
  driftLog: stream.drift_log ?? 0,
  streamMemory: stream.memory,
  newestJobId: stream.newest_job_id ?? undefined,
  orgType: stream.org_type ? toEstimate(stream.org_type) : undefined,
  typeEstimate: typeEstimate(stream.typeEstimate),
  allTypes: typeEstimate(stream.allTypes),
  learningMemory,
})

const streamEstimate = ({ runs, mean_log, deviation_log }: StreamInputs): Estimate | undefined =>
  mean_log === null || deviation_log === null
    ? undefined
    : { runs: runs ?? 0, meanLog: mean_log, deviationLog: deviation_log }

const toEstimate = ({ runs, mean_log, deviation_log }: EstimateRow): Estimate => ({
  runs,
  meanLog: mean_log,
  deviationLog: deviation_log,
})

const typeEstimate = (row: TypeEstimateRow | undefined): TypeEstimate | undefined =>
  row && { ...toEstimate(row), medianLog: row.median_log ?? row.mean_log, driftLog: row.drift_log }
