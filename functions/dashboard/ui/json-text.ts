/** JSON as somebody types it: what it means, or what is wrong and in which line. */
import { Refusal } from '../api/refusal.ts'

export const toJsonText = (value: unknown): string => JSON.stringify(value, null, 2)

/** What somebody has typed, as a value. What is no JSON is refused as the API would refuse it: at its field. */
export const readJson = (text: string, pointer: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    const detail = describe(text, String((error as Error).message))
    throw new Refusal({ title: 'Not JSON', detail: '', errors: [{ pointer: `#${pointer}`, detail }] })
  }
}

type Parsed = { ok: true; value: Record<string, unknown> } | { ok: false; error: string }

export const parseObject = (text: string): Parsed => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return { ok: false, error: 'Must be a JSON object: { … }' }
    }
    return { ok: true, value: value as Record<string, unknown> }
  } catch (error) {
    return { ok: false, error: describe(text, String((error as Error).message)) }
  }
}

export const prettify = (text: string): string => {
  const parsed = parseObject(text)
  return parsed.ok ? toJsonText(parsed.value) : text
}

/** Browsers tell the place each in their own way, if at all: as a position, or as a line and a column. */
const describe = (text: string, message: string): string => {
  if (text.trim() === '') return 'Is empty. {} is the least.'
  const line = lineOf(text, message)
  const reason = message
    .replace(/^JSON\.parse: /, '')
    .replace(/^JSON Parse error: /, '')
    .replace(/, (\.{3})?".*"(\.{3})? is not valid JSON$/s, '')
    .replace("'\n'", 'end of the line')
    .replace(/ (in JSON )?at (position|line) .*$/s, '')
  return `Is no JSON${line === undefined ? '' : `, line ${line}`}: ${reason}`
}

const lineOf = (text: string, message: string): number | undefined => {
  const line = /line (\d+)/.exec(message)?.[1]
  if (line) return Number(line)
  const position = positionOf(text, message)
  return position === undefined ? undefined : text.slice(0, position).split('\n').length
}

const positionOf = (text: string, message: string): number | undefined => {
  const position = /position (\d+)/.exec(message)?.[1]
  if (position) return Number(position)
  if (/end of (JSON|data|input)|EOF/i.test(message)) return text.trimEnd().length
  if (!text.includes('\n')) return 0
  // Chrome shows what stands around the place, ten characters to each side.
  const around = /\.{3}"(.+)"(\.{3})? is not valid JSON$/s.exec(message)?.[1]
  const start = around === undefined ? -1 : text.indexOf(around)
  return start < 0 ? undefined : start + 10
}
