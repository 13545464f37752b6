import { z } from '@hono/zod-openapi'
import { PROBLEMS, type ProblemSlug } from './problem.ts'

const problemSchema = z
  .object({
    type: z.string().openapi({ example: '/docs#problem-invalid-request' }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    errors: z
      .array(
        z.object({
          in: z.enum(['body', 'query', 'path', 'header']),
          pointer: z.string().openapi({ example: '#/retry/max_attempts' }),
          detail: z.string(),
        }),
      )
      .optional(),
    request_id: z.string(),
  })
  .openapi('Problem', { description: 'What went wrong (RFC 9457).' })

type ProblemResponses = Record<
  number,
  { description: string; content: { 'application/problem+json': { schema: typeof problemSchema } } }
>

/** Of a route that reads a JSON body. */
export const BODY_PROBLEMS = [
  'malformed-body',
  'body-too-large',
  'unsupported-media-type',
  'invalid-request',
] as const satisfies ProblemSlug[]

/** The error half of the `responses` of a route that asks the database. */
export const problems = (...slugs: ProblemSlug[]): ProblemResponses =>
  problemResponses(...slugs, 'database-unavailable', 'outcome-unknown')

export const problemResponses = (...slugs: ProblemSlug[]): ProblemResponses => {
  const responses: ProblemResponses = {}
  for (const slug of slugs) {
    const { status, title } = PROBLEMS[slug]
    const earlier = responses[status]?.description
    responses[status] = {
      description: earlier ? `${earlier}; or: ${title}` : title,
      content: { 'application/problem+json': { schema: problemSchema } },
    }
  }
  return responses
}

export const jsonContent = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  description,
  content: { 'application/json': { schema } },
})

export const jsonRequest = <Schema extends z.ZodType>(schema: Schema) => ({
  required: true,
  content: { 'application/json': { schema } },
})

/** A schema that is built in a request costs more than its check. */
export const uuid = z.uuid()

/** Postgres returns ids in lower case. */
export const pathId = z.object({
  id: z
    .uuid()
    .toLowerCase()
    .openapi({ param: { name: 'id', in: 'path' } }),
})

/** Time as the API writes it: ISO 8601 in UTC. */
export const timestamp = z.iso.datetime().openapi({ example: '2026-11-16T09:30:00.000Z' })

const isStorableTime = (text: string): boolean => {
  const year = new Date(text).getUTCFullYear()
  return year >= 1970 && year <= 9999
}

/** Time as the API reads it: RFC 3339, with any offset. */
export const time = z.iso
  .datetime({ offset: true })
  .refine(isStorableTime, 'must be between the years 1970 and 9999 in UTC')
