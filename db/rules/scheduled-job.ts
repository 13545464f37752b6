import type { NewJob } from '../queue/job-fields.ts'

/** What becomes of ticks that nobody was there to fire: none of them runs, the newest does, or all do. */
export const CATCH_UPS = ['skip', 'one', 'all'] as const

export type CatchUp = (typeof CATCH_UPS)[number]

/** The job of each tick, as a schedule keeps it: with all that was left out when it was sent. */
export type ScheduledJob = Pick<
  NewJob,
  'name' | 'type' | 'payload' | 'priority' | 'tags' | 'timeout_seconds' | 'callback_url' | 'fairness_key'
> & {
  resources: Pick<NewJob, 'cpu_units' | 'memory_mb'>
  retry: Pick<NewJob, 'max_attempts' | 'initial_delay_seconds' | 'backoff_multiplier'>
  /** After the tick. */
  deadline_seconds: number | null
}

/** When the job of a tick should be done, or of one that somebody runs at that moment. */
export const deadlineOf = ({ deadline_seconds }: ScheduledJob, at: Date): string | null =>
  deadline_seconds === null ? null : new Date(at.getTime() + deadline_seconds * 1_000).toISOString()
