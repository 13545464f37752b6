/**
 * The states of a job. The table that holds the job's row is the state; nothing stores it twice.
 *
 *   (submitted)                                ▶ ready, pending or blocked
 *   pending   its run_at has come              ▶ ready
 *   blocked   its last parent completed        ▶ ready, or pending until its run_at
 *   blocked   a parent failed or was cancelled ▶ failed, unless it waits for that parent
 *   ready     a worker starts it               ▶ running
 *   running   the handler is done              ▶ completed
 *   running   it failed, attempts left         ▶ retrying
 *   running   it failed for good               ▶ failed
 *   running   the handler asks for later       ▶ pending, and the try does not count
 *   running   the worker gives it back         ▶ ready, and the try does not count
 *   running   the lease ran out                ▶ ready, or failed without attempts left
 *   retrying  its backoff is over              ▶ ready
 *   any of these, but not a finished one       ▶ cancelled
 *   failed, cancelled   someone retries it     ▶ ready, with its attempts to spend again
 */
export const JOB_STATES = [
  'pending',
  'blocked',
  'ready',
  'running',
  'retrying',
  'completed',
  'failed',
  'cancelled',
] as const

export type JobState = (typeof JOB_STATES)[number]

export const FINISHED_STATES = ['completed', 'failed', 'cancelled'] as const satisfies readonly JobState[]

export const isFinished = (state: JobState): boolean => FINISHED_STATES.some((finished) => finished === state)
