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
  run_at: string | null
  deadline: string | null
  deadline_at_risk: boolean
  slow: boolean
  on_parent_failure: OnParentFailure
  attempts: number
  worker_id: string | null
  progress: number | null
  progress_note: string | null
  error: JobFailure | null
  created_at: string
  started_at: string | null
  finished_at: string | null
}

export type JobRow = JobSummaryRow & {
  payload: Record<string, unknown>
  depends_on: string[]
  traceparent: string | null
  result: unknown
}

export type JobFailure = { code: string; message: string }

export const getJob = (orgId: string, jobId: string): Query<JobRow> => ({
  name: 'get-job',
  text: `
    select
      s.*, j.payload, j.traceparent, f.result,
      array(select parent_id from smartqueue.job_dependencies where child_id = j.id order by parent_id) as depends_on
    from smartqueue.summarize_jobs(array[$1::uuid], array[$2::uuid]) s
    join smartqueue.jobs j on j.org_id = $1::uuid and j.id = $2::uuid
    left join smartqueue.finished_jobs f on f.org_id = $1::uuid and f.job_id = $2::uuid`,
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
