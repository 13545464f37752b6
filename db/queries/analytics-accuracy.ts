import type { Query } from '../query.ts'
import { APE_BUCKETS } from '../rules/log-histogram.ts'
import { BUCKET, type Buckets, SINCE } from './analytics-buckets.ts'

export type PredictionSums = {
  at: string
  jobs: number
  log_error: number
  abs_log_error: number
  baseline_abs_log_error: number
  within_p50: number
  within_p90: number
}

export type PredictionSample = {
  job_id: string
  name: string
  type: string
  predicted_ms: number
  predicted_p90_ms: number
  actual_ms: number
  at: string
  source: string
}

export type PredictionAccuracyRow = {
  points: PredictionSums[]
  apes: number[]
  samples: PredictionSample[]
}

/** One by one: to unnest 720 arrays takes four times as long. */
const APES = Array.from({ length: APE_BUCKETS }, (_, n) => `coalesce(sum(apes[${n + 1}]), 0)`).join(', ')

const SAMPLES = 500
/** Finished jobs that are looked at for them, the newest submission first. */
const SAMPLED_FROM = 2_000

export const getPredictionAccuracy = (
  orgId: string,
  type: string | null,
  buckets: Omit<Buckets, 'span'>,
): Query<PredictionAccuracyRow> => ({
  name: 'get-prediction-accuracy',
  text: `
    with recent as materialized (
      select at, jobs, log_error, abs_log_error, baseline_abs_log_error, within_p50, within_p90, apes
      from smartqueue.prediction_rollups
      where org_id = $1::uuid
        and type = coalesce($4::text, '')
        and at >= ${SINCE}
    )
    select
      (
        select coalesce(jsonb_agg(to_jsonb(point) order by at), '[]')
        from (
          select
            ${BUCKET} as at, sum(jobs) as jobs, sum(log_error) as log_error, sum(abs_log_error) as abs_log_error,
            sum(baseline_abs_log_error) as baseline_abs_log_error, sum(within_p50) as within_p50,
            sum(within_p90) as within_p90
          from recent
          group by 1
        ) point
      ) as points,
(select jsonb_build_array(${APES}) from recent) as apes,
      (
        select coalesce(jsonb_agg(to_jsonb(sample) order by sample.at desc), '[]')
        from (
          select
            f.job_id, j.name, j.type, j.predicted_ms, j.predicted_p90_ms, f.runtime_ms as actual_ms, f.finished_at as at,
            j.prediction_source as source
          from (
            select job_id, state, runtime_ms, finished_at
            from smartqueue.finished_jobs
            where org_id = $1::uuid
            order by job_id desc
            limit ${SAMPLED_FROM}
          ) f
          cross join lateral (
            select name, type, predicted_ms, predicted_p90_ms, prediction_source
            from smartqueue.jobs
            where org_id = $1::uuid
              and id = f.job_id
            offset 0
          ) j
          where f.state = 'completed'
            and f.runtime_ms is not null
            and f.finished_at >= ${SINCE}
            and j.type = coalesce($4::text, j.type)
          order by f.job_id desc
          limit ${SAMPLES}
        ) sample
      ) as samples`,
  values: [orgId, buckets.seconds, buckets.count, type],
})
