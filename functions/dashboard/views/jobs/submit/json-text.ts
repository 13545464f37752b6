/** JSON as somebody types it: what it means, or what is wrong and in which line. */
export type Parsed = { ok: true; value: Record<string, unknown> } | { ok: false; error: string }

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
  return parsed.ok ? JSON.stringify(parsed.value, null, 2) : text
}

/** Browsers tell the place each in their own way, if at all: as a position, or as a line and a column. */
const describe = (text: string, message: string): string => {
  if (text.trim() === '') return 'Is empty. {} is the least.'
  const line = lineOf(text, message)
  const reason = message
    .replace(/^JSON\.parse: /, '')
    .replace(/^JSON Parse error: /, '')
    .replace(/,? "?[.]{3}.*is not valid JSON$|,? ".*" is not valid JSON$/s, '')
    .replace(/ (in JSON )?at (position|line) .*$/s, '')
  return `Is no JSON${line === undefined ? '' : `, line ${line}`}: ${reason}`
}

const lineOf = (text: string, message: string): number | undefined => {
  const line = /line (\d+)/.exec(message)?.[1]
  if (line) return Number(line)
  const position = /position (\d+)/.exec(message)?.[1]
  if (position) return text.slice(0, Number(position)).split('\n').length
  return /end of (JSON|data|input)/i.test(message) || /EOF/.test(message)
    ? text.trimEnd().split('\n').length
    : undefined
}
