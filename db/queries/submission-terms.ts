/** Of the columns of a job. */
export const RANK = `rank_base + rank_slope * ln(predicted_ms)`
export const START_BY = `deadline - predicted_p90_ms * interval '1 millisecond'`

export const INSERT_JOBS = `insert into jobs (
        org_id, id, created_by, stream_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
        predicted_ms, predicted_p90_ms, prediction_source, rank_base, rank_slope
      )`
export const INSERT_READY = `insert into ready_jobs (
        org_id, job_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by
      )`
export const INSERT_PENDING = `insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)`
export const INSERT_EVENTS = `insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)`

export const where = (conditions: (string | false)[]): string => {
  const holding = conditions.filter((condition) => condition !== false)
  return holding.length > 0 ? `\n      where ${holding.join('\n        and ')}` : ''
}
