/** How many jobs all workers together had run, over time: what the 50 ms reports of the workers add up to. */
export type Curve = {
  record(worker: number, atMs: number, done: number): void
  total(): number
  /** When the n-th job had run, between two reports by interpolation; NaN if it has not. */
  timeOf(n: number): number
  /** Resolves as soon as so many have run. */
  until(n: number): Promise<void>
}

export const createCurve = (): Curve => {
  const latest = new Map<number, number>()
  const points: { atMs: number; total: number }[] = []
  let waiting: { n: number; resolve: () => void }[] = []
  const total = (): number => points.at(-1)?.total ?? 0

  return {
    total,
    record: (worker, atMs, done) => {
      latest.set(worker, done)
      const sum = [...latest.values()].reduce((a, b) => a + b, 0)
      // Reports of two processes may arrive in the wrong order by a moment.
      points.push({ atMs: Math.max(atMs, points.at(-1)?.atMs ?? 0), total: sum })
      const reached = waiting.filter(({ n }) => sum >= n)
      waiting = waiting.filter(({ n }) => sum < n)
      for (const { resolve } of reached) resolve()
    },
    timeOf: (n) => {
      const index = points.findIndex((point) => point.total >= n)
      const after = points[index]
      const before = points[index - 1]
      if (!after) return Number.NaN
      if (!before || after.total === before.total) return after.atMs
      return before.atMs + ((n - before.total) / (after.total - before.total)) * (after.atMs - before.atMs)
    },
    until: (n) =>
      new Promise((resolve) => {
        if (total() >= n) resolve()
        else waiting.push({ n, resolve })
      }),
  }
}

/** Jobs per second between two shares of what was measured. */
export const rateBetween = (curve: Curve, jobs: number, from: number, to: number): number => {
  const seconds = (curve.timeOf(jobs * to) - curve.timeOf(jobs * from)) / 1000
  return (jobs * (to - from)) / seconds
}
