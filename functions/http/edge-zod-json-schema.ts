/**
 * The Worker makes schemas of JSON Schema and never JSON Schema of schemas: the pods do that. wrangler.toml puts this in the
 * place of the two files of zod that would, which makes the Worker 5.7 kB smaller, compressed. Those are not packages: if
 * wrangler or zod no longer have it so, the Worker is as large as before, and works.
 */
export { aggregateChecks } from '../../node_modules/zod/v4/core/json-schema-processors.js'

const createRefusal = () => (): never => {
  throw new Error('The Worker cannot make JSON Schema of a schema')
}

export { createRefusal as createStandardJSONSchemaMethod, createRefusal as createToJSONSchemaMethod }
