/** Every escape that JSON.stringify writes: matched one by one, so that `\\\\u0000` is not taken for a NUL. */
const ESCAPE = /\\(?:u[0-9a-f]{4}|.)/g
const UNSTORABLE_ESCAPE = /^\\u(?:0000|d[89ab][0-9a-f]{2}|d[c-f][0-9a-f]{2})$/

/** JSON text that jsonb takes: NUL and halves of surrogate pairs, which it refuses, become U+FFFD. */
export const toStorableJson = (value: unknown): string =>
  JSON.stringify(value).replaceAll(ESCAPE, (found) => (UNSTORABLE_ESCAPE.test(found) ? '\ufffd' : found))

/** Text that jsonb takes, at most `maxLength` characters of it. */
export const toStorableText = (text: string, maxLength: number): string =>
  text.slice(0, maxLength).replaceAll('\0', '\ufffd').toWellFormed()

/** Control characters but tab and newline. */
const CONTROL = /[^\P{Cc}\t\n]/gu

/** One log message: no control characters but tab and newline, well-formed, at most `maxLength` characters. */
export const toLogText = (text: string, maxLength: number): string => {
  const clean = text.slice(0, maxLength).replaceAll(CONTROL, '').toWellFormed()
  return text.length > maxLength ? `${clean}… (${text.length - maxLength} characters cut)` : clean
}
