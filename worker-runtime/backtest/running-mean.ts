/** The plain mean of all that was seen, and how far it lay from it on average. */
export type RunningMean = { mean(): number | undefined; deviation(): number; add(log: number): void }

export const createRunningMean = (): RunningMean => {
  let [count, mean, deviation] = [0, 0, 0]
  return {
    mean: () => (count > 0 ? mean : undefined),
    deviation: () => deviation,
    add: (log) => {
      count++
      deviation += (Math.abs(log - mean) - deviation) / count
      mean += (log - mean) / count
    },
  }
}

/** One for each key. */
export const createRunningMeans = () => {
  const means = new Map<string, RunningMean>()
  return (key: string): RunningMean => {
    const known = means.get(key) ?? createRunningMean()
    means.set(key, known)
    return known
  }
}
