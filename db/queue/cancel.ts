import type { Query } from '../query.ts'

/** `worker_id`: who holds the job and must let go of it. */
export type CancelledJob = { job_id: string; worker_id: string | null }

/** Finished jobs are not in the answer, and neither is a job that moved meanwhile: try again. */
export const cancelJobs = (orgId: string, jobIds: readonly string[]): Query<CancelledJob> => ({
  name: 'cancel-jobs',
  text: `
    select job_id, worker_id
    from smartqueue.cancel_jobs(p_org => $1::uuid, p_job_ids => $2::uuid[])`,
  values: [orgId, jobIds],
})
