/** Says what is wrong with the expression or the time zone of a schedule. */
import type { CronPattern } from 'croner'
import { nextTicks, parseCron } from '../../db/rules/cron.ts'
import { zoneOf } from '../../db/rules/wall-clock.ts'

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

const FIELDS = 'minute, hour, day of month, month, day of week'
const NICKNAMES = '@hourly, @daily, @weekly, @monthly, @yearly'

const faultOf = (cron: string): string | undefined => {
  const isNickname = cron.trim().startsWith('@')
  const fields = cron.match(/\S+/g)?.length ?? 0
  if (!isNickname && fields !== 5 && fields !== 6) {
    return `must have 5 fields (${FIELDS}), or 6 with the second first; it has ${fields}`
  }
  try {
    const least = leastSecondsApart(parseCron(cron))
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
      parseCron(alone)
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

/** Of its seconds in a minute, and from the last to the first of the next. */
const leastSecondsApart = ({ second }: CronPattern): number => {
  const seconds = second.flatMap((isSet, n) => (isSet ? [n] : []))
  const next = [...seconds.slice(1), (seconds[0] ?? 0) + 60]
  return Math.min(...seconds.map((from, n) => (next[n] ?? 0) - from))
}
