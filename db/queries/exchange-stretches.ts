import type { EndedAttempt } from './exchange.ts'

/** Attempts that follow each other and are alike; positions count from 1. */
export type Stretch = { org_id: string; series_id: string; announced: boolean; first: number; last: number }

/**
 * Puts attempts of one organisation next to each other, and in it those of one series, so that what they have in common
 * is sent once. Events are written for an organisation and not for each series: those that were announced come last.
 */
export const toStretches = (
  attempts: readonly EndedAttempt[],
): { stretches: Stretch[]; ended: readonly EndedAttempt[] } => {
  const groups = groupAlike(attempts)
  if (groups.length === 0) return { stretches: [], ended: [] }
  const ordered = groups.length > 1 ? groups.sort(byOrganisation) : groups
  let last = 0
  const stretches = ordered.map((group) => {
    const first = last + 1
    last += group.length
    const { org_id, series_id, announced } = headOf(group)
    return { org_id, series_id, announced, first, last }
  })
  return { stretches, ended: ordered.length === 1 ? attempts : ordered.flat() }
}

const headOf = ([head]: readonly EndedAttempt[]): EndedAttempt => {
  if (!head) throw new Error('A group of attempts has at least one')
  return head
}

const groupAlike = (attempts: readonly EndedAttempt[]): EndedAttempt[][] => {
  const groups = new Map<string, EndedAttempt[]>()
  // Mostly like the one before it: that is seen without putting a key together.
  let current: EndedAttempt[] = []
  for (const attempt of attempts) {
    const [head] = current
    if (!head || !isAlike(head, attempt)) current = groupOf(groups, attempt)
    current.push(attempt)
  }
  return [...groups.values()]
}

const isAlike = (a: EndedAttempt, b: EndedAttempt): boolean =>
  a.series_id === b.series_id && a.org_id === b.org_id && a.announced === b.announced

const groupOf = (groups: Map<string, EndedAttempt[]>, attempt: EndedAttempt): EndedAttempt[] => {
  const key = `${attempt.org_id} ${attempt.series_id} ${attempt.announced}`
  const group = groups.get(key) ?? []
  groups.set(key, group)
  return group
}

const byOrganisation = (a: readonly EndedAttempt[], b: readonly EndedAttempt[]): number => {
  const [one, other] = [headOf(a), headOf(b)]
  if (one.org_id !== other.org_id) return one.org_id < other.org_id ? -1 : 1
  return Number(one.announced) - Number(other.announced)
}
