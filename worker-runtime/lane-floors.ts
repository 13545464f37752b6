import type { Segment } from '../db/queries/exchange.ts'
import { FIRST_PARKED_LANE, LOWEST_LANE } from '../db/rules/lanes.ts'

export type LaneFloors = {
  /** The parts of the order to look through, lowest lane first. */
  segments(): Segment[]
  /** From where to look for the oldest job. */
  ageFrom(): number
  /**
   * The smallest key that a claim took from each lane. `exhaustive`: it got less than it asked for, or may have passed
   * over jobs that did not fit.
   */
  observe(
    claimed: {
      order: 'rank' | 'age'
      floors: Readonly<Record<string, number>>
      /** The oldest job of all lanes that was left, if the claim looked for it. */
      oldestLeft?: number | null | undefined
    },
    exhaustive: boolean,
  ): void
}

/** The order of age, across all lanes, has a floor of its own. */
const AGE = FIRST_PARKED_LANE

/** A submission that takes longer than this to commit may be found late, by the next full look. */
const LAG_MS = 1_000
const FULL_LOOK_MS = 30_000

/**
 * Remembers where the live part of each lane begins.
 *
 * While any session holds an old snapshot, Postgres cannot remove the index entries of claimed jobs, and each claim
 * would step over all of them to get to the first live one. But keys only grow inside a lane, so what lies below the
 * smallest key of the last full claim is gone. Two things can still appear there: jobs whose submission commits late,
 * for which the floors of a second ago are used once a second, and jobs given back by a rollback, for which all floors
 * are dropped now and then, and whenever a claim runs dry.
 */
export const createLaneFloors = (now: () => number): LaneFloors => {
  let floors = new Map<number, number>()
  let lagging = new Map<number, number>()
  let laggedAtMs = now()
  let clearedAtMs = now()

  const clear = (): void => {
    floors = new Map()
    lagging = new Map()
    laggedAtMs = now()
    clearedAtMs = now()
  }

  /** Once a second the older floors take the place of the newer. */
  const step = (): void => {
    if (now() - clearedAtMs > FULL_LOOK_MS) clear()
    if (now() - laggedAtMs < LAG_MS) return
    const newest = new Map(floors)
    floors = lagging
    lagging = newest
    laggedAtMs = now()
  }

  return {
    segments: () => {
      step()
      return toSegments(floors)
    },
    ageFrom: () => {
      step()
      return floors.get(AGE) ?? 0
    },
    observe: (claimed, exhaustive) => {
      if (exhaustive) return clear()
      for (const [lane, key] of Object.entries(claimed.floors)) floors.set(Number(lane), key)
      const keys = Object.values(claimed.floors)
      if (claimed.order === 'age' && keys.length > 0) floors.set(AGE, Math.min(...keys))
      if (typeof claimed.oldestLeft === 'number') floors.set(AGE, claimed.oldestLeft)
    },
  }
}

/** Each known lane from its floor on, and whatever lies between them in full: lanes that were empty before. */
const toSegments = (floors: ReadonlyMap<number, number>): Segment[] => {
  const segments: Segment[] = []
  let fromLane = LOWEST_LANE
  for (const [lane, key] of [...floors].sort(([a], [b]) => a - b)) {
    if (lane === AGE) break
    if (fromLane < lane) segments.push({ fromLane, fromKey: 0, toLane: lane, toKey: 0 })
    segments.push({ fromLane: lane, fromKey: key, toLane: lane + 1, toKey: 0 })
    fromLane = lane + 1
  }
  segments.push({ fromLane, fromKey: 0, toLane: FIRST_PARKED_LANE, toKey: 0 })
  return segments
}
