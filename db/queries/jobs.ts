import { NOTIFY_READY } from '../channels.ts'
import type { Query } from '../query.ts'
import type { JobState } from '../rules/job-states.ts'
import type { Priority } from '../rules/priority.ts'

export type NewJob = {
  id: string
  type: string
  name: string
  payload: Record<string, unknown>
  priority: Priority
  rank: number
  tags: string[]
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  run_at: string | null
}

export type JobSummaryRow = {
  id: string
  org_id: string
  created_by: string | null
  type: string
  name: string
  status: JobState
  priority: Priority
  tags: string[]
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  run_at: Date | null
  attempts: number
  worker_id: string | null
  error: JobFailure | null
  created_at: Date
  started_at: Date | null
  finished_at: Date | null
}

export type JobRow = JobSummaryRow & { payload: Record<string, unknown>; result: unknown }

export type JobFailure = { code: string; message: string }

const SUMMARY_COLUMNS = `
      id, org_id, created_by, type, name, status, priority, tags, timeout_seconds,
      max_attempts, initial_delay_seconds, backoff_multiplier,
      run_at, attempts, worker_id, error, created_at, started_at, finished_at`

/** All of the jobs or none. No rows: the submitter is no longer a member of the organisation. */
export const submitJobs = (submission: {
  orgId: string
  userId: string
  jobs: NewJob[]
}): Query<{ id: string; status: 'pending' | 'ready'; created_at: Date }> => ({
  name: 'submit-jobs',
  text: `
    with job as (
      insert into jobs (
        id, org_id, created_by, type, name, payload, priority, rank, tags, timeout_seconds,
        max_attempts, initial_delay_seconds, backoff_multiplier, run_at
      )
      select
        n.id, m.org_id, m.user_id, n.type, n.name, n.payload, n.priority, n.rank, n.tags, n.timeout_seconds,
        n.max_attempts, n.initial_delay_seconds, n.backoff_multiplier, n.run_at
      from memberships m
      cross join jsonb_to_recordset($3::jsonb) as n (
        id uuid, type text, name text, payload jsonb, priority text, rank double precision, tags text[],
        timeout_seconds integer, max_attempts integer, initial_delay_seconds double precision,
        backoff_multiplier double precision, run_at timestamptz
      )
      where m.org_id = $1::uuid
        and m.user_id = $2::uuid
      returning id, org_id, type, rank, run_at, created_at
    ),
    pending as (
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
      select id, org_id, 'pending', 0, run_at
      from job
      where run_at > now()
      returning job_id
    ),
    ready as (
      insert into ready_jobs (job_id, org_id, type, rank, attempts)
      select id, org_id, type, rank, 0
      from job
      where run_at is null or run_at <= now()
      returning job_id, type
    ),${NOTIFY_READY},
    submitted as (
      select job.id, job.org_id, job.created_at, case when p.job_id is null then 'ready' else 'pending' end as status
      from job
      left join pending p on p.job_id = job.id
    ),
    event as (
      insert into job_events (org_id, job_id, state, attempt)
      select org_id, id, status, 0
      from submitted
    )
    select id, status, created_at, (select count(*) from notified) as notified
    from submitted`,
  values: [submission.orgId, submission.userId, JSON.stringify(submission.jobs)],
})

export const getJob = (orgId: string, jobId: string): Query<JobRow> => ({
  name: 'get-job',
  text: `
    select ${SUMMARY_COLUMNS}, payload, result
    from job_overview
    where org_id = $1::uuid
      and id = $2::uuid`,
  values: [orgId, jobId],
})

/** Newest first, without payloads and results: a page stays small whatever the jobs carry. */
export const listJobs = (page: {
  orgId: string
  before: string | null
  limit: number
}): Query<JobSummaryRow> => ({
  name: 'list-jobs',
  text: `
    select ${SUMMARY_COLUMNS}
    from job_overview
    where org_id = $1::uuid
      and id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    order by id desc
    limit $3::int`,
  values: [page.orgId, page.before, page.limit],
})
