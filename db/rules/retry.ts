export type RetryPolicy = {
  readonly maxAttempts: number
  readonly initialDelaySeconds: number
  readonly backoffMultiplier: number
}

export const DEFAULT_RETRY: RetryPolicy = { maxAttempts: 3, initialDelaySeconds: 5, backoffMultiplier: 2 }

/** An hour: a backoff beyond it only hides that a job is not coming back. */
const MAX_DELAY_SECONDS = 3600

/** What a handler asks for, because a server asked for it (Retry-After), is believed up to a day. */
const MAX_NOT_BEFORE_MS = 86_400_000

/**
 * Milliseconds until the next attempt, or null if there is none left.
 * Full jitter: jobs that failed together do not come back together. It comes on top of what the handler asks for: a
 * server that turns many away tells all of them the same.
 */
export const retryDelayMs = (
  policy: RetryPolicy,
  attempt: number,
  { random, notBeforeMs = 0 }: { random: () => number; notBeforeMs?: number | undefined },
): number | null => {
  if (attempt >= policy.maxAttempts) return null
  const backoff = policy.initialDelaySeconds * policy.backoffMultiplier ** (attempt - 1)
  const asked = Math.min(Math.max(notBeforeMs || 0, 0), MAX_NOT_BEFORE_MS)
  return Math.round(asked + random() * Math.min(backoff, MAX_DELAY_SECONDS) * 1000)
}
