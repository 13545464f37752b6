import { z } from 'zod'

/**
 * A handler's schema as JSON Schema, for the check at submission. It may let through what the handler then
 * refuses, never the other way round: what JSON Schema cannot say, or would say too strictly, is left out.
 */
export const describePayload = (schema: z.ZodType): Record<string, unknown> =>
  z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (!takesMoreThanItSays(zodSchema._zod.def)) return
      const { description } = jsonSchema
      for (const key of Object.keys(jsonSchema)) delete jsonSchema[key]
      if (description) jsonSchema.description = description
    },
  })

type Definition = z.core.$ZodTypeDef & {
  coerce?: boolean
  in?: z.core.$ZodType
  checks?: z.core.$ZodCheck<never>[]
}

/** Coerced, caught and preprocessed input, and text that is changed, or matched with flags, before it is judged. */
const takesMoreThanItSays = (definition: Definition): boolean => {
  const { type, coerce, checks = [] } = definition
  if (coerce || type === 'catch') return true
  if (type === 'pipe' && definition.in?._zod.def.type === 'transform') return true
  return checks.some(({ _zod: { def } }) => {
    const { check, pattern } = def as { check: string; pattern?: RegExp }
    return check === 'overwrite' || (pattern !== undefined && pattern.flags.replace(/[gyu]/g, '') !== '')
  })
}
