/**
 * Types of the page in functions/assets/docs. They live here because everything there is served, and the page
 * has no build step that would strip them.
 */

/** A JSON Schema, as far as the page reads it. */
export type Schema = {
  $ref?: string
  title?: string
  description?: string
  deprecated?: boolean
  type?: string | string[]
  format?: string
  pattern?: string
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  items?: Schema
  allOf?: Schema[]
  oneOf?: Schema[]
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  example?: unknown
  examples?: unknown[]
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  multipleOf?: number
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minProperties?: number
  maxProperties?: number
}

export type MediaType = {
  schema?: Schema
  example?: unknown
  examples?: Record<string, { value?: unknown }>
}

export type BodyOrResponse = { $ref?: string; description?: string; content?: Record<string, MediaType> }

export type Parameter = {
  $ref?: string
  name: string
  in: string
  required?: boolean
  deprecated?: boolean
  description?: string
  schema?: Schema
  example?: unknown
}

export type PathOperation = {
  tags?: string[]
  summary?: string
  description?: string
  deprecated?: boolean
  security?: object[]
  'x-permission'?: string
  parameters?: Parameter[]
  requestBody?: BodyOrResponse
  responses?: Record<string, BodyOrResponse>
}

export type PathItem = { $ref?: string; parameters?: Parameter[] } & Record<string, PathOperation>

export type SecurityScheme = {
  type?: string
  scheme?: string
  bearerFormat?: string
  name?: string
  in?: string
  description?: string
}

export type Problem = { slug: string; status: number; title: string; description?: string }

/** What operations may ask for: the least role, and whether an API key can be given it. */
export type Permission = { name: string; role: string; key: boolean; about: string }

/** `/openapi.json`, as far as the page reads it. */
export type OpenApiDocument = {
  openapi?: string
  info?: { title?: string; version?: string; description?: string }
  tags?: { name: string; description?: string }[]
  security?: object[]
  paths: Record<string, PathItem>
  components?: { schemas?: Record<string, Schema>; securitySchemes?: Record<string, SecurityScheme> }
  'x-problems'?: Problem[]
  'x-permissions'?: Permission[]
}

export type Content = { mediaType: string; schema: Schema; example: unknown }

export type Answer = {
  status: string
  description: string
  content: Content | undefined
  problems: Problem[]
}

export type Operation = {
  id: string
  method: string
  path: string
  tag: string
  summary: string
  description: string | undefined
  deprecated: boolean
  token: 'needed' | 'optional' | 'none'
  permission: string | undefined
  parameters: Parameter[]
  body: Content | undefined
  answers: Answer[]
}

export type Tag = { id: string; name: string; description: string | undefined; operations: Operation[] }

/** Follows `$ref`; see references.js. */
export type Resolve = <Part extends { $ref?: string }>(part: Part | undefined) => Part

/** The document in the shape in which the page shows it. */
export type Api = {
  title: string
  version: string
  description: string | undefined
  openapi: string
  tags: Tag[]
  operations: Operation[]
  schemas: [string, Schema][]
  problems: Problem[]
  permissions: Permission[]
  securitySchemes: SecurityScheme[]
  resolve: Resolve
}
