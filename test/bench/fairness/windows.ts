/** Times in seconds on one clock. */
export type Execution = { org: string; readyS: number; startedS: number; endedS: number }

/**
 * The largest relative deviation of any organisation's worker-seconds from its share, over all windows of this length in
 * which all were backlogged: 0.1 is 10 % more or less. NaN if there was no such window.
 */
export const largestDeviation = (
  executions: readonly Execution[],
  options: { windowS: number; weights: Readonly<Record<string, number>> },
): { deviation: number; windows: number } => {
  const { windowS, weights } = options
  const orgs = Object.keys(weights)
  const total = orgs.reduce((sum, org) => sum + (weights[org] ?? 0), 0)
  const byOrg = new Map(orgs.map((org) => [org, executions.filter((job) => job.org === org)]))
  const fromS = Math.max(...[...byOrg.values()].map((jobs) => Math.min(...jobs.map(({ readyS }) => readyS))))
  const toS = Math.min(
    ...[...byOrg.values()].map((jobs) => Math.max(...jobs.map(({ startedS }) => startedS))),
  )
  let windows = 0
  let deviation = Number.NaN
  for (let startS = fromS; startS + windowS <= toS; startS += windowS / STEPS) {
    const worked = orgs.map((org) => workedBetween(byOrg.get(org) ?? [], startS, startS + windowS))
    const all = worked.reduce((sum, seconds) => sum + seconds, 0)
    const ofWindow = orgs.map((org, n) =>
      Math.abs((worked[n] ?? 0) / ((all * (weights[org] ?? 0)) / total) - 1),
    )
    deviation = Math.max(windows === 0 ? 0 : deviation, ...ofWindow)
    windows++
  }
  return { deviation, windows }
}

/** Windows overlap: this many begin within the length of one. */
const STEPS = 10

const workedBetween = (jobs: readonly Execution[], fromS: number, toS: number): number =>
  jobs.reduce(
    (sum, { startedS, endedS }) => sum + Math.max(0, Math.min(endedS, toS) - Math.max(startedS, fromS)),
    0,
  )

/** For each of these jobs, how long it was from the moment it was ready until a slot was free. */
export const untilSlotFrees = (
  jobs: readonly Execution[],
  all: readonly Execution[],
  slots: number,
): number[] => {
  const starts = Float64Array.from(all, ({ startedS }) => startedS).sort()
  const ends = Float64Array.from(all, ({ endedS }) => endedS).sort()
  return jobs.map(({ readyS }) => {
    const ended = countUpTo(ends, readyS)
    return countUpTo(starts, readyS) - ended < slots ? 0 : (ends[ended] ?? readyS) - readyS
  })
}

/** How many of the sorted values are at most this one. */
const countUpTo = (sorted: Float64Array, value: number): number => {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) <= value) low = middle + 1
    else high = middle
  }
  return low
}
