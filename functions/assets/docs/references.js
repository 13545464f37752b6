/** @import { Resolve, Schema } from '../../api-docs/page-model.ts' */

const COMPONENT = '#/components/schemas/'

/**
 * Follows `$ref` to the part that it names; what stands beside a `$ref` wins. A reference that leads back to
 * itself, to nothing or to another document resolves to an empty object.
 *
 * @param {object} document
 * @returns {Resolve}
 */
export const createResolver = (document) => {
  /** @type {(part: unknown, followed: string[]) => object} */
  const follow = (part, followed) => {
    if (!isObject(part)) return {}
    const { $ref, ...beside } = part
    if (typeof $ref !== 'string') return part
    if (followed.includes($ref)) return beside
    return { ...follow(partAt(document, $ref), [...followed, $ref]), ...beside }
  }
  return /** @type {Resolve} */ ((part) => follow(part, []))
}

/**
 * The name of the component that a schema refers to. Such a schema is shown once, and linked from here.
 *
 * @param {Schema} schema
 */
export const componentName = ({ $ref }) =>
  $ref?.startsWith(COMPONENT) ? unescaped($ref.slice(COMPONENT.length)) : undefined

/** @param {unknown} value @returns {value is Record<string, unknown>} */
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * @param {unknown} document
 * @param {string} pointer JSON Pointer in fragment form
 */
const partAt = (document, pointer) => {
  if (!pointer.startsWith('#/')) return undefined
  let part = document
  for (const key of pointer.slice(2).split('/').map(unescaped)) {
    if (typeof part !== 'object' || part === null || !Object.hasOwn(part, key)) return undefined
    part = /** @type {Record<string, unknown>} */ (part)[key]
  }
  return part
}

/** @param {string} key */
const unescaped = (key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')
