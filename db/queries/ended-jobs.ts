import type { Query } from '../query.ts'
import type { TriggeredBy } from '../queue/job-fields.ts'
import type { EndedJob } from './callback-outbox.ts'
import type { JobFailure } from './jobs.ts'

/** What a body tells of a job, beside its end. */
export type ToldJob = {
  /** Position of its event among those that were asked for, from 1. */
  n: number
  name: string
  type: string
  tags: string[]
  triggered_by: TriggeredBy | null
  traceparent: string | null
  created_at: string
  started_at: string | null
  result: unknown
  result_omitted: boolean
  error: JobFailure | null
}

/** A larger result is not sent along: the receiver may fetch it. */
const MAX_RESULT_BYTES = 64 * 1024

/** The jobs of events; no row if the job is gone. If it was retried since, this end is among its attempts. */
export const describeEndedJobs = (
  events: readonly Pick<EndedJob, 'org_id' | 'job_id' | 'at'>[],
): Query<ToldJob> => ({
  name: 'describe-ended-jobs',
  text: `
    select
      e.n::int, j.name, j.type, j.tags, j.triggered_by, j.traceparent, j.created_at, coalesce(f.started_at, a.started_at) as started_at,
      case when f.bytes <= $4::int then f.result end as result,
      coalesce(f.bytes > $4::int, false) as result_omitted,
      coalesce(f.error, a.error) as error
    from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) with ordinality as e (org_id, job_id, at, n)
    cross join lateral (
      select name, type, tags, triggered_by, traceparent, created_at
      from smartqueue.jobs
      where org_id = e.org_id
        and id = e.job_id
      offset 0
    ) j
    left join lateral (
      select started_at, result, octet_length(result::text) as bytes, error
      from smartqueue.finished_jobs
      where org_id = e.org_id
        and job_id = e.job_id
        and finished_at = e.at
      offset 0
    ) f on true
    left join lateral (
      select started_at, error
      from smartqueue.attempts
      where org_id = e.org_id
        and job_id = e.job_id
        and finished_at = e.at
      order by id desc
      limit 1
    ) a on true`,
  values: [
    events.map(({ org_id }) => org_id),
    events.map(({ job_id }) => job_id),
    events.map(({ at }) => at),
    MAX_RESULT_BYTES,
  ],
})
