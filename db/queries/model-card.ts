import type { Query } from '../query.ts'
import type { AccuracyValues } from './learning.ts'
import type { ModelRow } from './models.ts'

type ModelVersion = Omit<ModelRow, 'weights' | 'only_org'> & {
  created_at: string
  decided_at: string | null
  evaluation: Record<string, unknown>
}

export type ModelCardRow = {
  learned: number
  by_source: Record<string, unknown>
  accuracy: Record<string, unknown>
  updated_at: string
  versions: ModelVersion[]
  points: ({ at: string; model_version: number | null } & Omit<AccuracyValues, 'drift'>)[]
  faults: { reason: string; faults: number; last_at: string }[]
}

/** What is known of the model and how good it was. Nothing of it belongs to an organisation. */
export const getModelCard = (): Query<ModelCardRow> => ({
  name: 'get-model-card',
  text: `
    select
      s.learned::double precision as learned, s.by_source, s.accuracy, s.updated_at,
      (
        select coalesce(jsonb_agg(to_jsonb(listed) order by version desc), '[]')
        from (
          select version, parent, status, created_at, decided_at, trained_on, evaluation
          from smartqueue.models
          -- The champion may be older than the newest rejected ones.
          order by status = 'champion' desc, version desc
          limit 50
        ) listed
      ) as versions,
      (
        select coalesce(jsonb_agg(to_jsonb(hours) - 'accuracy' || (accuracy - 'drift') order by at desc), '[]')
        from (
          select at, model_version, accuracy
          from smartqueue.accuracy_points
          order by at desc
          -- The hours of a week.
          limit 168
        ) hours
      ) as points,
      (
        select coalesce(jsonb_agg(to_jsonb(f) order by reason), '[]')
        from smartqueue.prediction_faults f
      ) as faults
    from smartqueue.learning_state s`,
  values: [],
})

export type EtaAccuracyRow = {
  jobs: number
  median_abs_error_s: number | null
  mean_abs_error_s: number | null
  within_p90: number | null
}

/**
 * How well promised starts were kept, by those of the newest 2,000 jobs that completed in their first attempt.
 * `lateness`: how much longer than promised a job may wait by its p90.
 */
export const getEtaAccuracy = (
  orgId: string,
  lateness: { share: number; ms: number },
): Query<EtaAccuracyRow> => ({
  name: 'get-eta-accuracy',
  text: `
    with kept as materialized (
      select
        extract(epoch from f.started_at - j.created_at) - j.promised_wait_ms / 1000 as error_s,
        f.finished_at <= j.created_at + interval '1 millisecond' * (
          j.promised_wait_ms + j.predicted_p90_ms + $3::double precision
          + $2::double precision * greatest(
            0,
            j.promised_wait_ms - greatest(0, coalesce(extract(epoch from j.run_at - j.created_at) * 1000, 0))
          )
        ) as in_time
      from (
        select job_id, state, attempts, started_at, finished_at
        from smartqueue.finished_jobs
        where org_id = $1::uuid
        order by job_id desc
        limit 2000
      ) f
      join smartqueue.jobs j on j.org_id = $1::uuid and j.id = f.job_id
      where f.state = 'completed'
        and f.attempts = 1
        and j.promised_wait_ms is not null
    )
    select
      count(*)::integer as jobs,
      percentile_cont(0.5) within group (order by abs(error_s))::double precision as median_abs_error_s,
      avg(abs(error_s))::double precision as mean_abs_error_s,
      avg(in_time::integer)::double precision as within_p90
    from kept`,
  values: [orgId, lateness.share, lateness.ms],
})
