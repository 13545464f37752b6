/**
 * NOTIFY channels. Notifications are sent after the commit that they tell of, by a statement of their own, and one
 * for many: inside the transaction, NOTIFY holds a lock of the whole server across the flush, and no two commits
 * share one any more. Only a submission to a quiet system and a pause send their own. One that gets lost is covered by
 * the workers' slow poll.
 */

/** The payload is the type of jobs that became ready. */
export const JOBS_READY = 'jobs_ready'

/** The payload is the id of a worker, of whose jobs some were cancelled. */
export const JOBS_CANCELLED = 'jobs_cancelled'

/** The payload is an organisation, or one and a type: `<org_id>/<type>`. */
export const QUEUE_PAUSED = 'queue_paused'

/** A worker has nothing to do while others hold jobs that they have not started. The payload is its id. */
export const WORKER_IDLE = 'worker_idle'

/** The payload is the id of a worker that should finish its jobs and then run a suspect alone. */
export const WORKER_ISOLATES = 'worker_isolates'
