import { JobError } from '../../handler-api.ts'
import { retryAfterSeconds } from './retry-after.ts'

const EXCERPT_CHARACTERS = 300

/** The URL without what may be secret: user name, password, query and fragment. */
export function redactUrl(text: string): string {
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname}${search && '?[redacted]'}`
}

/** An answer that the job cannot use. 408, 425, 429 and 5xx may be another one next time. */
export function unexpectedStatus({ status, headers }: Response, request: string, text: string): JobError {
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

/** The network failed after the headers arrived; undici names the reason in the cause. */
export function brokenOff(url: string, error: unknown): JobError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason = cause instanceof Error && 'code' in cause ? cause.code : String(cause)
  return new JobError('network_error', `The response of ${redactUrl(url)} broke off: ${reason}`, { cause })
}

/** The beginning of a body, for people to tell it by. Leaving the loop cancels the rest. */
export async function readExcerpt(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length >= EXCERPT_CHARACTERS) break
    }
  } catch {
    // What has arrived is enough.
  }
  return text
}
