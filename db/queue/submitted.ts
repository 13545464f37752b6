import type { Query } from '../query.ts'
import type { NewJob } from './job-fields.ts'
import type { SubmittedJob } from './submit.ts'

/** What `submitJobs` returned, or would have returned, for jobs that were submitted together. */
export const findSubmitted = (
  orgId: string,
  jobIds: readonly string[],
): Query<
  SubmittedJob & Pick<NewJob, 'triggered_by' | 'traceparent' | 'depends_on'> & { created_by: string | null }
> => ({
  name: 'find-submitted',
  text: `
    select
      1 as submission, id, type, created_by, triggered_by, traceparent,
      array(select parent_id from smartqueue.job_dependencies where child_id = id order by parent_id) as depends_on,
      case
        when status = 'blocked' then status
        when run_at > created_at then 'pending'
        else 'ready'
      end as status,
      created_at,
      predicted_ms, predicted_p90_ms, prediction_source, model_version, promised_wait_ms, rank,
      coalesce(
        deadline - predicted_p90_ms * interval '1 millisecond' < greatest(created_at, run_at),
        false
      ) as deadline_at_risk,
      false as announced
    from smartqueue.job_overview
    where org_id = $1::uuid
      and id = any ($2::uuid[])`,
  values: [orgId, jobIds],
})

export const findIdempotencyKeys = (
  orgId: string,
  keys: readonly string[],
): Query<{ key: string; body_hash: string; job_ids: string[] }> => ({
  name: 'find-idempotency-keys',
  text: `
    select key, encode(body_hash, 'hex') as body_hash, job_ids
    from smartqueue.idempotency_keys
    where org_id = $1::uuid
      and key = any ($2::text[])
      and expires_at > now()
    order by key`,
  values: [orgId, keys],
})
