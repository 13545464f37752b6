import type { Query } from '../query.ts'
import type { LeaseKey } from './exchange.ts'

/** Renews leases, each with all of its jobs. Returns the jobs they still hold; a missing job has been lost. */
export const renewLeases = (
  tokens: readonly string[],
  leaseSeconds: number,
): Query<{ token: string; job_ids: string[] }> => ({
  name: 'renew-leases',
  text: `
    select token, job_ids
    from smartqueue.renew_leases(p_tokens => $1::bigint[], p_lease_seconds => $2::int)`,
  values: [tokens, leaseSeconds],
})

/** Gives back jobs that the worker did not finish. They are ready again, and the attempt does not count. */
export const releaseJobs = (
  held: readonly LeaseKey[],
  reason: string,
): Query<{ job_id: string; type: string }> => ({
  name: 'release-jobs',
  text: `
    select job_id, type
    from smartqueue.release_jobs(p_job_ids => $1::uuid[], p_tokens => $2::bigint[], p_reason => $3::text)`,
  values: [held.map(({ job_id }) => job_id), held.map(({ token }) => token), reason],
})

/** Writes an event for attempts that have taken longer than their p99. Returns those that are still held. */
export const reportSlowJobs = (held: readonly LeaseKey[]): Query<{ job_id: string }> => ({
  name: 'report-slow-jobs',
  text: `
    select job_id
    from smartqueue.report_slow_jobs(p_job_ids => $1::uuid[], p_tokens => $2::bigint[]) as job_id`,
  values: [held.map(({ job_id }) => job_id), held.map(({ token }) => token)],
})
