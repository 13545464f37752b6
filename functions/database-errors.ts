import { NOT_ENTERED } from '../db/queries/scope.ts'

/** Postgres did not answer. Whether the statement committed is not known. */
export class DatabaseUnavailable extends Error {
  constructor(cause: unknown) {
    super('The database did not answer.', { cause })
    this.name = 'DatabaseUnavailable'
  }
}

/** The database did not let the transaction in: nothing was seen, and nothing done. */
export class NotEntered extends Error {
  readonly reason: (typeof NOT_ENTERED)[keyof typeof NOT_ENTERED]

  constructor(code: keyof typeof NOT_ENTERED) {
    super(`The transaction was not let in: ${NOT_ENTERED[code]}`)
    this.name = 'NotEntered'
    this.reason = NOT_ENTERED[code]
  }
}
