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

export type CronFault = { field: 'cron' | 'timezone'; detail: string }

/** A queue is no timer: what has to run more often had better be one job that goes on. */
const LEAST_SECONDS = 10

/** Why it is no schedule; undefined if it is one. Said of the field, as in "#/cron must have 5 fields". */
export const checkCron = (cron: string, timezone: string): CronFault | undefined => {
  if (zoneOf(timezone) === undefined) {
    return { field: 'timezone', detail: 'must be the name of a time zone, such as Europe/Berlin or UTC' }
  }
  const detail = faultOf(cron)
  if (detail !== undefined) return { field: 'cron', detail }
  if (nextTicks(cron, timezone, new Date(), 1).length > 0) return undefined
  return { field: 'cron', detail: 'never comes: there is no such day' }
}

/** The next ticks after a moment; fewer if there are no more. Throws what `checkCron` would have told. */
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

const FIELDS = 'minute, hour, day of month, month, day of week'
const NICKNAMES = '@hourly, @daily, @weekly, @monthly, @yearly'

const faultOf = (cron: string): string | undefined => {
  const isNickname = cron.trim().startsWith('@')
  const fields = cron.match(/\S+/g)?.length ?? 0
  if (!isNickname && fields !== 5 && fields !== 6) {
    return `must have 5 fields (${FIELDS}), or 6 with the second first; it has ${fields}`
  }
  try {
    const least = leastSecondsApart(parse(cron))
    if (least >= LEAST_SECONDS) return undefined
    return `must leave ${LEAST_SECONDS} seconds between two ticks, as */${LEAST_SECONDS} for the second does; some are ${least} apart`
  } catch (error) {
    if (isNickname) return `must be one of ${NICKNAMES}, or have 5 fields (${FIELDS})`
    return fieldFault(cron) ?? `is no cron expression: ${reasonOf(error)}`
  }
}

const FIELD_VALUES = [
  ['second', '0-59'],
  ['minute', '0-59'],
  ['hour', '0-23'],
  ['day of month', '1-31, L, LW or 15W'],
  ['month', '1-12 or JAN-DEC'],
  ['day of week', '0-7, MON-SUN, MON#1 or FRI#L'],
] as const

/** The field that is wrong also when it stands alone, as it was written: croner counts months and days from 0, and has replaced names. */
const fieldFault = (cron: string): string | undefined => {
  const fields = cron.match(/\S+/g) ?? []
  const first = FIELD_VALUES.length - fields.length
  for (const [n, field] of fields.entries()) {
    const alone = FIELD_VALUES.map((_, at) => (at === first + n ? field : '*')).join(' ')
    try {
      parse(alone)
    } catch (error) {
      const [name, values] = FIELD_VALUES[first + n] ?? ['field', '*']
      const reason = reasonOf(error)
      const hint = /^Syntax error|larger/.test(reason) ? `: ${reason.replace(/^Syntax error, /, '')}` : ''
      return `has "${field}" as the ${name}, which takes ${values}, lists, ranges and steps of them${hint}`
    }
  }
  return undefined
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)

/** Any year: a schedule ends when somebody ends it. */
const MODE = '5-or-6-parts'

const parse = (cron: string): CronPattern => new CronPattern(cron, undefined, { mode: MODE })

/** Of its seconds in a minute, and from the last to the first of the next. */
const leastSecondsApart = ({ second }: CronPattern): number => {
  const seconds = second.flatMap((isSet, n) => (isSet ? [n] : []))
  const next = [...seconds.slice(1), (seconds[0] ?? 0) + 60]
  return Math.min(...seconds.map((from, n) => (next[n] ?? 0) - from))
}

/** The next tick after a moment and the last before it, in milliseconds. */
type Walk = { next(ms: number): number | undefined; previous(ms: number): number | undefined }

/** By the zone's first name: croner keeps something for each spelling that it has met. */
const walkOf = (cron: string, timezone: string): Walk => {
  const zone = zoneOf(timezone)
  if (zone === undefined) throw new RangeError(`${timezone} is no time zone`)
  return isInterval(parse(cron)) ? walkIntervals(cron, zone) : walkTimes(cron, zone)
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
  const before = (shown: Date): Date | undefined => calendar.previousRuns(1, shown)[0]
  return {
    next: (ms) => {
      const from = new Date(clock.shownAt(ms))
      for (let shown = calendar.nextRun(from); shown; shown = calendar.nextRun(shown)) {
        const moment = clock.momentOf(shown.getTime())
        if (moment > ms) return moment
      }
      return undefined
    },
    previous: (ms) => {
      const from = new Date(clock.shownAt(ms) + LONGEST_REPEAT_MS)
      for (let shown = before(from); shown; shown = before(shown)) {
        const moment = clock.momentOf(shown.getTime())
        if (moment < ms) return moment
      }
      return undefined
    },
  }
}
