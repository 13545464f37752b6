import type { PodLoad } from '../../db/queries/registry.ts'

/**
 * Of the pods of a Deployment that is scaled down, those that cost least are deleted first. None is deleted mid-job, because
 * each drains; but one with long jobs takes minutes to go, and its jobs may have to begin anew.
 *
 *   -1000              it drains already
 *       0              idle; also Kubernetes' own value for a pod without the annotation
 *      10              idle, and leads: somebody else would have to be elected
 *   100 × (1 + ⌊log₂ running⌋), and 10 if it leads
 *
 * Costs are coarse because every change of one is a write to the cluster's store: 8 jobs or 15, the pod costs the same.
 */
export const costOf = (load: PodLoad | undefined): number => {
  // Not heard of: it has just started, or is cut off. Kubernetes takes pods that are not ready first, whatever they cost.
  if (!load) return 0
  if (load.status !== 'online') return DRAINING
  const busy = load.running > 0 ? 100 * (1 + Math.floor(Math.log2(load.running))) : 0
  return busy + (load.leads ? 10 : 0)
}

export const DRAINING = -1000

/** A pod looks idle between two jobs. It costs as much as it did in the last so many milliseconds. */
const HOLD_MS = 30_000

export type HeldCost = { readonly cost: number; readonly atMs: number }

/** Rises at once and falls late, unless the pod drains. */
export const holdCost = (held: HeldCost | undefined, cost: number, nowMs: number): HeldCost =>
  held && cost < held.cost && cost !== DRAINING && nowMs - held.atMs < HOLD_MS ? held : { cost, atMs: nowMs }
