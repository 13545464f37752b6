/**
 * Fuzzing input, generated from the JSON Schemas in the OpenAPI document: valid, almost valid, or hostile.
 * Bodies are JSON texts, not values, because texts can express what JavaScript values cannot, such as 1e999
 * or duplicate keys.
 */
import type { createRandom } from '../../functions/prediction/lstm/random.ts'

export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  format?: string
  pattern?: string
  example?: unknown
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
}

export type Random = ReturnType<typeof createRandom>

export const pick = <T>(random: Random, from: readonly T[]): T =>
  from[Math.floor(random() * from.length)] as T

/** Names that every object has, or that have a special meaning somewhere. */
const KEYS = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'then',
  'toJSON',
  '',
  '$ref',
]

export const HOSTILE_TEXTS = [
  ...[
    '',
    ' ',
    '\0',
    'a\0b',
    '\n',
    '\t',
    '\u2028',
    '\ufeff',
    '\ud800',
    'a\udfff',
    '😀',
    'İ',
    '\u202e',
    ...KEYS,
  ],
  ...['null', 'NaN', 'Infinity', '-0', '1e999', '9223372036854775808', '1n', '0x10', 'true', '[]', '{}'],
  ...["'", '"', '\\', '%', '%00', '_', '{', '{{', '{{ $ }}', '$', '$$', '$.a', '$.__proto__', '../../etc'],
  ...['0000-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '2026-02-30T00:00:00Z', '2026-01-01T00:00:00+23:59'],
  ...['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'g'.repeat(36)],
  ...[
    'http://',
    'http://[::1]:99999/',
    'https://user@example.com/',
    'javascript:1',
    'http://example.com\\@x',
  ],
  ...['* * * * *', '0 0 31 2 *', '99 99 99 99 99', '@yearly', '0 0 * * 8#9', 'Europe/Nowhere', 'UTC+25'],
  ...['x'.repeat(64), 'x'.repeat(201), 'x'.repeat(5_000), 'ß'.repeat(256)],
]

const HOSTILE_NUMBERS = [
  ...['0', '-0', '-1', '1.5', '1e-320', '1e-60', '1e308', '1e999', '-1e999', '2147483648', '-2147483649'],
  ...['9007199254740993', '9223372036854775808', '0.1e-7', '1e3', '4294967296'],
]

const HOSTILE_JSON = [
  ...['null', 'true', '[]', '{}', '[[]]', '[null]', '""', '{"a":{"b":[1,{"c":null}]}}'],
  ...KEYS.map((key) => `{${JSON.stringify(key)}:{}}`),
  `${'['.repeat(40)}${']'.repeat(40)}`,
  `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`,
  `[${'0,'.repeat(1_500)}0]`,
]

/** Not JSON at all, or JSON that cannot be stored. */
export const MALFORMED = [
  '',
  '{',
  '[1,]',
  '{"a":1}{',
  'undefined',
  '\0',
  '{"a":"\0"}',
  "{'a':1}",
  '\ufeff{}',
  'nul',
]

const hostileJson = (random: Random): string => {
  const kind = random()
  if (kind < 0.4) return JSON.stringify(pick(random, HOSTILE_TEXTS))
  return pick(random, kind < 0.65 ? HOSTILE_NUMBERS : HOSTILE_JSON)
}

/**
 * `faults` is the probability that a part is replaced by something hostile. `text` generates strings that are
 * sometimes real.
 */
export const createInput = (options: {
  random: Random
  resolve: (ref: string) => Schema
  realText: (format: string | undefined) => string
}) => {
  const { random, resolve, realText } = options

  const chance = (share: number): boolean => random() < share

  const json = (schema: Schema, faults: number, depth = 0): string => {
    if (chance(faults) || depth > 12) return hostileJson(random)
    if (schema.$ref) return json(resolve(schema.$ref), faults, depth)
    if (schema.const !== undefined) return JSON.stringify(schema.const)
    if (schema.enum) return JSON.stringify(pick(random, schema.enum))
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return json(pick(random, choices), faults, depth + 1)
    if (schema.allOf) return objectOf(Object.assign({}, ...schema.allOf.map(unfold)), faults, depth)
    if (schema.example !== undefined && chance(0.5)) return JSON.stringify(schema.example)
    return ofType(schema, faults, depth)
  }

  const unfold = (schema: Schema): Schema => (schema.$ref ? resolve(schema.$ref) : schema)

  const ofType = (schema: Schema, faults: number, depth: number): string => {
    const type = Array.isArray(schema.type) ? pick(random, schema.type) : schema.type
    if (type === 'object' || schema.properties) return objectOf(schema, faults, depth)
    if (type === 'array') {
      const items = Array.from({ length: Math.floor(random() * 4) }, () =>
        json(schema.items ?? {}, faults, depth + 1),
      )
      return `[${items.join(',')}]`
    }
    if (type === 'integer' || type === 'number') return number(schema)
    if (type === 'boolean') return String(chance(0.5))
    if (type === 'null') return 'null'
    if (type === 'string') return JSON.stringify(text(schema))
    return chance(0.5) ? '{}' : hostileJson(random)
  }

  const objectOf = (schema: Schema, faults: number, depth: number): string => {
    const required = new Set(schema.required)
    const fields = Object.entries(schema.properties ?? {})
      .filter(([name]) => (required.has(name) ? !chance(faults / 4) : chance(0.4)))
      .map(([name, field]) => `${JSON.stringify(name)}:${json(field, faults, depth + 1)}`)
    if (chance(faults)) fields.push(`${JSON.stringify(pick(random, KEYS))}:${hostileJson(random)}`)
    return `{${fields.join(',')}}`
  }

  const number = ({ minimum = 0, maximum = 100 }: Schema): string =>
    String(pick(random, [minimum, maximum, minimum + Math.floor(random() * (maximum - minimum))]))

  const text = (schema: Schema): string => {
    if (schema.enum) return String(pick(random, schema.enum))
    if (schema.format === 'date-time') return new Date(Date.now() + random() * 1e7).toISOString()
    if (schema.format === 'uri' || schema.format === 'url') return 'https://example.com/hook'
    if (schema.format || chance(0.5)) return realText(schema.format)
    const { minLength = 1, maxLength = 20 } = schema
    return 'x'.repeat(pick(random, [minLength, maxLength, Math.min(maxLength, 8)]))
  }

  /** A query parameter, a header or a path segment. */
  const parameter = (schema: Schema, faults: number): string => {
    if (chance(faults)) return pick(random, HOSTILE_TEXTS)
    if (schema.type === 'integer' || schema.type === 'number') return number(schema)
    return schema.$ref ? realText(undefined) : text(schema)
  }

  return { json, parameter, chance }
}
