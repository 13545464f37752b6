/** Two predictors on the same executions: mean errors on the newest of them, and how sure it is that the second is better. */
export type Comparison = { executions: number; before: number; after: number; z: number }

export type Evidence = {
  add(groups: readonly string[], before: readonly number[], after: readonly number[]): Comparison
}

/** What was seen a round ago counts half: the second is trained on from round to round. */
const KEPT = 0.5
/** A group that has said no more than this is not kept in mind. */
const NEGLIGIBLE = 1e-6

/**
 * Gathers evidence from round to round. Executions of a series that were predicted from one state resemble each other: a
 * hundred of them that were submitted together prove little more than one. So gains are added up by group, and z is that of
 * these sums (a cluster-robust paired test).
 */
export const createEvidence = (): Evidence => {
  const gains = new Map<string, number>()
  return {
    add: (groups, before, after) => {
      for (const [group, gain] of gains) {
        if (Math.abs(gain) > NEGLIGIBLE) gains.set(group, KEPT * gain)
        else gains.delete(group)
      }
      groups.forEach((group, n) => {
        gains.set(group, (gains.get(group) ?? 0) + (before[n] ?? 0) - (after[n] ?? 0))
      })
      const sums = [...gains.values()]
      const squares = sum(sums.map((gain) => gain * gain))
      return {
        executions: before.length,
        before: mean(before),
        after: mean(after),
        z: squares > 0 ? sum(sums) / Math.sqrt(squares) : 0,
      }
    },
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const mean = (values: readonly number[]): number => sum(values) / Math.max(1, values.length)
