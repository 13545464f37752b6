/**
 * The fields of a job, listed once. The type checker requires a row for each field. The rows determine what is sent to
 * the database, when two jobs are alike, and what tests compare with the table, the function, and the API's schema and
 * view. CONTRIBUTING.md explains how to add a field.
 */
import type { JobPrediction } from '../learning/prediction.ts'
import type { Priority, RankTerms } from '../rules/priority.ts'

export type NewJob = RankTerms & {
  id: string
  type: string
  name: string
  payload: Record<string, unknown>
  priority: Priority
  tags: string[]
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  cpu_units: number
  memory_mb: number
  run_at: string | null
  deadline: string | null
  /** Ids of jobs of the organisation, or of the same submission, without cycles. */
  depends_on: string[]
  on_parent_failure: OnParentFailure
  /** Notified when the job finishes. */
  callback_url: string | null
  /** One of the organisation's own tenants. */
  fairness_key: string | null
  triggered_by: TriggeredBy | null
  /** The span in which the job was submitted, in the format of W3C Trace Context. Null: not traced. */
  traceparent: string | null
  /** Null: the job gets the running estimate of its series. */
  prediction: JobPrediction | null
}

/** The origin of a job that was not submitted through the API. */
export type TriggeredBy =
  | { kind: 'webhook'; source_id: string; delivery_id: string }
  /** `tick_at` is null if somebody ran the schedule by hand. */
  | { kind: 'schedule'; schedule_id: string; tick_at: string | null }
  | { kind: 'callback'; job_id: string; event: string }

export type OnParentFailure = 'fail' | 'wait'

export type PredictionSource = 'lstm' | 'series' | 'type' | 'default'

export type JobField = {
  /** Where the API shows the field, if not under its own name. Null: it does not, or shows only a derived value. */
  view?: string | null
  /** Sent once for all jobs that are alike, which means that every `isSame` holds. Without it, sent for each job. */
  isSame?: (a: NewJob, b: NewJob) => boolean
}

/** Each field has its own comparison: reading fields by name takes longer than the rest of a submission. */
export const JOB_FIELDS = {
  id: {},
  type: { isSame: (a, b) => a.type === b.type },
  name: { isSame: (a, b) => a.name === b.name },
  payload: {},
  priority: { isSame: (a, b) => a.priority === b.priority },
  tags: { isSame: (a, b) => areEqual(a.tags, b.tags) },
  timeout_seconds: { isSame: (a, b) => a.timeout_seconds === b.timeout_seconds },
  max_attempts: { view: 'retry.max_attempts', isSame: (a, b) => a.max_attempts === b.max_attempts },
  initial_delay_seconds: {
    view: 'retry.initial_delay_seconds',
    isSame: (a, b) => a.initial_delay_seconds === b.initial_delay_seconds,
  },
  backoff_multiplier: {
    view: 'retry.backoff_multiplier',
    isSame: (a, b) => a.backoff_multiplier === b.backoff_multiplier,
  },
  cpu_units: { view: 'resources.cpu_units', isSame: (a, b) => a.cpu_units === b.cpu_units },
  memory_mb: { view: 'resources.memory_mb', isSame: (a, b) => a.memory_mb === b.memory_mb },
  run_at: { isSame: (a, b) => a.run_at === b.run_at },
  deadline: { isSame: (a, b) => a.deadline === b.deadline },
  depends_on: {},
  on_parent_failure: { isSame: (a, b) => a.on_parent_failure === b.on_parent_failure },
  callback_url: { isSame: (a, b) => a.callback_url === b.callback_url },
  fairness_key: { isSame: (a, b) => a.fairness_key === b.fairness_key },
  triggered_by: { isSame: (a, b) => a.triggered_by === b.triggered_by },
  traceparent: {},
  rank_base: { view: null, isSame: (a, b) => a.rank_base === b.rank_base },
  rank_slope: { view: null, isSame: (a, b) => a.rank_slope === b.rank_slope },
  prediction: {
    view: null,
    isSame: (a, b) => a.prediction === b.prediction || isPredictedAlike(a.prediction, b.prediction),
  },
} as const satisfies Record<keyof NewJob, JobField>

const areEqual = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((value, n) => value === b[n])

/** The columns of a prediction that alike jobs share. The sample and the promised wait belong to each job. */
export const predictedColumns = (prediction: JobPrediction) => ({
  predicted_ms: Math.exp(prediction.p50Log),
  predicted_p90_ms: Math.exp(prediction.p90Log),
  predicted_p99_ms: prediction.p99Log === null ? null : Math.exp(prediction.p99Log),
  prediction_source: prediction.source,
  model_version: prediction.modelVersion,
  residual_log: prediction.residualLog,
})

const isPredictedAlike = (a: JobPrediction | null, b: JobPrediction | null): boolean =>
  a !== null &&
  b !== null &&
  a.p50Log === b.p50Log &&
  a.p90Log === b.p90Log &&
  a.p99Log === b.p99Log &&
  a.source === b.source &&
  a.modelVersion === b.modelVersion &&
  a.residualLog === b.residualLog

type FieldName = keyof typeof JOB_FIELDS

export type KindFieldName = {
  [Name in FieldName]: (typeof JOB_FIELDS)[Name] extends { isSame: unknown } ? Name : never
}[FieldName]

const isKindField = (name: string): name is KindFieldName => 'isSame' in JOB_FIELDS[name as FieldName]

export const KIND_FIELDS = Object.keys(JOB_FIELDS).filter(isKindField)

const COMPARISONS = KIND_FIELDS.map((name) => JOB_FIELDS[name].isSame)

export const areAlike = (a: NewJob, b: NewJob): boolean => {
  for (const isSame of COMPARISONS) if (!isSame(a, b)) return false
  return true
}
