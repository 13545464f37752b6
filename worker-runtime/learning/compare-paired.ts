/** Two predictors on the same executions: mean errors, and how sure it is that the second is better. */
export type Comparison = { executions: number; before: number; after: number; z: number }

export const comparePaired = (before: readonly number[], after: readonly number[]): Comparison => {
  const n = before.length
  const gains = before.map((error, i) => error - (after[i] ?? 0))
  const gain = mean(gains)
  const variance = mean(gains.map((one) => (one - gain) ** 2))
  return {
    executions: n,
    before: mean(before),
    after: mean(after),
    z: variance > 0 ? gain / Math.sqrt(variance / n) : 0,
  }
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
