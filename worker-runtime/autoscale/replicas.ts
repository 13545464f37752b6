/**
 * From what is asked for to how many there are: the rules by which Kubernetes' HorizontalPodAutoscaler moves, as the manifests
 * in k8s/ set them. `npm run dev` and the simulation go by them, too. As in its controller (horizontal.go, autoscaling/v2):
 *
 * 1. Each metric proposes ⌈needed⌉, or what is there if that is within the tolerance of it. The greatest proposal counts.
 * 2. Down it goes only as far as the greatest proposal of the stabilisation window, and up only as far as the least.
 * 3. A policy allows so many changes in a period, reckoned from how many there were when that began.
 * 4. What lies outside of the range is brought into it at once, whatever the policies say.
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

  const atStartOf = (periodSeconds: number, current: number, now: number): number =>
    current - changes.reduce((sum, { at, replicas }) => sum + (at > now - periodSeconds ? replicas : 0), 0)

  const limit = (wanted: number, current: number, now: number): number => {
    if (wanted > current) {
      const most = atStartOf(up.periodSeconds, current, now) + up.pods
      return Math.min(wanted, Math.max(most, current))
    }
    const least = atStartOf(down.periodSeconds, current, now) - down.pods
    return Math.max(wanted, Math.min(least, current))
  }

  const stabilize = (proposed: number, current: number, now: number): number => {
    const within = (seconds: number): number[] =>
      recommended.filter(({ at }) => at > now - seconds).map(({ replicas }) => replicas)
    const ceiling = Math.min(proposed, ...within(up.stabilizationWindowSeconds))
    const floor = Math.max(proposed, ...within(down.stabilizationWindowSeconds))
    return Math.min(Math.max(current, ceiling), floor)
  }

  return {
    next: ({ nowSeconds: now, current, needed }) => {
      const within = Math.min(Math.max(current, min), max)
      if (needed === undefined) return within
      const proposed = Math.max(...needed.map((one) => proposal(one, current, behaviour.tolerance)))
      // What was there when it began to look was asked for by somebody.
      if (recommended.length === 0) recommended.push({ at: now, replicas: current })
      const stable = stabilize(proposed, current, now)
      const wanted = Math.min(Math.max(stable, min), max)
      const next = Math.min(Math.max(limit(wanted, current, now), min), max)
      const longest = Math.max(up.stabilizationWindowSeconds, down.stabilizationWindowSeconds)
      recommended = [...recommended.filter(({ at }) => at > now - longest), { at: now, replicas: proposed }]
      changes = changes.filter(({ at }) => at > now - Math.max(up.periodSeconds, down.periodSeconds))
      if (next !== current) changes.push({ at: now, replicas: next - current })
      return next
    },
  }
}

/** What one metric asks for. */
const proposal = (needed: number, current: number, tolerance: number): number =>
  current > 0 && Math.abs(needed / current - 1) <= tolerance ? current : Math.ceil(needed)
