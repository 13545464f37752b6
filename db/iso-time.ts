/** The type that Postgres gives to `timestamptz`. */
export const TIMESTAMPTZ = 1184

/**
 * A time as the API shows it, `2026-11-18T12:00:00.000Z`, from the text of Postgres: in a column, where both drivers parse it
 * with this, or within JSON. Dates that JavaScript cannot hold stay as they are.
 */
export const isoTime = (text: string): string => {
  const date = new Date(text.replace(' ', 'T').replace(/[+-]\d\d$/, '$&:00'))
  return Number.isNaN(date.getTime()) ? text : date.toISOString()
}
