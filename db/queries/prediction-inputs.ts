import type { Query } from '../query.ts'
import { LIVE_WORKERS, type LiveWorker, QUEUE_SUMS, type QueueSums } from './queue-facts.ts'

export type EstimateRow = { runs: number; mean_log: number; deviation_log: number }

/** `memory`: the newest of them, in base64. */
export type OrgTypeRow = EstimateRow & { drift_log: number; memory: string | null }

export type TypeEstimateRow = EstimateRow & { type: string; median_log: number | null; drift_log: number }

export type SeriesInputsRow = {
  type: string
  name: string
  /** Nulls: there is no such series yet, or it has not run. */
  runs: number | null
  mean_log: number | null
  deviation_log: number | null
  drift_log: number | null
  /** In base64. */
  memory: string | null
  newest_job_id: string | null
  org_type: OrgTypeRow | null
  /** It, or the whole queue of the organisation. */
  paused: boolean
}

export type PredictionInputsRow = {
  series: SeriesInputsRow[]
  /** Of the types of the series, and of all: that has the type ''. */
  types: TypeEstimateRow[]
  learning_memory: string | null
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
    with wanted as materialized (
      select type, name, number
      from unnest($2::text[], $3::text[]) with ordinality as w (type, name, number)
    )
    select
      (
        select coalesce(jsonb_agg(to_jsonb(found) - 'number' order by found.number), '[]')
        from (
          select
            w.number, w.type, w.name, s.runs, s.mean_log, s.deviation_log, s.drift_log, encode(m.memory, 'base64') as memory,
            j.id as newest_job_id, to_jsonb(o) as org_type,
            exists (
              select
              from smartqueue.pauses p
              where p.org_id = $1::uuid
                and (p.type is null or p.type = w.type)
            ) as paused
          from wanted w
          left join lateral (
            select id, runs, mean_log, deviation_log, drift_log
            from smartqueue.series
            where org_id = $1::uuid
              and type = w.type
              and name = w.name
            offset 0
          ) s on true
          left join lateral (
            select memory
            from smartqueue.series_memories
            where series_id = s.id
            offset 0
          ) m on true
          left join lateral (
            select id
            from smartqueue.jobs
            -- The series is the organisation's: named here, the planner could go through all of its jobs instead.
            where series_id = s.id
            order by id desc
            limit 1
          ) j on true
          left join lateral (
            select runs, mean_log, deviation_log, drift_log, encode(memory, 'base64') as memory
            from smartqueue.org_type_estimates
            where org_id = $1::uuid
              and type = w.type
            offset 0
          ) o on true
        ) found
      ) as series,
      (
        select coalesce(jsonb_agg(to_jsonb(t)), '[]')
        from (
          select type, runs, mean_log, deviation_log, median_log, drift_log
          from smartqueue.type_estimates
          where type = any (array_append($2::text[], ''))
        ) t
      ) as types,
      (select encode(memory, 'base64') from smartqueue.learning_state) as learning_memory,
      (select version from smartqueue.models where status = 'champion') as champion,
      ${LIVE_WORKERS} as workers,
      ${QUEUE_SUMS} as queue`,
  values: [orgId, series.map(({ type }) => type), series.map(({ name }) => name)],
})

export const getModelWeights = (version: number): Query<{ weights: string }> => ({
  name: 'get-model-weights',
  text: `
    select encode(weights, 'base64') as weights
    from smartqueue.models
    where version = $1::int
      and weights is not null`,
  values: [version],
})

/**
 * Why the functions predicted without the model, or not at all. `refused`: the database rejected the
 * submission with its predictions and accepted it without them.
 */
export const PREDICTION_FAULTS = [
  'timeout',
  'inputs-error',
  'corrupt-weights',
  'model-error',
  'experts-error',
  'refused',
] as const

export type PredictionFault = (typeof PREDICTION_FAULTS)[number]

export const countFaults = (reason: PredictionFault, faults: number): Query<never> => ({
  name: 'count-prediction-faults',
  text: `
    insert into smartqueue.prediction_faults as f (reason, faults)
    values ($1::text, $2::bigint)
    on conflict (reason) do update
    set faults = f.faults + excluded.faults, last_at = now()`,
  values: [reason, faults],
})
