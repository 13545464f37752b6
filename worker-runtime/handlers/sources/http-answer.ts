import { JobError } from '../../handler-api.ts'

const EXCERPT_BYTES = 300
const MAX_RETRY_AFTER_SECONDS = 86_400

/** The URL without what may be secret: user name, password, query and fragment. */
export function redactUrl(text: string): string {
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname}${search && '?[redacted]'}`
}

/** An answer other than 2xx. 408, 425, 429 and 5xx may be another one next time; `Retry-After` says when. */
export async function refuseAnswer(response: Response, request: string): Promise<JobError> {
  const permanent = !isTransient(response.status)
  const retryAfterSeconds = permanent ? undefined : secondsUntilRetry(response.headers.get('retry-after'))
  const message = `${response.status} from ${request}: ${await readExcerpt(response)}`
  return new JobError('http_status', message, { permanent, retryAfterSeconds })
}

/** The network failed after the headers arrived; undici names the reason in the cause. */
export function brokenOff(url: string, error: unknown): JobError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason = cause instanceof Error && 'code' in cause ? cause.code : String(cause)
  return new JobError('network_error', `The response of ${redactUrl(url)} broke off: ${reason}`, { cause })
}

const isTransient = (code: number): boolean => code >= 500 || code === 408 || code === 425 || code === 429

/** `Retry-After` is a number of seconds or a date. */
export function secondsUntilRetry(header: string | null): number | undefined {
  if (header === null) return undefined
  const seconds = /^\d+$/.test(header.trim())
    ? Number(header)
    : Math.ceil((Date.parse(header) - Date.now()) / 1000)
  return seconds > 0 ? Math.min(seconds, MAX_RETRY_AFTER_SECONDS) : undefined
}

async function readExcerpt(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk)
      size += chunk.length
      // Leaving the loop cancels the download.
      if (size >= EXCERPT_BYTES) break
    }
  } catch {
    // What has arrived is enough to tell the answer by.
  }
  // `stream` holds back a character that the limit cut in two; Postgres stores no NUL.
  const text = new TextDecoder().decode(Buffer.concat(chunks).subarray(0, EXCERPT_BYTES), { stream: true })
  return text.replace(/\p{Cc}+/gu, ' ')
}
