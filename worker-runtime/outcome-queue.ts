import type { JobFailure } from '../db/queries/jobs.ts'
import type { ClaimedJob, EndState } from '../db/queue/exchange.ts'
import { isRecorded, isRefused } from './database.ts'
import { describe, type HeldJob, type HeldJobs } from './held-jobs.ts'
import type { Logger } from './logger.ts'

/**
 * Outcomes on their way to the database, from the end of an attempt until they are stored. However long that
 * takes, an outcome is kept and its lease renewed until the database has answered: only the database knows
 * whether the lease is still alive.
 */
export type OutcomeQueue = {
  add(held: HeldJob): void
  /** Those to send together. */
  take(): HeldJob[]
  isEmpty(): boolean
  /** The database has answered: a state for each outcome, null if its lease was lost. */
  settle(group: readonly HeldJob[], states: readonly EndState[]): void
  /** It has not, or refuses something of the group. Throws the error if it is none of the outcomes' fault. */
  putBack(group: readonly HeldJob[], error: Error): void
}

const MAX_GROUP = 1_000

const UNSTORABLE_RESULT: JobFailure = {
  code: 'unstorable_result',
  message: 'The result of the handler cannot be stored as JSON.',
}
const UNSTORABLE_ERROR: JobFailure = {
  code: 'unstorable_error',
  message: 'The handler failed, and its error cannot be stored.',
}
const UNSTORABLE = [UNSTORABLE_RESULT, UNSTORABLE_ERROR]

export const createOutcomeQueue = (options: {
  jobs: HeldJobs
  logger: Logger
  onRecorded: (held: HeldJob, state: NonNullable<EndState>) => void
  /** The outcome came too late, or cannot be stored at all. */
  onLost: (job: ClaimedJob) => void
  onError: (error: Error) => void
}): OutcomeQueue => {
  const { jobs, logger } = options
  let waiting: HeldJob[] = []
  /** Outcomes of a group that Postgres refused: sent one by one, to find the one it objects to. */
  const refused: HeldJob[] = []

  const settle: OutcomeQueue['settle'] = (group, states) => {
    for (const [n, held] of group.entries()) {
      const state = states[n]
      jobs.letGo(held)
      if (state) options.onRecorded(held, state)
      else {
        logger.warn('lease lost, outcome dropped', describe(held.job))
        options.onLost(held.job)
      }
    }
  }

  const putBack: OutcomeQueue['putBack'] = (group, error) => {
    if (isRefused(error) && group.length > 0) examine(group, error)
    else {
      waiting = [...group, ...waiting]
      throw error
    }
  }

  const examine = (group: readonly HeldJob[], error: Error): void => {
    const [only] = group
    if (only && group.length === 1 && isRecorded(error)) {
      // The answer to the first try got lost, and now it is found to be recorded.
      jobs.letGo(only)
      return
    }
    options.onError(error)
    refused.push(...group.flatMap((held) => (group.length > 1 ? [held] : withoutContents(held))))
  }

  /** The result or the error is what Postgres objects to: the job fails for it. Then there is nothing left to leave out. */
  const withoutContents = (held: HeldJob): HeldJob[] => {
    const { outcome } = held
    if (outcome?.kind === 'done') held.outcome = { kind: 'failed', error: UNSTORABLE_RESULT, permanent: true }
    else if (outcome?.kind === 'failed' && !UNSTORABLE.includes(outcome.error)) {
      held.outcome = { ...outcome, error: UNSTORABLE_ERROR }
    } else {
      logger.error('the outcome cannot be stored', describe(held.job))
      jobs.abandon(held)
      options.onLost(held.job)
      return []
    }
    return [held]
  }

  return {
    add: (held) => {
      waiting.push(held)
    },
    take: () => (refused.length > 0 ? refused.splice(0, 1) : waiting.splice(0, MAX_GROUP)).filter(jobs.holds),
    isEmpty: () => waiting.length === 0 && refused.length === 0,
    settle,
    putBack,
  }
}
