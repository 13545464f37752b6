import { breakable, h, row, table } from './dom.js'
import { inline } from './prose.js'
import { componentName } from './references.js'
import { constraintsOf, typeOf, variantsOf } from './schema-words.js'

/** @import { Parameter, Resolve, Schema } from '../../api-docs/page-model.ts' */
/** @import { Child } from './dom.js' */

/**
 * @typedef {{ depth: number, trail: Schema[] }} Position how deep the rows are indented, and the schemas that
 *   led here: one that comes again contains itself
 */

const MAX_INDENT = 6

/**
 * The fields of a schema, nested ones indented below their parent. A component inside is a link, not a copy.
 * What is no object is told in one line.
 *
 * @param {Schema} schema
 * @param {Resolve} resolve
 * @returns {Child[]}
 */
export const fieldsTable = (schema, resolve) => {
  const resolved = resolve(schema)
  const rows = rowsOf(schema, { depth: 0, trail: [] }, resolve)
  if (rows.length === 0) return [h('p', { class: 'type' }, typeOf(resolved)), ...notes(resolved)]
  const isClosed = resolved.additionalProperties === false
  return [
    table(['Field', 'Type', 'Description'], rows),
    isClosed && h('p', { class: 'note' }, 'Other fields are refused.'),
  ]
}

/**
 * @param {Parameter[]} parameters
 * @param {Resolve} resolve
 */
export const parametersTable = (parameters, resolve) =>
  table(
    ['Parameter', 'Type', 'Description'],
    parameters.map((parameter) => {
      const schema = resolve(parameter.schema)
      const { description = schema.description } = parameter
      return row(
        {},
        [fieldName(parameter.name), ...flags(parameter), h('span', { class: 'flag' }, `in ${parameter.in}`)],
        [h('span', { class: 'type' }, typeOf(parameter.schema ?? {}))],
        [description && h('p', {}, inline(description)), ...notes(schema)],
      )
    }),
  )

/**
 * @param {Schema} schema
 * @param {Position} position
 * @param {Resolve} resolve
 * @returns {HTMLTableRowElement[]}
 */
const rowsOf = (schema, { depth, trail }, resolve) => {
  if (trail.includes(schema)) return []
  const resolved = resolve(schema)
  const here = { depth, trail: [...trail, schema] }
  const below = { ...here, depth: Math.min(depth + 1, MAX_INDENT) }
  const fields = Object.entries(resolved.properties ?? {}).flatMap(([name, field]) => [
    fieldRow({ name, field, depth, required: resolved.required?.includes(name) ?? false }, resolve),
    ...(componentName(field) ? [] : rowsOf(field, below, resolve)),
  ])
  const elements = [resolved.items, resolved.additionalProperties]
    .filter((element) => typeof element === 'object')
    .flatMap((element) => (componentName(element) ? [] : rowsOf(element, here, resolve)))
  const parts = (resolved.allOf ?? []).flatMap((part) => rowsOf(part, here, resolve))
  return [...parts, ...fields, ...elements, ...variantRows(resolved, here, resolve)]
}

/**
 * Of a union, each object with fields of its own, under a line that separates it from the others. Components
 * are spelled out only at the top: further down the type column links to them.
 *
 * @param {Schema} schema
 * @param {Position} position
 * @param {Resolve} resolve
 */
const variantRows = (schema, position, resolve) => {
  const groups = variantsOf(schema)
    .filter((variant) => position.depth === 0 || !componentName(variant))
    .map((variant) => ({ variant, rows: rowsOf(variant, position, resolve) }))
    .filter(({ rows }) => rows.length > 0)
  if (groups.length < 2) return groups.flatMap(({ rows }) => rows)
  return groups.flatMap(({ variant, rows }, index) => {
    const title = componentName(variant) ?? variant.title ?? `variant ${index + 1}`
    const label = h('td', { colspan: 3, role: 'cell' }, index === 0 ? 'Either ' : 'Or ', title)
    return [h('tr', { role: 'row', class: `variant depth-${position.depth}` }, label), ...rows]
  })
}

/**
 * @param {{ name: string, field: Schema, depth: number, required: boolean }} field
 * @param {Resolve} resolve
 */
const fieldRow = ({ name, field, depth, required }, resolve) => {
  const shown = componentName(field) ? field : resolve(field)
  return row(
    // A class and not a style: the content security policy allows no inline styles.
    { class: `depth-${depth}` },
    [fieldName(name), ...flags({ ...shown, required })],
    [h('span', { class: 'type' }, typeOf(shown))],
    [shown.description && h('p', {}, inline(shown.description)), ...notes(shown)],
  )
}

/** @param {string} name */
const fieldName = (name) => h('code', { class: 'field' }, breakable(name))

/** @param {{ required?: boolean | string[], deprecated?: boolean }} field @returns {Child[]} */
const flags = ({ required, deprecated }) => [
  required === true && h('span', { class: 'flag required' }, 'required'),
  deprecated && h('span', { class: 'flag deprecated' }, 'deprecated'),
]

/** @param {Schema} schema @returns {Child[]} */
const notes = (schema) => constraintsOf(schema).map((line) => h('p', { class: 'note' }, line))
