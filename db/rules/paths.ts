/**
 * Paths into JSON documents. A path names a document and the way to a value in it; it finds one value or none.
 *
 *     path   = root { step }
 *     root   = "$" { letter }                                    $ is the document, others are named: $headers
 *     step   = "." name | "[" index "]" | "['" key "']" | '["' key '"]'
 *     name   = (letter | digit | "_" | "-") { … }
 *     index  = "0" | [ "-" ] whole number                        a negative one counts from the end
 *     key    = any characters; the quote and the backslash are written \' \" \\
 *
 * A name leads into an object and an index into a list, never the other way round, and only to what is the object's own:
 * `$.constructor` and `$.list.length` are not there. Letters and digits are those of ASCII.
 */

export type Path = { readonly root: string; readonly keys: readonly (string | number)[] }

/** By root: `{ $: event, $headers: headers }`. */
export type Documents = Readonly<Record<string, unknown>>

const LONGEST_PATH = 500
const MOST_KEYS = 32

const ROOT = /\$[A-Za-z]*/y
const STEP =
  /\.(?<name>[\w-]+)|\[(?<index>0|-?[1-9]\d{0,8})\]|\['(?<single>(?:[^'\\]|\\['"\\])*)'\]|\["(?<double>(?:[^"\\]|\\['"\\])*)"\]/y
const NAME = /^[\w-]+$/

/** Undefined if the text is no path. */
export const parsePath = (text: string): Path | undefined => {
  const read = readPath(text, 0)
  return read?.end === text.length ? read.path : undefined
}

/** The longest path that begins at `from`, and the position after it. */
export const readPath = (text: string, from: number): { path: Path; end: number } | undefined => {
  // One character more than may be: a path that is too long is seen, and the rest of the text costs nothing.
  const head = text.slice(from, from + LONGEST_PATH + 1)
  const root = matchAt(ROOT, head, 0)?.[0]
  if (root === undefined) return undefined
  const keys: (string | number)[] = []
  let end = root.length
  for (let step = matchAt(STEP, head, end); step; step = matchAt(STEP, head, end)) {
    keys.push(keyOf(step.groups ?? {}))
    end += step[0].length
  }
  if (end > LONGEST_PATH || keys.length > MOST_KEYS) return undefined
  return { path: { root, keys }, end: from + end }
}

const keyOf = ({ name, index, single, double }: Record<string, string | undefined>): string | number => {
  if (index !== undefined) return Number(index)
  return name ?? (single ?? double ?? '').replaceAll(/\\(.)/g, '$1')
}

/** Undefined if there is nothing. A null that is there is a value. */
export const lookUp = (documents: Documents, { root, keys }: Path): unknown => {
  let value = memberOf(documents, root)
  for (const key of keys) {
    if (value === undefined) return undefined
    value = typeof key === 'number' ? itemOf(value, key) : memberOf(value, key)
  }
  return typeof value === 'function' ? undefined : value
}

const memberOf = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined

const itemOf = (value: unknown, index: number): unknown =>
  Array.isArray(value) ? value.at(index) : undefined

/** The canonical text: dots where they can be, single quotes elsewhere. */
export const showPath = ({ root, keys }: Path): string => root + keys.map(showKey).join('')

const showKey = (key: string | number): string => {
  if (typeof key === 'number') return `[${key}]`
  return NAME.test(key) ? `.${key}` : `['${key.replaceAll(/['\\]/g, '\\$&')}']`
}

/** What to say about a path into a document that there is not; undefined if it is one of those that there are. */
export const rootFault = ({ root }: Path, roots: readonly string[]): string | undefined =>
  roots.includes(root) ? undefined : `must begin with ${roots.join(' or ')}, not with ${root}`

/** The match of a sticky pattern that begins exactly there. */
export const matchAt = (sticky: RegExp, text: string, from: number): RegExpExecArray | null => {
  sticky.lastIndex = from
  return sticky.exec(text)
}

/** What is wrong, and where in the value that was looked at: `['payload', 'url']`. */
export type Fault = { readonly path: readonly (string | number)[]; readonly message: string }
