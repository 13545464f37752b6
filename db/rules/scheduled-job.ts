import type { Priority } from './priority.ts'

/** What becomes of ticks that nobody was there to fire: none of them runs, the newest does, or all do. */
export const CATCH_UPS = ['skip', 'one', 'all'] as const

export type CatchUp = (typeof CATCH_UPS)[number]

/** The job of each tick, as a schedule keeps it: with all that was left out when it was sent. */
export type ScheduledJob = {
  name: string
  type: string
  payload: Record<string, unknown>
  priority: Priority
  resources: { cpu_units: number; memory_mb: number }
  retry: { max_attempts: number; initial_delay_seconds: number; backoff_multiplier: number }
  tags: string[]
  timeout_seconds: number | null
  callback_url: string | null
  /** After the tick. */
  deadline_seconds: number | null
}

/** When the job of a tick should be done, or of one that somebody runs at that moment. */
export const deadlineOf = ({ deadline_seconds }: ScheduledJob, at: Date): string | null =>
  deadline_seconds === null ? null : new Date(at.getTime() + deadline_seconds * 1_000).toISOString()
