import { z } from 'zod'

const MAX_HEADERS = 50

// Set by the connection itself: a value from the payload would contradict it or smuggle a second request.
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers of a request, as a payload gives them. */
export const headersField = z
  .record(
    z.string().regex(/^[!#$%&'*+.^_`|~\dA-Za-z-]+$/),
    // Header bytes are Latin-1, so the length is in bytes too. CR, LF and NUL would end the header early.
    z
      .string()
      .max(8192)
      .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'has a character that a header cannot carry'),
    { error: ({ code }) => (code === 'invalid_key' ? 'is not a valid header name' : undefined) },
  )
  .refine((record) => Object.keys(record).length <= MAX_HEADERS, `at most ${MAX_HEADERS} headers`)
  .superRefine((record, refinement) => {
    for (const name of Object.keys(record).filter((key) => CONNECTION_HEADERS.has(key.toLowerCase()))) {
      refinement.addIssue({
        code: 'custom',
        path: [name],
        message: `${name} belongs to the connection and cannot be set`,
      })
    }
  })
  // Refinements stay out of the JSON Schema that the edge validates with; this one can be said there.
  .meta({ maxProperties: MAX_HEADERS })

export const hasContentType = (headers: Record<string, string>): boolean =>
  Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')

// Written without flags, which a JSON Schema pattern cannot carry: http or https, and no user name.
export const urlField = z
  .url('is not a valid URL')
  .max(2048)
  .regex(
    /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^/?#\\@]+([/?#]|$)/,
    'is not an http: or https: URL without a user name',
  )
  .describe('an http: or https: URL without a user name')
