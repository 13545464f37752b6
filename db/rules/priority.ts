export const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const

export type Priority = (typeof PRIORITIES)[number]

/** How much a second of waiting costs in each class, relative to `normal`. */
const WEIGHTS: Record<Priority, number> = { critical: 64, high: 8, normal: 1, low: 1 / 8 }

/**
 * The weight of the spread of a prediction (ln p90 − ln p50). The mean runtime, which decides the mean wait, lies above the
 * median, the more so the wider the spread. See docs/adr/0012-the-queue-learns.md.
 */
const SPREAD_SHARE = 0.2

/** How far a requested timeout speaks for the runtime, where there is one. */
const TIMEOUT_SHARE = 0.3

export type RankTerms = { rank_base: number; rank_slope: number }

/**
 * The order in the queue, lowest rank first: `ln(p50) − ln(weight)`, the cμ rule. A timeout blends in as
 * `p50^0.7 · timeout^0.3`. The rank is kept as a line in ln(p50), so that it can follow the series' estimate
 * while the job waits: `rank = rank_base + rank_slope · ln(p50 in ms)`. `spreadLog` is how uncertain the prediction is.
 */
export const rankTerms = (priority: Priority, timeoutSeconds: number | null, spreadLog = 0): RankTerms => {
  const weight = Math.log(WEIGHTS[priority])
  const spread = SPREAD_SHARE * spreadLog
  if (timeoutSeconds === null) return { rank_base: spread - weight, rank_slope: 1 }
  return {
    rank_base: TIMEOUT_SHARE * Math.log(timeoutSeconds * 1000) + (1 - TIMEOUT_SHARE) * spread - weight,
    rank_slope: 1 - TIMEOUT_SHARE,
  }
}

/** The rank for people, 0 to 1, highest first: a job of class `normal` that surely takes a second has 0.5. */
export const priorityScore = (rank: number): number => 1 / (1 + Math.exp(rank - Math.log(1000)))
