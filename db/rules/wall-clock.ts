/** The clocks of a time zone, by the runtime's own time zone data. Times that they show are milliseconds, as if of UTC. */
export type WallClock = {
  /** What they show at a moment, to the second. */
  shownAt(ms: number): number
  /** The first moment at which they show this. If they never do: the one at which they jump over it. */
  momentOf(shown: number): number
}

/** The name that the zone goes by, whatever it was called. Undefined: there is none. An offset is no zone. */
export const zoneOf = (timezone: string): string | undefined => {
  if (!/^[a-z]/i.test(timezone)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

const DAY_MS = 86_400_000

export const createWallClock = (zone: string): WallClock => {
  const format = new Intl.DateTimeFormat('en-US', { ...TO_THE_SECOND, timeZone: zone })

  const shownAt = (ms: number): number => {
    const shown: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {}
    for (const { type, value } of format.formatToParts(ms)) shown[type] = Number(value)
    const { year = 0, month = 1, day, hour, minute, second } = shown
    return Date.UTC(year, month - 1, day, hour, minute, second)
  }

  /** To add to a moment for what is shown. */
  const offsetAt = (ms: number): number => shownAt(ms) - ms

  const momentOf = (shown: number): number => {
    // By the clock of the day before, and by that of the day after: the same, unless it is changed between them.
    const before = shown - offsetAt(shown - DAY_MS)
    const after = shown - offsetAt(shown + DAY_MS)
    if (before === after) return before
    const real = [before, after].filter((ms) => shownAt(ms) === shown)
    return real.length > 0 ? Math.min(...real) : jumpBetween(after, before)
  }

  const jumpBetween = (early: number, late: number): number => {
    const offset = offsetAt(early)
    let [from, to] = [early, late]
    while (to - from > 1_000) {
      const middle = from + Math.floor((to - from) / 2_000) * 1_000
      if (offsetAt(middle) === offset) from = middle
      else to = middle
    }
    return to
  }

  return { shownAt, momentOf }
}

const TO_THE_SECOND = {
  hourCycle: 'h23',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
} as const
