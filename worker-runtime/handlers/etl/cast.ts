import { toNumber } from '../sources/number.ts'
import type { Cast } from './transform-schema.ts'

/** The value is not of the type that it should be cast to. */
export class CastError extends Error {}

type Caster = (value: unknown, name: string) => unknown

/** Null stays null, and an empty text becomes it, unless it is to be text. */
export function casterFor(cast: Cast): Caster {
  const read = READERS[cast]
  return (value, name) => {
    if (value === null || value === undefined || (value === '' && cast !== 'string')) return null
    const found = read(value)
    if (found === undefined) throw new CastError(`${name} is not ${NAMES[cast]}: ${show(value)}`)
    return found
  }
}

const NAMES: Record<Cast, string> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  timestamp: 'a time such as 2026-01-31T12:00:00Z',
  date: 'a date such as 2026-01-31',
  json: 'JSON',
}

const SHOWN_CHARACTERS = 60

const show = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
}

/** Undefined if the value is not of the type. */
const READERS: Record<Cast, (value: unknown) => unknown> = {
  string: (value) => (typeof value === 'object' ? JSON.stringify(value) : String(value)),
  number: toNumber,
  integer: toInteger,
  boolean: toBoolean,
  timestamp: (value) => toTime(value)?.toISOString(),
  date: (value) => toTime(value)?.toISOString().slice(0, 10),
  json: toJson,
}

/** One that a double cannot hold stays text, with all its digits. */
function toInteger(value: unknown): number | string | undefined {
  const number = toNumber(value)
  if (number === undefined || !Number.isInteger(number)) return undefined
  return Number.isSafeInteger(number) || typeof value !== 'string' ? number : digitsOf(value)
}

const digitsOf = (text: string): string | undefined => /^\s*\+?(-?\d+)\s*$/.exec(text)?.[1]

const TRUE = new Set(['true', 't', 'yes', 'y', 'on', '1'])
const FALSE = new Set(['false', 'f', 'no', 'n', 'off', '0'])

function toBoolean(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const text = String(value).trim().toLowerCase()
  if (TRUE.has(text)) return true
  return FALSE.has(text) ? false : undefined
}

const TIME =
  /^\s*(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|[-+]\d\d(?::?\d\d)?)?)?\s*$/i

/** Seconds since 1970 reach this in the year 5138, milliseconds reached it in 1973. */
const LEAST_MILLISECONDS = 1e11

/** ISO 8601, in UTC unless it names a zone; or seconds or milliseconds since 1970. */
function toTime(value: unknown): Date | undefined {
  if (typeof value === 'number') {
    return validDate(new Date(Math.abs(value) < LEAST_MILLISECONDS ? value * 1000 : value))
  }
  const parts = typeof value === 'string' ? TIME.exec(value) : null
  if (!parts) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '0', zone = 'Z'] = parts
  // Checked here, because Date takes 30 February for 1 March.
  if (Number(day) > new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()) return undefined
  const millisecond = fraction.padEnd(3, '0').slice(0, 3)
  return validDate(
    new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}.${millisecond}${zoneOf(zone)}`),
  )
}

const zoneOf = (zone: string): string => {
  if (zone.toUpperCase() === 'Z') return 'Z'
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0')
  return `${zone[0]}${digits.slice(0, 2)}:${digits.slice(2)}`
}

const validDate = (date: Date): Date | undefined => (Number.isNaN(date.getTime()) ? undefined : date)

function toJson(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}
