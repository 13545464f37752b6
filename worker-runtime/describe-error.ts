/** What went wrong, in one line. A refused connection comes as several errors in one, without a message of its own. */
export const describeError = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(describeError).join('; ')
  return error instanceof Error ? error.message : String(error)
}
