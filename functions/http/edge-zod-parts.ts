/**
 * zod for the Worker. @hono/zod-openapi hands the whole of `z` on, so a bundler may leave nothing of it out: with the
 * package's index the Worker would carry messages in sixty languages and a compiler of schemas, which workerd would not let
 * compile anything, and be 52 kB larger, compressed. This is the index without those two and `z.core`. (The package does
 * not export its parts: hence the paths.)
 */
export * from '../../node_modules/zod/v4/classic/checks.js'
export * from '../../node_modules/zod/v4/classic/errors.js'
export { fromJSONSchema } from '../../node_modules/zod/v4/classic/from-json-schema.js'
export * as iso from '../../node_modules/zod/v4/classic/iso.js'
export * from '../../node_modules/zod/v4/classic/parse.js'
export * from '../../node_modules/zod/v4/classic/schemas.js'
export { config, NEVER } from '../../node_modules/zod/v4/core/core.js'
export { globalRegistry, registry } from '../../node_modules/zod/v4/core/registries.js'
