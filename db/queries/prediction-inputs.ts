import type { Query } from '../query.ts'
import type { LiveWorker, QueueSums } from './queue-facts.ts'

export type EstimateRow = { runs: number; mean_log: number; deviation_log: number; median_log: number }

/** `memory`: the newest of them, in base64. */
export type OrgTypeEstimateRow = EstimateRow & { drift_log: number; memory: string | null }

export type TypeEstimateRow = EstimateRow & { type: string }

/** Nulls: there is no such series yet, or it has not run. */
type SeriesEstimate = Record<'runs' | 'mean_log' | 'deviation_log' | 'drift_log', number | null>

export type SeriesInputsRow = SeriesEstimate & {
  type: string
  name: string
  /** In base64. */
  memory: string | null
  newest_job_id: string | null
  org_type: OrgTypeEstimateRow | null
  /** It, or the whole queue of the organisation. */
  paused: boolean
}

export type PredictionInputsRow = {
  series: SeriesInputsRow[]
  /** Everybody's runs of the types. Empty unless organisations share estimates. */
  shared_types: TypeEstimateRow[]
  /** In base64. */
  org_memory: string | null
  champion: number | null
  workers: LiveWorker[]
  queue: QueueSums | null
}

/** What predictions of jobs of these series of the organisation look at, in one row. */
export const getPredictionInputs = (
  orgId: string,
  series: readonly { type: string; name: string }[],
): Query<PredictionInputsRow> => ({
  name: 'get-prediction-inputs',
  text: `
    select series, shared_types, org_memory, champion, workers, queue
    from smartqueue.prediction_inputs_for($1::uuid, $2::text[], $3::text[], $4::jsonb)`,
  values: [orgId, series.map(({ type }) => type), series.map(({ name }) => name), null],
  takesProof: true,
})

export const getModelWeights = (version: number): Query<{ weights: string; only_org: string | null }> => ({
  name: 'get-model-weights',
  text: `
    select encode(weights, 'base64') as weights, only_org
    from smartqueue.models
    where version = $1::int
      and weights is not null`,
  values: [version],
})

export const countFaults = (reason: string, faults: number): Query<never> => ({
  name: 'count-prediction-faults',
  text: `
    insert into smartqueue.prediction_faults as f (reason, faults)
    values ($1::text, $2::bigint)
    on conflict (reason) do update
    set faults = f.faults + excluded.faults, last_at = now()`,
  values: [reason, faults],
})
