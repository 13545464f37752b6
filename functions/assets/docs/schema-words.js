import { h, joined } from './dom.js'
import { componentName, isObject } from './references.js'

/** @import { Schema } from '../../api-docs/page-model.ts' */
/** @import { Child } from './dom.js' */

/**
 * `string <uuid> or null`, `array of Job`: components are links to the place where they are shown.
 *
 * @param {Schema} schema
 * @returns {Child[]}
 */
export const typeOf = (schema) => {
  const component = componentName(schema)
  if (component) return [h('a', { href: `#schema-${component}` }, component)]
  const variants = variantsOf(schema)
  if (variants.length > 0) return joined(variants.map(typeOf), ' or ')
  const [part, another] = schema.allOf ?? []
  if (part && !another) return typeOf(part)
  return joined(
    typeNames(schema).map((name) => plainType(name, schema)),
    ' or ',
  )
}

/** @param {Schema} schema @returns {Schema[]} */
export const variantsOf = (schema) => schema.oneOf ?? schema.anyOf ?? []

/** @param {Schema} schema @returns {string[]} */
export const typeNames = (schema) => {
  if (schema.type) return [schema.type].flat()
  if (schema.properties || schema.allOf) return ['object']
  if (schema.items) return ['array']
  const values = schema.enum ?? ('const' in schema ? [schema.const] : [])
  const names = values.map((/** @type {unknown} */ value) => (value === null ? 'null' : typeof value))
  return names.length > 0 ? [...new Set(names)] : ['any']
}

/**
 * @param {string} name
 * @param {Schema} schema
 * @returns {Child[]}
 */
const plainType = (name, schema) => {
  if (name === 'array') return schema.items ? ['array of ', ...typeOf(schema.items)] : ['array']
  const value = name === 'object' ? mapValue(schema) : undefined
  if (value) return ['map of ', ...typeOf(value)]
  if (name === 'any') return ['any JSON']
  return schema.format && name !== 'null' ? [name, ' ', h('span', {}, `<${schema.format}>`)] : [name]
}

/** What all values of an object without named fields are. @param {Schema} schema */
const mapValue = ({ properties, additionalProperties: value }) =>
  !properties && typeof value === 'object' && Object.keys(value).length > 0 ? value : undefined

/**
 * Limits, default and allowed values, one line each.
 *
 * @param {Schema} schema
 * @returns {Child[][]}
 */
export const constraintsOf = (schema) => {
  /** @type {Child[][]} */
  const lines = []
  const values = schema.enum ?? ('const' in schema ? [schema.const] : [])
  if (values.length === 1) lines.push(['Always ', literal(values[0])])
  if (values.length > 1)
    lines.push([
      'One of ',
      ...joined(
        values.map((value) => [literal(value)]),
        ' ',
      ),
    ])
  const limits = limitsOf(schema)
  if (limits.length > 0) lines.push([capitalised(limits.join(', '))])
  if (schema.pattern) lines.push(['Matches ', h('code', {}, schema.pattern)])
  const each = schema.items && !componentName(schema.items) ? constraintsOf(schema.items) : []
  lines.push(...each.map((line) => ['Each: ', ...line]))
  if (isSaid(schema.default)) lines.push(['Default ', literal(schema.default)])
  return lines
}

/** @param {Schema} schema */
const limitsOf = (schema) =>
  [
    range(schema.minLength, schema.maxLength, 'character'),
    range(schema.minimum, schema.maximum),
    schema.exclusiveMinimum !== undefined && `more than ${number(schema.exclusiveMinimum)}`,
    schema.exclusiveMaximum !== undefined && `less than ${number(schema.exclusiveMaximum)}`,
    schema.multipleOf !== undefined && `a multiple of ${number(schema.multipleOf)}`,
    range(schema.minItems, schema.maxItems, 'item'),
    schema.uniqueItems && 'no item twice',
    range(schema.minProperties, schema.maxProperties, 'key'),
  ].filter(Boolean)

/**
 * @param {number | undefined} least
 * @param {number | undefined} most
 * @param {string} [unit]
 */
const range = (least, most, unit) => {
  const inUnits = (/** @type {number} */ count) =>
    unit ? `${number(count)} ${unit}${count === 1 ? '' : 's'}` : number(count)
  if (least !== undefined && least === most) return `exactly ${inUnits(least)}`
  if (least !== undefined && most !== undefined) return `${number(least)} to ${inUnits(most)}`
  if (least !== undefined) return `at least ${inUnits(least)}`
  return most !== undefined && `at most ${inUnits(most)}`
}

/** An empty object as default says no more than that the fields have their own. @param {unknown} value */
const isSaid = (value) => value !== undefined && !(isObject(value) && Object.keys(value).length === 0)

/** @param {unknown} value */
const literal = (value) => h('code', {}, typeof value === 'string' ? value : JSON.stringify(value))

/** @param {number} value */
const number = (value) => value.toLocaleString('en')

/** @param {string} text */
const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1)
