/**
 * zod-to-openapi for the Worker: wrangler.toml puts this in the place of the package. The document is made when the Worker
 * is built (functions/build/), so that schemas and routes need not be registered when it starts, and it is 8 kB smaller,
 * compressed. This is what @hono/zod-openapi asks for.
 */

/** Schemas can be described, and that is all. */
export const extendZodWithOpenApi = ({ ZodType }: { ZodType: { prototype: object } }): void => {
  Object.assign(ZodType.prototype, {
    openapi(this: object) {
      return this
    },
  })
}

/** Forgets. A class, because it is made with `new`. */
export class OpenAPIRegistry {
  readonly definitions = []
  registerPath(): void {}
}

function refuse(): never {
  throw new Error('The Worker cannot make an OpenAPI document: functions/build/ does')
}

export { refuse as getOpenApiMetadata, refuse as OpenApiGeneratorV3, refuse as OpenApiGeneratorV31 }
