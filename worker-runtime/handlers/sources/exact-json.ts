/** Enough digits that a double may not hold them all. */
const LONG_NUMBER = /\d{16}/

/**
 * JSON.parse that loses no digit: a number that a double cannot hold, such as a bigint id, stays text. Postgres and most
 * receivers take it as the number it is.
 */
export const parseExactJson = (text: string): unknown =>
  LONG_NUMBER.test(text)
    ? JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown)
    : JSON.parse(text)

function keepDigits(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined) return value
  return String(value) === source || digitsOf(source) <= 15 ? value : source
}

/** Significant ones: a double holds any fifteen of them. */
const digitsOf = (source: string): number =>
  source
    .replace(/[eE].*$/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+/, '')
    .replace(/0+$/, '').length
