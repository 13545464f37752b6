import type { PredictionSource } from '../queue/job-fields.ts'

/** What the predictor says of a job at submission. Runtimes are ln(milliseconds). */
export type JobPrediction = {
  p50Log: number
  p90Log: number
  /** Null: not enough is known of the series. */
  p99Log: number | null
  /** How uncertain it is, before calibration: what its place in the queue goes by. */
  spreadLog: number
  source: PredictionSource
  /** Of the network that had a say in it. */
  modelVersion: number | null
  /** How far p50 lies from the series' running mean; 0 if that has none. */
  residualLog: number
  /** What the predictor saw, packed, in base64: jobs that are to be learned from carry it. */
  sample: string | null
  /** Until it starts, as promised. */
  promisedWaitMs: number | null
}
