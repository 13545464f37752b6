export type RetryPolicy = {
  readonly maxAttempts: number
  readonly initialDelaySeconds: number
  readonly backoffMultiplier: number
}

export const DEFAULT_RETRY: RetryPolicy = { maxAttempts: 3, initialDelaySeconds: 5, backoffMultiplier: 2 }
