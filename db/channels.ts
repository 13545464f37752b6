/** NOTIFY channels. The payload of `JOBS_READY` is the type of a job that became ready. */
export const JOBS_READY = 'jobs_ready'
