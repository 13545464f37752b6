/** What a benchmark measured: rows for people, and the same as data. */
export type BenchReport = { rows: Record<string, string | number>[]; data: object }

/** The value that the share `p` of the samples does not exceed (nearest rank). */
export const percentile = (samples: readonly number[], p: number): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? Number.NaN
}
