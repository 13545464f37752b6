/**
 * Templates: any JSON value, in which strings may look something up. Nothing is evaluated.
 *
 *     string    = lookup | text | "$" text         the latter with a text that begins with $: "$$.a" is the text $.a
 *     lookup    = path [ "??" literal ]            becomes the value that is found, with its type
 *     text      = { character | insertion }        becomes text, even if it is one insertion only
 *     insertion = "{{" ( lookup | JSON string ) "}}"
 *     literal   = a JSON string, number, true, false, null, [] or {}
 *
 * A string is a lookup if it begins with `$` and then a letter, `.` or `[`, or nothing follows, or `??`; it must then
 * be one to its end. So "$5" and "${{ $.price }}" are text, and "$.a costs 5" is a fault and not taken for text. Every
 * `{{` begins an insertion; the braces themselves are written {{ "{{" }}. Space may stand around `??` and inside the
 * braces.
 *
 * The default stands in for a value that is not there, and not for a null that is, unless told so. A value that is
 * neither there nor has a default is a fault. Keys of objects are literal.
 */

import { isPlainObject, isScalar, kindOf, roughSize } from './json-values.ts'
import { isInsertable, type Lookup, type Piece, parseString } from './lookups.ts'
import { type Documents, type Fault, lookUp, rootFault, showPath } from './paths.ts'

export type Rendered = { ok: true; value: unknown } | { ok: false; faults: Fault[] }

const DEEPEST = 32
const MOST_STRINGS = 2000

/** A small template may look up a large document again and again: what it finds may be as large as this together. */
const MOST_FOUND = 1_048_576

type Place = Fault['path']

/** What a rendering finds out on its way: faults, and how many more characters it may find. */
type Run = {
  readonly documents: Documents
  readonly faults: Fault[]
  readonly defaultForNull: boolean
  left: number
}
type Part = (run: Run) => unknown

/** Empty if the value is a template whose paths begin with one of `roots`. */
export const checkTemplate = (value: unknown, roots: readonly string[]): Fault[] =>
  compile(value, roots).faults

/**
 * Reads the strings once, for a template that is rendered often. One with faults renders to them. Values are shared
 * with the documents, not copied. `defaultForNull` is for rows, which say with null that there is nothing.
 */
export const compileTemplate = (
  template: unknown,
  { defaultForNull = false }: { defaultForNull?: boolean } = {},
): ((documents: Documents) => Rendered) => {
  const { part, faults: unreadable } = compile(template, undefined)
  if (unreadable.length > 0) return () => ({ ok: false, faults: unreadable })
  return (documents) => {
    const run: Run = { documents, faults: [], defaultForNull, left: MOST_FOUND }
    const value = part(run)
    if (run.left < 0) run.faults.push({ path: [], message: `would be longer than ${MOST_FOUND} characters` })
    return run.faults.length > 0 ? { ok: false, faults: run.faults } : { ok: true, value }
  }
}

const compile = (
  template: unknown,
  roots: readonly string[] | undefined,
): { part: Part; faults: Fault[] } => {
  const faults: Fault[] = []
  let strings = 0

  const visit = (value: unknown, at: Place): Part => {
    if (typeof value === 'string') return visitString(value, at)
    if (isScalar(value)) return () => value
    if (!Array.isArray(value) && !isPlainObject(value)) return refuse(at, 'must be a JSON value')
    if (at.length >= DEEPEST) return refuse(at, 'is nested too deep')
    if (Array.isArray(value)) {
      const parts = value.map((child, n) => visit(child, [...at, n]))
      return (run) => parts.map((part) => part(run))
    }
    const entries = Object.entries(value).map(([key, child]) => [key, visit(child, [...at, key])] as const)
    // Assigned one by one, a `__proto__` would change the prototype instead.
    return (run) => Object.fromEntries(entries.map(([key, part]) => [key, part(run)]))
  }

  const visitString = (text: string, at: Place): Part => {
    strings += 1
    if (strings > MOST_STRINGS + 1) return () => undefined
    if (strings > MOST_STRINGS) return refuse([], `has more than ${MOST_STRINGS} strings`)
    const read = parseString(text)
    if (!read.ok) return refuse(at, read.message)
    for (const piece of [read.value].flat()) {
      const fault = roots && typeof piece !== 'string' ? rootFault(piece.path, roots) : undefined
      if (fault) return refuse(at, fault)
    }
    return Array.isArray(read.value) ? textOf(read.value, at) : foundBy(read.value, at)
  }

  const refuse = (path: Place, message: string): Part => {
    faults.push({ path, message })
    return () => undefined
  }

  return { part: visit(template, []), faults }
}

const foundBy =
  (lookup: Lookup, at: Place): Part =>
  (run) => {
    const found = find(lookup, at, run)
    return typeof found === 'string' ? found.toWellFormed() : found
  }

const textOf = (pieces: readonly Piece[], at: Place): Part => {
  const [only] = pieces
  if (pieces.length === 1 && typeof only === 'string') return () => only
  return (run) => {
    const texts = pieces.map((piece) => (typeof piece === 'string' ? piece : insert(piece, at, run)))
    return texts.join('').toWellFormed()
  }
}

const insert = (lookup: Lookup, at: Place, run: Run): string => {
  const found = find(lookup, at, run)
  if (isInsertable(found)) return String(found)
  if (found === undefined) return ''
  run.faults.push({
    path: at,
    message: `cannot put ${showPath(lookup.path)} into text: it is ${kindOf(found)}`,
  })
  return ''
}

/** The value or its default. Undefined if there is neither, or too much has been found already. */
const find = ({ path, fallback }: Lookup, at: Place, run: Run): unknown => {
  if (run.left < 0) return undefined
  const found = lookUp(run.documents, path)
  if (found === null && fallback && run.defaultForNull) return fallback()
  if (found !== undefined) {
    run.left -= roughSize(found, run.left)
    return found
  }
  if (fallback) return fallback()
  run.faults.push({ path: at, message: `needs ${showPath(path)}, which is not there` })
  return undefined
}
