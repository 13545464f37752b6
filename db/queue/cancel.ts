import type { Query } from '../query.ts'

/** `worker_id`: the worker that holds the job and must stop it. */
export type CancelledJob = { job_id: string; worker_id: string | null }

/** The result leaves out finished jobs and jobs that moved in the meantime: try those again. */
export const cancelJobs = (orgId: string, jobIds: readonly string[]): Query<CancelledJob> => ({
  name: 'cancel-jobs',
  text: `
    select job_id, worker_id
    from smartqueue.cancel_jobs(p_org => $1::uuid, p_job_ids => $2::uuid[])`,
  values: [orgId, jobIds],
})
