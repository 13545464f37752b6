import type { Query } from '../query.ts'

export type RetryableState = 'failed' | 'cancelled'

export type RetriedJob = { job_id: string; type: string; status: 'pending' | 'blocked' | 'ready' }

/** A row without an id means that the quota had no room for all of them. */
export type RetryRow = RetriedJob | { job_id: null; type: null; status: null }

export const isRetried = (row: RetryRow): row is RetriedJob => row.job_id !== null

/** Puts failed and cancelled jobs back into the queue, as far as the quota has room. */
export const retryJobs = (
  orgId: string,
  jobIds: readonly string[],
  states: readonly RetryableState[] = ['failed', 'cancelled'],
): Query<RetryRow> => ({
  name: 'retry-jobs',
  text: `
    select job_id, type, status
    from smartqueue.retry_jobs(p_org => $1::uuid, p_job_ids => $2::uuid[], p_states => $3::smartqueue.job_state[])`,
  values: [orgId, jobIds, states],
})
