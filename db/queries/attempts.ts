import type { Page, Query } from '../query.ts'
import type { JobFailure } from './jobs.ts'

export const ATTEMPT_OUTCOMES = [
  'running',
  'completed',
  'failed',
  'lost',
  'snoozed',
  'cancelled',
  'given_back',
] as const

/** The columns of an attempt are null in the one row that a job without attempts answers; no row means no such job. */
export type AttemptRow = {
  id: string | null
  attempt: number
  outcome: (typeof ATTEMPT_OUTCOMES)[number]
  error: JobFailure | null
  worker_id: string
  started_at: string
  finished_at: string | null
  runtime_ms: number | null
}

/** Oldest first, then the attempt that finished the job or runs. Attempts of a retried job count from 1 again. */
export const listAttempts = (page: Page & { orgId: string; jobId: string }): Query<AttemptRow> => ({
  name: 'list-attempts',
  text: `
    select
      tried.id, tried.attempt, tried.outcome, tried.error, tried.worker_id, tried.started_at, tried.finished_at,
      coalesce(
        tried.runtime_ms,
        extract(epoch from tried.finished_at - tried.started_at)::double precision * 1000
      ) as runtime_ms
    from smartqueue.jobs j
    left join lateral (
      select a.id, a.attempt, a.outcome, a.error, a.worker_id, a.started_at, a.finished_at, null as runtime_ms
      from smartqueue.attempts a
      where a.org_id = j.org_id
        and a.job_id = j.id
      union all
      select
        9223372036854775806, f.attempts,
        case when f.state = 'failed' and f.error ->> 'code' = 'worker_lost' then 'lost' else f.state::text end, f.error,
        f.worker_id, f.started_at, f.finished_at, f.runtime_ms
      from smartqueue.finished_jobs f
      where f.org_id = j.org_id
        and f.job_id = j.id
        and f.started_at is not null
      union all
      select 9223372036854775807, l.attempt, 'running', null, l.worker_id, l.started_at, null, null
      from smartqueue.held_jobs l
      where l.org_id = j.org_id
        and l.job_id = j.id
      order by id
    ) tried on tried.id > coalesce($3::bigint, 0)
    where j.org_id = $1::uuid
      and j.id = $2::uuid
    order by tried.id
    limit $4::int`,
  values: [page.orgId, page.jobId, page.after, page.limit],
})
