export type BenchOptions = {
  /** Tells a person how far it is. */
  readonly say: (line: string) => void
  /** Small sizes: whether it runs, not how fast. */
  readonly quick: boolean
  /** The folder with histories of other systems. */
  readonly traces: string
  /** A checkout of an earlier commit, to be measured beside this one. */
  readonly before?: string | undefined
  /** For api: hold this rate for this many seconds instead. */
  readonly steady?: { seconds: number; rate: number } | undefined
}

/** What a benchmark measured: a table or several for people, and the same as data. */
export type BenchReport = { text: string; data: object }

export type Bench = (options: BenchOptions) => Promise<BenchReport>

/** The value that the share `p` of the samples does not exceed (nearest rank). */
export const percentile = (samples: readonly number[], p: number): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? Number.NaN
}
