import type { Query } from '../query.ts'
import type { OnParentFailure, PredictionSource, TriggeredBy } from '../queue/job-fields.ts'
import type { JobState } from '../rules/job-states.ts'
import type { Priority } from '../rules/priority.ts'

export type JobSummaryRow = {
  id: string
  org_id: string
  created_by: string | null
  triggered_by: TriggeredBy | null
  callback_url: string | null
  type: string
  name: string
  status: JobState
  priority: Priority
  rank: number
  predicted_ms: number
  predicted_p90_ms: number
  prediction_source: PredictionSource
  model_version: number | null
  cpu_units: number
  memory_mb: number
  tags: string[]
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  run_at: Date | null
  deadline: Date | null
  deadline_at_risk: boolean
  slow: boolean
  on_parent_failure: OnParentFailure
  attempts: number
  worker_id: string | null
  progress: number | null
  progress_note: string | null
  error: JobFailure | null
  created_at: Date
  started_at: Date | null
  finished_at: Date | null
}

export type JobRow = JobSummaryRow & {
  payload: Record<string, unknown>
  depends_on: string[]
  traceparent: string | null
  result: unknown
}

export type JobFailure = { code: string; message: string }

/** Of `job_overview`. The deadline is judged as at submission: by the 90th percentile, and by facts once there are. */
export const SUMMARY_COLUMNS = `
      id, org_id, created_by, triggered_by, callback_url, type, name, status, priority, rank, predicted_ms, predicted_p90_ms, prediction_source,
      model_version, cpu_units, memory_mb, tags, timeout_seconds, max_attempts, initial_delay_seconds,
      backoff_multiplier, run_at, deadline,
      coalesce(
        case
          when finished_at is not null then finished_at
          when started_at is not null then greatest(now(), started_at + predicted_p90_ms * interval '1 millisecond')
          else greatest(now(), run_at) + predicted_p90_ms * interval '1 millisecond'
        end > deadline,
        false
      ) as deadline_at_risk,
      coalesce(
        status = 'running' and started_at + greatest(predicted_p99_ms, 1000) * interval '1 millisecond' < now()
          and predicted_p99_ms is not null,
        false
      ) as slow,
      on_parent_failure, attempts, worker_id, progress, progress_note, error, created_at, started_at, finished_at`

export const getJob = (orgId: string, jobId: string): Query<JobRow> => ({
  name: 'get-job',
  text: `
    select ${SUMMARY_COLUMNS}, payload, traceparent, result,
      array(select parent_id from smartqueue.job_dependencies where child_id = id order by parent_id) as depends_on
    from smartqueue.job_overview
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [orgId, jobId],
})

/** Whose a job is, for an admin: one look at the primary key for each organisation. */
export const findJobOrg = (jobId: string): Query<{ org_id: string }> => ({
  name: 'find-job-org',
  text: `
    select o.id as org_id
    from smartqueue.orgs o
    cross join lateral (
      select
      from smartqueue.jobs j
      where j.org_id = o.id
        and j.id = $1::uuid
      offset 0
    ) j
    limit 1`,
  values: [jobId],
})
