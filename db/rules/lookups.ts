/** Lookups in the strings of templates: a path, and what stands in for a value that is not there. */

import { isScalar, kindOf } from './json-values.ts'
import { matchAt, type Path, readPath } from './paths.ts'

export type Lookup = {
  readonly path: Path
  /** The default, new each time: nobody can change it for the next one. */
  readonly fallback: (() => unknown) | undefined
}

/** A text cut at its insertions. */
export type Piece = string | Lookup

type Read<T> = { readonly ok: true; readonly value: T; readonly end: number } | Refused
type Refused = { readonly ok: false; readonly message: string }

const LONGEST_DEFAULT = 500

const BEGINS_LOOKUP = /^\$(?:[A-Za-z.[]|[ \t\r\n]*\?\?|$)/
const SPACE = /[ \t\r\n]*/y
const OR_ELSE = /[ \t\r\n]*\?\?[ \t\r\n]*/y
const LITERAL = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|\[\]|\{\}/y

const LOOKUP_RULE =
  'is no lookup such as $.a.b or $.a.b ?? "none"; text that begins with $ is written with $$'
const DEFAULT_RULE = 'needs a default after ?? such as "none", 3, true, null, [] or {}'

/** A string of a template: a lookup, or text that is cut at its insertions. */
export const parseString = (text: string): Read<Lookup | Piece[]> => {
  if (!BEGINS_LOOKUP.test(text)) return parseText(text, text.startsWith('$$') ? 1 : 0)
  const read = readLookup(text, 0)
  return read && (!read.ok || read.end === text.length) ? read : refused(LOOKUP_RULE)
}

/** Undefined if there is no path at `from`. */
const readLookup = (text: string, from: number): Read<Lookup> | undefined => {
  const read = readPath(text, from)
  if (!read) return undefined
  const { path, end } = read
  const orElse = matchAt(OR_ELSE, text, end)
  if (!orElse) return { ok: true, value: { path, fallback: undefined }, end }
  const literal = readLiteral(text, end + orElse[0].length)
  if (!literal) return refused(DEFAULT_RULE)
  return { ok: true, value: { path, fallback: literal.value }, end: literal.end }
}

const readLiteral = (text: string, from: number): { value: () => unknown; end: number } | undefined => {
  const written = matchAt(LITERAL, text.slice(from, from + LONGEST_DEFAULT), 0)?.[0]
  const value = written === undefined ? undefined : parseJson(written)
  if (written === undefined || value === undefined || !isStorable(value)) return undefined
  return { value: isScalar(value) ? () => value : () => JSON.parse(written), end: from + written.length }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An escape can say what no text may be, and `1e999` is no number. */
const isStorable = (value: unknown): boolean => {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0')
  return typeof value !== 'number' || Number.isFinite(value)
}

/** The rest of a text from `from` on, cut at its insertions. */
const parseText = (text: string, from: number): Read<Piece[]> => {
  const pieces: Piece[] = []
  let end = from
  for (let open = text.indexOf('{{', end); open !== -1; open = text.indexOf('{{', end)) {
    const insertion = readInsertion(text, open)
    if (!insertion.ok) return insertion
    pieces.push(text.slice(end, open), insertion.value)
    end = insertion.end
  }
  return { ok: true, value: [...pieces, text.slice(end)], end: text.length }
}

const readInsertion = (text: string, open: number): Read<Piece> => {
  const from = skipSpace(text, open + 2)
  const read = text[from] === '"' ? readQuoted(text, from) : readLookup(text, from)
  if (read && !read.ok) return read
  const close = read ? skipSpace(text, read.end) : from
  if (!read || !text.startsWith('}}', close)) {
    return refused(
      `has a {{ at character ${open + 1} that begins no insertion such as {{ $.a.b }}; write {{ "{{" }} for the braces themselves`,
    )
  }
  const fallback = typeof read.value === 'string' ? undefined : read.value.fallback?.()
  if (fallback !== undefined && !isInsertable(fallback))
    return refused(`cannot put ${kindOf(fallback)} into text`)
  return { ok: true, value: read.value, end: close + 2 }
}

/** Null says that there is nothing, and a text cannot say that. */
export const isInsertable = (value: unknown): value is string | number | boolean =>
  value !== null && isScalar(value)

const readQuoted = (text: string, from: number): Read<string> | undefined => {
  const literal = readLiteral(text, from)
  return literal && { ok: true, value: String(literal.value()), end: literal.end }
}

const skipSpace = (text: string, from: number): number => from + (matchAt(SPACE, text, from)?.[0].length ?? 0)

const refused = (message: string): Refused => ({ ok: false, message })
