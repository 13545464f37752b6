import { MOST_LOG } from '../rules/estimate.ts'

/** Of the columns of a job. */
export const RANK = `rank_base + rank_slope * ln(predicted_ms)`
export const START_BY = `deadline - predicted_p90_ms * interval '1 millisecond'`

/**
 * The estimate for a job without a prediction, clamped so that `exp` cannot fail even if a row is corrupt or
 * NaN.
 */
export const estimatedLog = (log: string): string => `least(greatest(${log}, -${MOST_LOG}), ${MOST_LOG})`
export const estimatedSpread = (spread: string): string => `least(greatest(${spread}, 0), ${MOST_LOG})`
export const estimatedP90Ms = (deviations: string): string =>
  `exp(least(log + ${deviations}::double precision * spread, ${MOST_LOG}))`

/** What no job of a statement has is left out of the text. */
export const insertJobs = ({
  predicted,
  linked,
  traced,
}: {
  predicted: boolean
  linked: boolean
  traced: boolean
}): string => `insert into smartqueue.jobs (
        org_id, id, created_by, series_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
        predicted_ms, predicted_p90_ms, prediction_source, rank_base, rank_slope${predicted ? PREDICTED_COLUMNS : ''}${linked ? ', callback_url, triggered_by' : ''}${traced ? ', traceparent' : ''}
      )`

const PREDICTED_COLUMNS = `,
        predicted_p99_ms, model_version, residual_log, promised_wait_ms, sample`

/**
 * What a series that has not run starts from: the organisation's jobs of the type, all jobs of the type, all jobs. `when`
 * spares the look.
 */
export const startingEstimate = (org: string, type: string, when: string): string => `
        select 'type'::smartqueue.prediction_source as source, mean_log, deviation_log, 1 as place
        from smartqueue.org_type_estimates
        where org_id = ${org}
          and type = ${type}
          and ${when}
        union all
        select
          case type when '' then 'default' else 'type' end::smartqueue.prediction_source, coalesce(median_log, mean_log), deviation_log,
          case type when '' then 3 else 2 end
        from smartqueue.type_estimates
        where type = any (array[${type}, ''])
          and ${when}
        order by place
        limit 1`
export const INSERT_READY = `insert into smartqueue.ready_jobs (
        org_id, job_id, series_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by
      )`
export const INSERT_PENDING = `insert into smartqueue.waiting_jobs (job_id, org_id, state, attempts, wake_at)`
export const INSERT_EVENTS = `insert into smartqueue.job_event_groups (org_id, job_ids, states, attempts, reasons, ats)`

export const where = (conditions: (string | false)[]): string => {
  const holding = conditions.filter((condition) => condition !== false)
  return holding.length > 0 ? `\n      where ${holding.join('\n        and ')}` : ''
}
