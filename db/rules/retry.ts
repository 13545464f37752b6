export type RetryPolicy = {
  readonly maxAttempts: number
  readonly initialDelaySeconds: number
  readonly backoffMultiplier: number
}

export const DEFAULT_RETRY: RetryPolicy = { maxAttempts: 3, initialDelaySeconds: 5, backoffMultiplier: 2 }

/** An hour: a backoff beyond it only hides that a job is not coming back. */
const MAX_DELAY_SECONDS = 3600

/**
 * Milliseconds until the next attempt, or null if there is none left.
 * Full jitter: jobs that failed together do not come back together.
 */
export const retryDelayMs = (policy: RetryPolicy, attempt: number, random: () => number): number | null => {
  if (attempt >= policy.maxAttempts) return null
  const backoff = policy.initialDelaySeconds * policy.backoffMultiplier ** (attempt - 1)
  return Math.round(random() * Math.min(backoff, MAX_DELAY_SECONDS) * 1000)
}
