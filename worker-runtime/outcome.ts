import type { JobFailure } from '../db/queries/jobs.ts'
import type { EndedAttempt, HeldKey } from '../db/queue/exchange.ts'
import { TIMEOUT } from '../db/rules/estimate.ts'
import { describeError, isInstance, safely } from './describe-error.ts'
import { JobError } from './handler-api.ts'
import { toStorableText } from './storable-json.ts'

/** How one execution ended, before it is decided what that means for the job. */
export type Outcome =
  | { kind: 'done'; resultJson: string | null }
  | { kind: 'snoozed'; ms: number }
  /** `retryAfterMs`: the handler knows that it is of no use sooner. */
  | { kind: 'failed'; error: JobFailure; permanent: boolean; retryAfterMs?: number }
  /** The worker stops and the job did not finish: someone else starts over. */
  | { kind: 'released' }
  /** The job belongs to someone else by now, or to nobody: it was cancelled. */
  | { kind: 'lost'; cancelled: boolean }

/** Why a running handler is told to stop. The reason of its `AbortSignal`. */
export class ExecutionAborted extends Error {
  readonly why: 'timeout' | 'lease_lost' | 'cancelled' | 'shutdown'

  constructor(why: ExecutionAborted['why'], message: string) {
    super(message)
    this.name = 'ExecutionAborted'
    this.why = why
  }
}

/** A handler threw in a thread, and what that says was read there. */
export class ThrownInThread extends Error {
  readonly outcome: EndedOutcome

  constructor(outcome: EndedOutcome) {
    super('The handler threw in its thread.')
    this.name = 'ThrownInThread'
    this.outcome = outcome
  }
}

const MAX_ERROR_CHARACTERS = 4_000

/** What a thrown value says. An abort speaks louder than whatever the handler threw because of it. */
export const outcomeOfThrow = (thrown: unknown, aborted: ExecutionAborted | undefined): Outcome =>
  aborted ? outcomeOfAbort(aborted) : readThrown(thrown)

/**
 * Handlers may throw anything. Each field is read separately, so that an unreadable one does not hide the
 * others.
 */
export const readThrown = (thrown: unknown): EndedOutcome => {
  if (isInstance(thrown, ThrownInThread)) return thrown.outcome
  const message = storable(describeError(thrown, INDESCRIBABLE))
  if (!isInstance(thrown, JobError)) {
    return { kind: 'failed', error: { code: HANDLER_ERROR, message }, permanent: false }
  }
  const code = storable(safely(() => String(thrown.code), HANDLER_ERROR))
  // What ran into its timeout teaches that it takes at least as long; what a handler calls so does not.
  const error = { code: code === TIMEOUT ? 'handler_timeout' : code, message }
  const permanent = safely(() => Boolean(thrown.permanent), false)
  const retryAfterSeconds = safely(() => Number(thrown.retryAfterSeconds), 0)
  if (!retryAfterSeconds) return { kind: 'failed', error, permanent }
  return { kind: 'failed', error, permanent, retryAfterMs: retryAfterSeconds * 1000 }
}

const HANDLER_ERROR = 'handler_error'
const INDESCRIBABLE = 'The handler threw an unreadable value.'

const storable = (text: string): string => toStorableText(text, MAX_ERROR_CHARACTERS)

export const outcomeOfAbort = (aborted: ExecutionAborted): Outcome => {
  switch (aborted.why) {
    case 'timeout':
      return { kind: 'failed', error: { code: TIMEOUT, message: aborted.message }, permanent: false }
    case 'lease_lost':
    case 'cancelled':
      return { kind: 'lost', cancelled: aborted.why === 'cancelled' }
    case 'shutdown':
      return { kind: 'released' }
  }
}

export type EndedOutcome = Extract<Outcome, { kind: 'done' | 'snoozed' | 'failed' }>

/** How an attempt is reported. The database decides what becomes of its job. */
export const endAttempt = (key: HeldKey, outcome: EndedOutcome, ranMs: number): EndedAttempt => {
  const { job_id, token, org_id, series_id, attempt } = key
  const end = { job_id, token, org_id, series_id, attempt, ranMs }
  switch (outcome.kind) {
    case 'done':
      return { ...end, outcome: 'completed', resultJson: outcome.resultJson }
    case 'snoozed':
      return { ...end, outcome: 'snoozed', delayMs: outcome.ms }
    case 'failed': {
      const { error, permanent, retryAfterMs } = outcome
      return { ...end, outcome: 'failed', error, permanent, retryAfterMs }
    }
  }
}
