/** A payload to begin with, from the schema of its type: what is needed and no more, in the simplest form. */
type Schema = {
  type?: string | string[]
  const?: unknown
  default?: unknown
  examples?: unknown[]
  enum?: unknown[]
  oneOf?: Schema[]
  anyOf?: Schema[]
  required?: string[]
  properties?: Record<string, Schema>
  items?: Schema
  minItems?: number
  minimum?: number
  pattern?: string
  minLength?: number
  format?: string
}

export const examplePayload = (schema: object): Record<string, unknown> => {
  const example = exampleOf(schema as Schema)
  return typeof example === 'object' && example !== null ? (example as Record<string, unknown>) : {}
}

/** The names of the fields that the schema has: those that are needed, and the others. */
export const fieldsOf = (schema: object): { needed: string[]; optional: string[] } => {
  const { properties = {}, required = [] } = schema as Schema
  return { needed: required, optional: Object.keys(properties).filter((name) => !required.includes(name)) }
}

const exampleOf = (schema: Schema): unknown => {
  if (schema.const !== undefined) return schema.const
  if (schema.examples?.length) return schema.examples[0]
  if (schema.default !== undefined) return schema.default
  if (schema.enum) return schema.enum[0]
  const choices = schema.oneOf ?? schema.anyOf
  if (choices) return exampleOf(simplest(choices))
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'object':
      return exampleObject(schema)
    case 'array':
      return exampleArray(schema)
    case 'string':
      return exampleText(schema)
    case 'integer':
    case 'number':
      return Math.max(1, schema.minimum ?? 1)
    case 'boolean':
      return false
    default:
      return null
  }
}

const simplest = (choices: Schema[]): Schema =>
  choices.toSorted((a, b) => (a.required?.length ?? 0) - (b.required?.length ?? 0))[0] ?? {}

const exampleObject = ({ required = [], properties = {} }: Schema): Record<string, unknown> =>
  Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {})]))

/** Numbers come in rows: one of them would be a poor example. */
const exampleArray = ({ items = {}, minItems = 1 }: Schema): unknown[] => {
  const example = exampleOf(items)
  if (typeof example === 'number')
    return Array.from({ length: Math.max(24, minItems) }, (_, n) => 10 + (n % 6))
  return Array.from({ length: minItems }, () => example)
}

/** The first that fits, of what is meant most often. */
const TEXTS = ['text', 'https://example.com/', '/bin/echo', 'main', '2030-01-01T00:00:00Z', '1']

const exampleText = ({ pattern, minLength = 0 }: Schema): string =>
  TEXTS.find((text) => text.length >= minLength && (!pattern || fitsPattern(text, pattern))) ?? ''

const fitsPattern = (text: string, pattern: string): boolean => {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    // Some patterns are good only without the flag.
    return new RegExp(pattern).test(text)
  }
}
