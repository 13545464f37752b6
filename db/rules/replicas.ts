/**
 * From what is asked for to how many there are: the rules by which Kubernetes' HorizontalPodAutoscaler moves, as the manifests
 * in k8s/ set them. `npm run dev` and the simulation go by them, too.
 */

export const SCALING_BEHAVIOUR = {
  /** How often it looks. */
  syncSeconds: 15,
  /** What is asked for may differ so much from what is there, and nothing is done. */
  tolerance: 0.1,
  up: { stabilizationWindowSeconds: 0, pods: 4, periodSeconds: 15 },
  /** Down by one a minute, and only below what was asked for at any time in the last two. */
  down: { stabilizationWindowSeconds: 120, pods: 1, periodSeconds: 60 },
} as const

export type ReplicaRange = { min: number; max: number }

export type ReplicaScaler = {
  /** How many there should be now. `needed` undefined: nothing is known, and all stays as it is. */
  next(look: { nowSeconds: number; current: number; needed: readonly number[] | undefined }): number
}

type Moment = { at: number; replicas: number }

/** One for each pool: it remembers what it has recommended and done. */
export const createReplicaScaler = (
  { min, max }: ReplicaRange,
  behaviour: typeof SCALING_BEHAVIOUR = SCALING_BEHAVIOUR,
): ReplicaScaler => {
  const { up, down } = behaviour
  let recommended: Moment[] = []
  /** Changes, up above nought. */
  let changes: Moment[] = []

  const changedSince = (at: number, sign: 1 | -1): number =>
    changes.reduce((sum, one) => sum + (one.at > at && one.replicas * sign > 0 ? one.replicas * sign : 0), 0)

  const limit = (wanted: number, current: number, now: number): number => {
    if (wanted > current) {
      const room = Math.max(0, up.pods - changedSince(now - up.periodSeconds, 1))
      return Math.min(wanted, current + room)
    }
    const room = Math.max(0, down.pods - changedSince(now - down.periodSeconds, -1))
    return Math.max(wanted, current - room)
  }

  return {
    next: ({ nowSeconds: now, current, needed }) => {
      const within = Math.min(Math.max(current, min), max)
      if (needed === undefined) return within
      const proposed = Math.max(...needed.map((one) => proposal(one, current, behaviour.tolerance)))
      const wanted = Math.min(Math.max(proposed, min), max)
      recommended = [
        ...recommended.filter(({ at }) => at > now - down.stabilizationWindowSeconds),
        { at: now, replicas: wanted },
      ]
      const held = Math.max(...recommended.map(({ replicas }) => replicas))
      const stable = wanted < current ? Math.min(held, current) : wanted
      const next = Math.min(Math.max(limit(stable, current, now), min), max)
      changes = changes.filter(({ at }) => at > now - Math.max(up.periodSeconds, down.periodSeconds))
      if (next !== current) changes.push({ at: now, replicas: next - current })
      return next
    },
  }
}

/** What one metric asks for. */
const proposal = (needed: number, current: number, tolerance: number): number =>
  current > 0 && Math.abs(needed / current - 1) <= tolerance ? current : Math.ceil(needed)
