/**
 * When a schedule fires. croner knows the calendar; what happens when clocks change is decided here, as in cron(8):
 *
 * - With a `*` among seconds, minutes or hours it is an interval of real time. croner does this.
 * - Otherwise it names times of the day, each once a day: the first of a time that the clock shows twice, and the moment
 *   of the jump for one that it skips. croner gets lists (`30 2,14 * * *`) and jumps over midnight (Nuuk) wrong, so it
 *   calculates in UTC, and `WallClock` finds the moment.
 */
import { Cron, CronPattern } from 'croner'
import { createWallClock, zoneOf } from './wall-clock.ts'

/** The next ticks after a moment; fewer if there are no more. Throws if there is no such schedule. */
export const nextTicks = (cron: string, timezone: string, after: Date, count: number): Date[] => {
  const { next } = walkOf(cron, timezone)
  const ticks: Date[] = []
  for (let ms = next(after.getTime()); ms !== undefined; ms = next(ms)) {
    ticks.push(new Date(ms))
    if (ticks.length === count) break
  }
  return ticks
}

/** The newest ticks after one moment and up to another, that one included; oldest first, and as many as the limit. */
export const ticksBetween = (
  cron: string,
  timezone: string,
  after: Date,
  upTo: Date,
  limit: number,
): Date[] => {
  const { previous } = walkOf(cron, timezone)
  const ticks: Date[] = []
  for (let ms = previous(upTo.getTime() + 1); ms !== undefined && ms > after.getTime(); ms = previous(ms)) {
    ticks.push(new Date(ms))
    if (ticks.length === limit) break
  }
  return ticks.reverse()
}

/** Any year: a schedule ends when somebody ends it. */
const MODE = '5-or-6-parts'

export const parseCron = (cron: string): CronPattern => new CronPattern(cron, undefined, { mode: MODE })

/** The next tick after a moment and the last before it, in milliseconds. */
type Walk = { next(ms: number): number | undefined; previous(ms: number): number | undefined }

/** By the zone's first name: croner keeps something for each spelling that it has met. */
const walkOf = (cron: string, timezone: string): Walk => {
  const zone = zoneOf(timezone)
  if (zone === undefined) throw new RangeError(`${timezone} is no time zone`)
  return isInterval(parseCron(cron)) ? walkIntervals(cron, zone) : walkTimes(cron, zone)
}

/** `pattern` has what a nickname stands for. All hours, one by one, are what `*` means. */
const isInterval = ({ pattern, hour }: CronPattern): boolean =>
  /[*?]/.test(pattern.trim().split(/\s+/).slice(0, -3).join(' ')) || hour.every(Boolean)

const walkIntervals = (cron: string, zone: string): Walk => {
  const calendar = new Cron(cron, { timezone: zone, mode: MODE })
  return {
    next: (ms) => calendar.nextRun(new Date(ms))?.getTime(),
    // Of a second that has begun croner looks at the start only, and misses what ticks then.
    previous: (ms) => calendar.previousRuns(1, new Date(Math.ceil(ms / 1_000) * 1_000))[0]?.getTime(),
  }
}

/** No clock is set back by more. */
const LONGEST_REPEAT_MS = 3 * 3_600_000

/** The later the clock shows, the later the moment, or the same: so the first that fits is the one. */
const walkTimes = (cron: string, zone: string): Walk => {
  const calendar = new Cron(cron, { timezone: 'UTC', mode: MODE })
  const clock = createWallClock(zone)
  type Step = (shown: Date) => Date | null | undefined

  const find = (fromMs: number, step: Step, fits: (ms: number) => boolean): number | undefined => {
    for (let shown = step(new Date(fromMs)); shown; shown = step(shown)) {
      const moment = clock.momentOf(shown.getTime())
      if (fits(moment)) return moment
    }
    return undefined
  }

  const after: Step = (shown) => calendar.nextRun(shown)
  const before: Step = (shown) => calendar.previousRuns(1, shown)[0]
  return {
    next: (ms) => find(clock.shownAt(ms), after, (moment) => moment > ms),
    previous: (ms) => find(clock.shownAt(ms) + LONGEST_REPEAT_MS, before, (moment) => moment < ms),
  }
}
