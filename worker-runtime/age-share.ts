export type AgeShare = {
  /** Predicted milliseconds of work that the oldest jobs may take in a claim of so many. */
  allowanceMs(limit: number): number
  /** What a claim got, and how much of it because it was the oldest. */
  observe(claimed: { jobs: number; predictedMs: number; agedMs: number }): void
}

/** Beyond this much dispatched work the past counts half: a share of last week must not be paid today. */
const MEMORY_MS = 3_600_000

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
      if (claimed.jobs === 0) return
      totalMs += claimed.predictedMs
      agedMs += claimed.agedMs
      meanMs = claimed.predictedMs / claimed.jobs
      if (totalMs < MEMORY_MS) return
      totalMs /= 2
      agedMs /= 2
    },
  }
}
