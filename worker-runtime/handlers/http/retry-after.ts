/** Too many requests, and unavailable: answers that may say when to come again. */
const SAY_WHEN: ReadonlySet<number> = new Set([429, 503])

/** Seconds that a server asks to be left alone for: `Retry-After: 120`, or a date. Undefined if it says nothing of use. */
export const retryAfterSeconds = (status: number, headers: Headers, nowMs: number): number | undefined => {
  if (!SAY_WHEN.has(status)) return undefined
  const given = headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(given)) return Number(given)
  const at = parseHttpDate(given)
  if (at === undefined) return undefined
  // By the server's own clock, if it shows it: ours may differ by more than it asks for.
  const now = parseHttpDate(headers.get('date') ?? '') ?? nowMs
  return Math.max(0, Math.ceil((at - now) / 1000))
}

/** The three forms of RFC 9110. The oldest names no zone and means the same. */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT|[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d [\d:]{8} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})$/

const parseHttpDate = (text: string): number | undefined => {
  if (!HTTP_DATE.test(text)) return undefined
  const ms = Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`)
  return Number.isNaN(ms) ? undefined : ms
}
