import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { defineJob, type JobContext, JobError } from '../handler-api.ts'
import { retryAfterSeconds } from './http/retry-after.ts'

const MAX_BODY_BYTES = 1024 * 1024
const MAX_HEADERS = 50
const EXCERPT_CHARACTERS = 300

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

const headers = z
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

// Written without flags, which a JSON Schema pattern cannot carry: http or https, and no user name.
const url = z
  .url('is not a valid URL')
  .max(2048)
  .regex(
    /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^/?#\\@]+([/?#]|$)/,
    'is not an http: or https: URL without a user name',
  )
  .describe('an http: or https: URL without a user name')

const status = z.int().min(200).max(599)

const schema = z
  .strictObject({
    url,
    method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']).default('GET'),
    headers: headers.optional(),
    body: z.unknown().optional().describe('A string is sent as it is, any other JSON value as JSON.'),
    expected_status: z
      .union([status, z.array(status).min(1).max(50)])
      .optional()
      .describe('Any 2xx if absent. A redirect named here is a result: it is not followed.'),
  })
  .refine(({ method, body }) => body === undefined || (method !== 'GET' && method !== 'HEAD'), {
    path: ['body'],
    message: 'a GET or HEAD request has no body',
  })

type HttpPayload = z.output<typeof schema>

export const httpJob = defineJob({ type: 'http', schema, run })

async function run(payload: HttpPayload, ctx: JobContext): Promise<HttpResult> {
  const request = `${payload.method} ${redacted(payload.url)}`
  ctx.log.info(request)
  const startedAt = performance.now()
  const response = await ctx.fetch(payload.url, requestInit(payload, ctx.signal))
  const { bytes, truncated } = await readBody(response, ctx.signal)
  const duration_ms = Math.round(performance.now() - startedAt)
  const size = truncated ? `more than ${MAX_BODY_BYTES}` : bytes.length
  ctx.log.info(`${response.status}, ${size} bytes in ${duration_ms} ms`)
  const body = decodeBody(bytes, response.headers.get('content-type') ?? '', truncated)
  if (!isExpected(response.status, payload.expected_status)) {
    throw unexpectedStatus(response, request, body)
  }
  return {
    status: response.status,
    headers: headersOf(response),
    body,
    truncated,
    duration_ms,
    url: response.url,
  }
}

type HttpResult = {
  status: number
  headers: Record<string, string>
  body: unknown
  truncated: boolean
  duration_ms: number
  /** Where the redirects ended. */
  url: string
}

/** The URL without what may be secret: user name, password, query and fragment. */
function redacted(text: string): string {
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname}${search && '?[redacted]'}`
}

function requestInit({ method, headers = {}, body, expected_status }: HttpPayload, signal: AbortSignal) {
  const redirect = statuses(expected_status).some((code) => REDIRECTS.has(code)) ? 'manual' : 'follow'
  const init = { method, headers, redirect, signal } as const
  if (body === undefined) return init
  if (typeof body === 'string') return { ...init, body }
  const typed = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  return {
    ...init,
    headers: typed ? headers : { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const statuses = (expected: HttpPayload['expected_status'] = []): readonly number[] =>
  typeof expected === 'number' ? [expected] : expected

const isExpected = (code: number, expected: HttpPayload['expected_status']): boolean =>
  expected === undefined ? code >= 200 && code < 300 : statuses(expected).includes(code)

async function readBody(
  response: Response,
  signal: AbortSignal,
): Promise<{ bytes: Buffer; truncated: boolean }> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk)
      size += chunk.length
      // Past the limit, not at it: a body may end right there. Leaving the loop cancels the download.
      if (size > MAX_BODY_BYTES) break
    }
  } catch (error) {
    signal.throwIfAborted()
    throw brokenOff(response.url, error)
  }
  return { bytes: Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES), truncated: size > MAX_BODY_BYTES }
}

/** The network failed after the headers arrived; undici names the reason in the cause. */
function brokenOff(url: string, error: unknown): JobError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason = cause instanceof Error && 'code' in cause ? cause.code : String(cause)
  return new JobError('network_error', `The response of ${redacted(url)} broke off: ${reason}`, { cause })
}

function decodeBody(bytes: Uint8Array, contentType: string, truncated: boolean): unknown {
  const mediaType = (contentType.split(';')[0] ?? '').trim().toLowerCase()
  if (bytes.length === 0) return ''
  if (!TEXTUAL.test(mediaType) && !(mediaType === '' && isPlainText(bytes))) {
    return { base64: Buffer.from(bytes).toString('base64') }
  }
  // `stream` holds back a character that the limit cut in two.
  const text = decoderFor(contentType).decode(bytes, { stream: truncated })
  return JSON_TYPE.test(mediaType) ? jsonOrText(text) : text
}

const JSON_TYPE = /^(application|text)\/json$|\+json$/
const TEXTUAL =
  /^text\/|[/+](json|xml|yaml)$|^application\/(javascript|x-javascript|x-www-form-urlencoded|x-ndjson|graphql|x-yaml|toml|sql)$/

/** Of an unnamed type: UTF-8 without a NUL is text. */
const isPlainText = (bytes: Uint8Array): boolean => isUtf8(bytes) && !bytes.includes(0)

function decoderFor(contentType: string): TextDecoder {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1]
  try {
    return new TextDecoder(charset)
  } catch {
    return new TextDecoder()
  }
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Cookies are credentials of the remote site, and results are shown to everyone in the org. */
function headersOf(response: Response): Record<string, string> {
  const headers = Object.fromEntries(response.headers)
  return 'set-cookie' in headers ? { ...headers, 'set-cookie': '[redacted]' } : headers
}

function unexpectedStatus({ status, headers }: Response, request: string, body: unknown): JobError {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  // The cut may split a surrogate pair, and Postgres stores neither halves nor NUL.
  const excerpt = text
    .slice(0, EXCERPT_CHARACTERS)
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
  return new JobError('http_status', `${status} from ${request}: ${excerpt}`, {
    permanent: !isTransient(status),
    retryAfterSeconds: SAY_WHEN.has(status) ? retryAfterSeconds(headers, Date.now()) : undefined,
  })
}

/** Too many requests, and unavailable: answers that may say when to come again. */
const SAY_WHEN: ReadonlySet<number> = new Set([429, 503])

const isTransient = (code: number): boolean => code >= 500 || code === 408 || code === 425 || code === 429
