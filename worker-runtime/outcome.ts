import type { JobFailure } from '../db/queries/jobs.ts'
import type { ClaimedJob, EndedAttempt } from '../db/queries/leases.ts'
import { retryDelayMs } from '../db/rules/retry.ts'
import { JobError } from './handler-api.ts'

/** How one execution ended, before it is decided what that means for the job. */
export type Outcome =
  | { kind: 'done'; result: unknown }
  | { kind: 'failed'; error: JobFailure; permanent: boolean }
  /** The worker stops and the job did not finish: someone else starts over. */
  | { kind: 'released' }
  /** The job belongs to someone else by now. */
  | { kind: 'lost' }

/** Why a running handler is told to stop. The reason of its `AbortSignal`. */
export class ExecutionAborted extends Error {
  readonly why: 'timeout' | 'lease_lost' | 'shutdown'

  constructor(why: ExecutionAborted['why'], message: string) {
    super(message)
    this.name = 'ExecutionAborted'
    this.why = why
  }
}

const MAX_ERROR_CHARACTERS = 4_000

/** What a thrown value says. An abort speaks louder than whatever the handler threw because of it. */
export const outcomeOfThrow = (thrown: unknown, aborted: ExecutionAborted | undefined): Outcome => {
  if (aborted) return outcomeOfAbort(aborted)
  const code = thrown instanceof JobError ? thrown.code : 'handler_error'
  const error = { code: textOf(code), message: messageOf(thrown).slice(0, MAX_ERROR_CHARACTERS) }
  return { kind: 'failed', error, permanent: thrown instanceof JobError && thrown.permanent }
}

const messageOf = (thrown: unknown): string => textOf(thrown instanceof Error ? thrown.message : thrown)

/** Handlers may throw anything, also what has no text form. */
const textOf = (value: unknown): string => {
  try {
    return String(value)
  } catch {
    return 'The handler threw something that cannot be described.'
  }
}

export const outcomeOfAbort = (aborted: ExecutionAborted): Outcome => {
  switch (aborted.why) {
    case 'timeout':
      return { kind: 'failed', error: { code: 'timeout', message: aborted.message }, permanent: false }
    case 'lease_lost':
      return { kind: 'lost' }
    case 'shutdown':
      return { kind: 'released' }
  }
}

/** The state that a finished or failed attempt puts its job in. */
export const endAttempt = (
  job: ClaimedJob,
  outcome: Extract<Outcome, { kind: 'done' | 'failed' }>,
  random: () => number,
): EndedAttempt => {
  const key = { job_id: job.job_id, token: job.token }
  if (outcome.kind === 'done') return { ...key, state: 'completed', result: outcome.result }
  const policy = {
    maxAttempts: job.max_attempts,
    initialDelaySeconds: job.initial_delay_seconds,
    backoffMultiplier: job.backoff_multiplier,
  }
  const delay_ms = outcome.permanent ? null : retryDelayMs(policy, job.attempt, random)
  if (delay_ms === null) return { ...key, state: 'failed', error: outcome.error }
  return { ...key, state: 'retrying', error: outcome.error, delay_ms }
}
