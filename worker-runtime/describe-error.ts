/**
 * Reads values that handlers throw, log or report. They may be anything: an error whose `message` is a getter that
 * throws, a revoked proxy, an object without a text form. Nothing in this file throws, and everything that reads such
 * a value goes through it.
 */

const UNREADABLE = 'A value that cannot be read.'

/** What `read` answers, or `otherwise` if it throws. */
export const safely = <Value>(read: () => Value, otherwise: Value): Value => {
  try {
    return read()
  } catch {
    return otherwise
  }
}

export const isInstance = <Class extends abstract new (...args: never[]) => unknown>(
  value: unknown,
  type: Class,
): value is InstanceType<Class> => safely(() => value instanceof type, false)

export const textOf = (value: unknown, unreadable = UNREADABLE): string =>
  safely(() => String(value), unreadable)

/** What went wrong, in one line. A refused connection comes as several errors in one, without a message of its own. */
export const describeError = (error: unknown, unreadable = UNREADABLE): string =>
  safely(() => {
    if (error instanceof AggregateError) return error.errors.map((one) => describeError(one)).join('; ')
    return String(error instanceof Error ? error.message : error)
  }, unreadable)
