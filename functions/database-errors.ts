import { NOT_ENTERED } from '../db/queries/scope.ts'

/**
 * The database cannot serve the request now. With `rolledBack`, Postgres itself reported the failure and
 * nothing was committed. Otherwise it did not respond, and the outcome of the transaction is unknown.
 */
export class DatabaseUnavailable extends Error {
  readonly rolledBack: boolean

  constructor(reason: string, options: { rolledBack: boolean; cause?: unknown }) {
    super(reason, { cause: options.cause })
    this.name = 'DatabaseUnavailable'
    this.rolledBack = options.rolledBack
  }
}

/**
 * Wraps work that follows a commit in the same request: its failure must not claim that nothing was
 * committed.
 */
export const afterCommit = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    if (!(error instanceof DatabaseUnavailable)) throw error
    throw new DatabaseUnavailable(error.message, { rolledBack: false, cause: error })
  })

/** The database did not let the transaction in: nothing was seen, and nothing done. */
export class NotEntered extends Error {
  readonly reason: (typeof NOT_ENTERED)[keyof typeof NOT_ENTERED]

  constructor(code: keyof typeof NOT_ENTERED) {
    super(`The transaction was not let in: ${NOT_ENTERED[code]}`)
    this.name = 'NotEntered'
    this.reason = NOT_ENTERED[code]
  }
}
