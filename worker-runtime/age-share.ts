export type AgeShare = {
  /** The oldest jobs have had less than their share: the next claim is theirs. */
  isDue(): boolean
  /** What a claim has got, in predicted milliseconds. */
  observe(order: 'rank' | 'age', predictedMs: number): void
}

/** Beyond this much dispatched work the past counts half: a share of last week must not be paid today. */
const MEMORY_MS = 108_000_000

/**
 * The starvation lane. Ordered by rank alone, a long job could wait for ever; so the oldest ready jobs get their share
 * of the work that this worker dispatches, in predicted seconds: whenever they have had less, they go first.
 */
export const createAgeShare = (share: number): AgeShare => {
  let totalMs = 0
  let agedMs = 0

  return {
    isDue: () => share === 1 || agedMs < share * totalMs,
    observe: (order, predictedMs) => {
      totalMs += predictedMs
      if (order === 'age') agedMs += predictedMs
      if (totalMs < MEMORY_MS) return
      totalMs /= 2
      agedMs /= 2
    },
  }
}
