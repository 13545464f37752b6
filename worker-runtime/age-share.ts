import type { ClaimedJob } from '../db/queries/exchange.ts'

export type AgeShare = {
  /** Predicted milliseconds of work that the oldest jobs may take in a claim of so many. */
  allowanceMs(limit: number): number
  observe(claimed: readonly Pick<ClaimedJob, 'urgency' | 'predicted_ms'>[]): void
}

/** Beyond this much dispatched work the past counts half: a share of last week must not be paid today. */
const MEMORY_MS = 3_600_000

const AGED = 2

/**
 * The starvation lane. Ordered by rank alone, a long job could wait for ever; so the oldest ready jobs get their share
 * of the work that this worker dispatches, in predicted seconds: whenever they have had less, they go first.
 */
export const createAgeShare = (share: number): AgeShare => {
  let totalMs = 0
  let agedMs = 0
  let meanMs = 0

  return {
    allowanceMs: (limit) => Math.max(0, share * (totalMs + limit * meanMs) - agedMs),
    observe: (claimed) => {
      if (claimed.length === 0) return
      let sum = 0
      for (const { urgency, predicted_ms } of claimed) {
        sum += predicted_ms
        if (urgency === AGED) agedMs += predicted_ms
      }
      totalMs += sum
      meanMs = sum / claimed.length
      if (totalMs < MEMORY_MS) return
      totalMs /= 2
      agedMs /= 2
    },
  }
}
