import type { Query } from '../query.ts'
import type { NewJob, PredictionSource } from '../queue/job-fields.ts'
import type { JobState } from '../rules/job-states.ts'

/** Fields of a submitted job that a list does not show, or shows what was made of them. */
type UnlistedField = 'payload' | 'depends_on' | 'traceparent' | 'rank_base' | 'rank_slope' | 'prediction'

export type JobSummaryRow = Omit<NewJob, UnlistedField> & {
  org_id: string
  created_by: string | null
  status: JobState
  rank: number
  predicted_ms: number
  predicted_p90_ms: number
  prediction_source: PredictionSource
  model_version: number | null
  deadline_at_risk: boolean
  slow: boolean
  attempts: number
  worker_id: string | null
  progress: number | null
  progress_note: string | null
  error: JobFailure | null
  created_at: string
  started_at: string | null
  finished_at: string | null
}

export type JobRow = JobSummaryRow &
  Pick<NewJob, 'payload' | 'depends_on' | 'traceparent'> & { result: unknown }

export type JobFailure = { code: string; message: string }

export const getJob = (orgId: string, jobId: string): Query<JobRow> => ({
  name: 'get-job',
  text: `
    select *
    from smartqueue.job_details
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
