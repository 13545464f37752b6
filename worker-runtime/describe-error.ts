/**
 * Reads values that handlers throw, log or report. They may be anything: an error whose `message` getter
 * throws, a revoked proxy, an object that cannot be converted to a string. Nothing in this file throws, and
 * all code that reads such a value goes through it.
 */

const UNREADABLE = 'An unreadable value.'

/** Returns the result of `read`, or `otherwise` if it throws. */
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

/** Describes the error in one line. A refused connection is an AggregateError without its own message. */
export const describeError = (error: unknown, unreadable = UNREADABLE): string =>
  safely(() => {
    if (error instanceof AggregateError) return error.errors.map((one) => describeError(one)).join('; ')
    return String(error instanceof Error ? error.message : error)
  }, unreadable)
