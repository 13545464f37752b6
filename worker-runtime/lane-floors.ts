import type { LaneFloor } from '../db/queue/exchange.ts'
import { FIRST_PARKED_LANE, LOWEST_LANE } from '../db/rules/lanes.ts'

export type LaneFloors = {
  /** Where to read each lane from, lowest lane first. The first one is below all lanes. */
  floors(): LaneFloor[]
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
  /** Forgets everything. */
  clear(): void
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
    floors: () => {
      step()
      const known = [...floors].filter(([lane]) => lane !== AGE).map(([lane, key]) => ({ lane, key }))
      return [{ lane: LOWEST_LANE, key: 0 }, ...known.sort((a, b) => a.lane - b.lane)]
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
    clear,
  }
}
