import type { Query } from '../query.ts'
import type { Buckets } from './analytics.ts'
import type { JobSummaryRow } from './jobs.ts'

export type PredictionSums = { at: string } & Record<
  'jobs' | 'log_error' | 'abs_log_error' | 'baseline_abs_log_error' | 'within_p50' | 'within_p90',
  number
>

type PredictionSample = Pick<JobSummaryRow, 'name' | 'type' | 'predicted_ms' | 'predicted_p90_ms'> & {
  job_id: string
  actual_ms: number
  at: string
  source: string
}

export type PredictionAccuracyRow = {
  points: PredictionSums[]
  apes: number[]
  samples: PredictionSample[]
}

/** The samples are the newest of the last 2,000 finished jobs. */
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
        and at >= smartqueue.bucket_start($2::int, $3::int)
    )
    select
      (
        select coalesce(jsonb_agg(to_jsonb(point) order by at), '[]')
        from (
          select
            date_bin($2::int * interval '1 second', at, 'epoch') as at, sum(jobs) as jobs,
            sum(log_error) as log_error, sum(abs_log_error) as abs_log_error,
            sum(baseline_abs_log_error) as baseline_abs_log_error, sum(within_p50) as within_p50,
            sum(within_p90) as within_p90
          from recent
          group by 1
        ) point
      ) as points,
      (
        -- Bucket by bucket: to unnest 720 arrays takes four times as long.
        select jsonb_agg(coalesce(jobs, 0) order by bucket)
        from unnest((
          select array[
            sum(apes[1]), sum(apes[2]), sum(apes[3]), sum(apes[4]), sum(apes[5]), sum(apes[6]), sum(apes[7]),
            sum(apes[8]), sum(apes[9]), sum(apes[10]), sum(apes[11]), sum(apes[12]), sum(apes[13]), sum(apes[14]),
            sum(apes[15]), sum(apes[16]), sum(apes[17]), sum(apes[18]), sum(apes[19]), sum(apes[20]), sum(apes[21]),
            sum(apes[22]), sum(apes[23]), sum(apes[24]), sum(apes[25]), sum(apes[26]), sum(apes[27]), sum(apes[28]),
            sum(apes[29]), sum(apes[30]), sum(apes[31]), sum(apes[32]), sum(apes[33]), sum(apes[34]), sum(apes[35]),
            sum(apes[36]), sum(apes[37]), sum(apes[38]), sum(apes[39]), sum(apes[40]), sum(apes[41]), sum(apes[42]),
            sum(apes[43]), sum(apes[44]), sum(apes[45]), sum(apes[46]), sum(apes[47]), sum(apes[48]), sum(apes[49]),
            sum(apes[50]), sum(apes[51]), sum(apes[52]), sum(apes[53]), sum(apes[54]), sum(apes[55]), sum(apes[56]),
            sum(apes[57]), sum(apes[58]), sum(apes[59]), sum(apes[60]), sum(apes[61]), sum(apes[62])
          ]
          from recent
        )) with ordinality as u (jobs, bucket)
      ) as apes,
      (
        select coalesce(jsonb_agg(to_jsonb(sample) order by sample.at desc), '[]')
        from (
          select
            f.job_id, j.name, j.type, j.predicted_ms, j.predicted_p90_ms, f.runtime_ms as actual_ms,
            f.finished_at as at, j.prediction_source as source
          from (
            select job_id, state, runtime_ms, finished_at
            from smartqueue.finished_jobs
            where org_id = $1::uuid
            order by job_id desc
            limit 2000
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
            and f.finished_at >= smartqueue.bucket_start($2::int, $3::int)
            and j.type = coalesce($4::text, j.type)
          order by f.job_id desc
          limit 500
        ) sample
      ) as samples`,
  values: [orgId, buckets.seconds, buckets.count, type],
})
