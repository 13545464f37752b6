/**
 * The states of a job. The table that holds the job's row is the state; nothing stores it twice.
 *
 *   pending   its run_at has come         ▶ ready
 *   ready     a worker claims it          ▶ running
 *   running   the handler is done         ▶ completed
 *   running   it failed, attempts left    ▶ retrying
 *   running   it failed for good          ▶ failed
 *   running   the worker gives it back    ▶ ready
 *   running   the lease ran out           ▶ ready, or failed without attempts left
 *   retrying  its backoff is over         ▶ ready
 */
export const JOB_STATES = ['pending', 'ready', 'running', 'retrying', 'completed', 'failed'] as const

export type JobState = (typeof JOB_STATES)[number]
