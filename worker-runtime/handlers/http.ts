import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { defineJob, type JobContext } from '../handler-api.ts'
import { brokenOff, redactUrl, unexpectedStatus } from './http/answers.ts'
import { decoderOf } from './http/decoder.ts'
import { hasContentType, headersField, urlField } from './http/fields.ts'

const MAX_BODY_BYTES = 1024 * 1024

const status = z.int().min(200).max(599)

const schema = z
  .strictObject({
    url: urlField,
    method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']).default('GET'),
    headers: headersField.optional(),
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
  const request = `${payload.method} ${redactUrl(payload.url)}`
  ctx.log.info(request)
  const startedAt = performance.now()
  const response = await ctx.fetch(payload.url, requestInit(payload, ctx.signal))
  const { bytes, truncated } = await readBody(response, ctx.signal)
  const duration_ms = Math.round(performance.now() - startedAt)
  const size = truncated ? `more than ${MAX_BODY_BYTES}` : bytes.length
  ctx.log.info(`${response.status}, ${size} bytes in ${duration_ms} ms`)
  const body = decodeBody(bytes, response.headers.get('content-type') ?? '', truncated)
  if (!isExpected(response.status, payload.expected_status)) {
    throw unexpectedStatus(response, request, typeof body === 'string' ? body : JSON.stringify(body))
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

function requestInit({ method, headers = {}, body, expected_status }: HttpPayload, signal: AbortSignal) {
  const redirect = statuses(expected_status).some((code) => REDIRECTS.has(code)) ? 'manual' : 'follow'
  const init = { method, headers, redirect, signal } as const
  if (body === undefined) return init
  if (typeof body === 'string') return { ...init, body }
  return {
    ...init,
    headers: hasContentType(headers) ? headers : { ...headers, 'content-type': 'application/json' },
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

function decodeBody(bytes: Uint8Array, contentType: string, truncated: boolean): unknown {
  const mediaType = (contentType.split(';')[0] ?? '').trim().toLowerCase()
  if (bytes.length === 0) return ''
  if (!TEXTUAL.test(mediaType) && !(mediaType === '' && isPlainText(bytes))) {
    return { base64: Buffer.from(bytes).toString('base64') }
  }
  // `stream` holds back a character that the limit cut in two.
  const text = (decoderOf(contentType) ?? new TextDecoder()).decode(bytes, { stream: truncated })
  return JSON_TYPE.test(mediaType) ? jsonOrText(text) : text
}

const JSON_TYPE = /^(application|text)\/json$|\+json$/
const TEXTUAL =
  /^text\/|[/+](json|xml|yaml)$|^application\/(javascript|x-javascript|x-www-form-urlencoded|x-ndjson|graphql|x-yaml|toml|sql)$/

/** Of an unnamed type: UTF-8 without a NUL is text. */
const isPlainText = (bytes: Uint8Array): boolean => isUtf8(bytes) && !bytes.includes(0)

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
