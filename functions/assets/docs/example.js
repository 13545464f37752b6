import { isObject } from './references.js'
import { typeNames, variantsOf } from './schema-words.js'

/** @import { Resolve, Schema } from '../../api-docs/page-model.ts' */

/**
 * @typedef {'required' | 'typical' | 'all'} Detail which optional fields an example has: none, those with an
 *   example or a default, or all
 */

/** Components that all refer to each other would otherwise unfold into thousands of lines. */
const MAX_DEPTH = 6

/** @type {Record<string, string>} */
const BY_FORMAT = {
  uuid: '0198c6a4-3f2e-7c51-9d0a-5b7e1f24c8aa',
  'date-time': '2026-11-16T09:30:00.000Z',
  date: '2026-11-16',
  email: 'ada@example.com',
  uri: 'https://example.com/',
}

/**
 * A value that fits the schema, from its examples and defaults where it has some.
 *
 * @param {Schema} schema
 * @param {Detail} detail
 * @param {Resolve} resolve
 * @returns {unknown}
 */
export const exampleOf = (schema, detail, resolve) => {
  /**
   * Undefined for a schema that contains itself: the caller leaves it out.
   *
   * @type {(part: Schema, trail: Schema[]) => unknown}
   */
  const build = (part, trail) => {
    if (trail.includes(part) || trail.length > MAX_DEPTH) return undefined
    const resolved = resolve(part)
    const inside = [...trail, part]
    const sample = sampleOf(resolved)
    // A default of `{}` stands for the defaults of the fields.
    if (sample !== undefined && !(isObject(sample) && resolved.properties)) return sample
    const variant = variantsOf(resolved).find(({ type }) => type !== 'null')
    if (variant) return merged([fields(resolved, inside), build(variant, inside)])
    const type = typeNames(resolved).find((name) => name !== 'null')
    if (type === 'object') return merged([...parts(resolved, inside), fields(resolved, inside), sample])
    if (type === 'array') return elements(resolved, inside)
    return scalar(type, resolved)
  }

  /** @type {(resolved: Schema, trail: Schema[]) => unknown[]} */
  const parts = ({ allOf = [] }, trail) => allOf.map((part) => build(part, trail))

  /** @type {(resolved: Schema, trail: Schema[]) => unknown[]} */
  const elements = ({ items }, trail) =>
    [items && detail === 'all' ? build(items, trail) : undefined].filter((element) => element !== undefined)

  /** @type {(resolved: Schema, trail: Schema[]) => Record<string, unknown>} */
  const fields = ({ properties = {}, required = [] }, trail) => {
    const included = Object.entries(properties).filter(
      ([name, part]) =>
        required.includes(name) ||
        detail === 'all' ||
        (detail === 'typical' && sampleOf(resolve(part)) !== undefined),
    )
    return Object.fromEntries(included.map(([name, part]) => [name, build(part, trail)]))
  }

  return build(schema, [])
}

/** @param {Schema} resolved */
const sampleOf = ({ example, examples, default: fallback, const: only, enum: values }) =>
  example ?? examples?.[0] ?? fallback ?? only ?? values?.[0]

/** Objects into one; where one is no object, the last value. @param {unknown[]} values */
const merged = (values) => {
  const known = values.filter((value) => value !== undefined)
  return known.every(isObject) ? Object.assign({}, ...known) : known.at(-1)
}

/**
 * @param {string | undefined} type
 * @param {Schema} schema
 */
const scalar = (type, { format = '', minimum }) => {
  if (type === 'integer' || type === 'number') return minimum ?? 1
  if (type === 'boolean') return true
  if (type === 'string') return BY_FORMAT[format] ?? '…'
  return type === 'any' ? {} : null
}
