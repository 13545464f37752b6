import { z } from '@hono/zod-openapi'
import { parsePath } from '../../db/rules/paths.ts'
import { ALGORITHMS, ENCODINGS, type HmacSettings, type Scheme, TOLERANCE_SECONDS } from './schemes.ts'

const header = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[\w-]+$/, 'must be the name of a header')
  .toLowerCase()

const path = z
  .string()
  .refine((text) => parsePath(text)?.root === '$', 'must be a path into the body such as $.id')

const PLACES = /\{(\w*)\}/g

/** What is wrong with what is signed; undefined if nothing is. */
const contentFault = ({ content, timestamp_header, id_path }: HmacSettings): string | undefined => {
  if (content === undefined) return undefined
  const places = [...content.matchAll(PLACES)].map(([, place]) => place)
  const strange = places.find((place) => !['id', 'timestamp', 'body'].includes(place ?? ''))
  if (strange !== undefined) return `has {${strange}}: it may have {id}, {timestamp} and {body}`
  if (places.filter((place) => place === 'body').length !== 1) return 'must have {body} once'
  if (places.includes('timestamp') !== (timestamp_header !== undefined))
    return 'must have {timestamp} if there is a timestamp_header, and else not'
  if (places.includes('id') && id_path !== undefined)
    return 'cannot have {id} with an id_path: the body is read after it was verified'
  return undefined
}

/** What a source of the scheme `hmac` may say of how it is signed. */
export const hmacSettings = z
  .strictObject({
    signature_header: header.optional().openapi({ description: 'Default: x-signature.' }),
    algorithm: z.enum(ALGORITHMS).optional().openapi({ description: 'Default: sha256.' }),
    encoding: z.enum(ENCODINGS).optional().openapi({ description: 'Default: hex.' }),
    prefix: z.string().max(50).optional().openapi({
      description: 'Before the signature. Default: the algorithm and `=`, or nothing.',
      example: 'sha256=',
    }),
    timestamp_header: header.optional().openapi({
      description:
        'The header with the time of sending, as a Unix timestamp in seconds. Without it, a recorded delivery can be replayed at any time.',
    }),
    tolerance_seconds: z
      .int()
      .min(1)
      .max(3_600)
      .optional()
      .openapi({
        description: `How many seconds the timestamp may be in the past or future. Default: ${TOLERANCE_SECONDS}. Requires timestamp_header.`,
      }),
    content: z.string().max(200).optional().openapi({
      description: 'What is signed. Default: {body}, or {timestamp}.{body} with a timestamp_header.',
      example: 'v0:{timestamp}:{body}',
    }),
    id_header: header.optional().openapi({
      description: 'Has the id of the event, by which a second delivery is known. Default: x-event-id.',
    }),
    id_path: path.optional().openapi({ description: 'Where in the body that id stands instead.' }),
    type_header: header.optional().openapi({ description: 'Has the type. Default: x-event-type.' }),
    type_path: path.optional().openapi({ description: 'Where in the body the type stands instead.' }),
  })
  .superRefine((settings, ctx) => {
    const fault = contentFault(settings)
    if (fault) ctx.addIssue({ code: 'custom', path: ['content'], message: fault })
    if (settings.tolerance_seconds !== undefined && settings.timestamp_header === undefined) {
      ctx.addIssue({ code: 'custom', path: ['tolerance_seconds'], message: 'requires timestamp_header' })
    }
    for (const what of ['id', 'type'] as const) {
      if (settings[`${what}_header`] !== undefined && settings[`${what}_path`] !== undefined) {
        const message = `cannot be given beside ${what}_header`
        ctx.addIssue({ code: 'custom', path: [`${what}_path`], message })
      }
    }
  })
  .openapi('HmacVerification', { description: 'Of the scheme `hmac` only.' })

/** How a scheme verifies, as the API shows it. */
export const viewScheme = ({ signature, timestamp, id, type, algorithm, encoding, content }: Scheme) => ({
  signature_header: signature.header,
  prefix: signature.prefix,
  algorithm,
  encoding,
  content,
  timestamp_header: timestamp?.header ?? null,
  tolerance_seconds: timestamp?.toleranceSeconds ?? null,
  id_header: 'header' in id ? id.header : null,
  id_path: 'path' in id ? id.path : null,
  type_header: 'header' in type ? type.header : null,
  type_path: 'path' in type ? type.path : null,
})
