import { JobError } from '../../handler-api.ts'
import { toExcerpt } from './excerpt.ts'
import { retryAfterSeconds } from './retry-after.ts'

/** The URL without what may be secret: user name, password, query and fragment. */
export function redactUrl(text: string): string {
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname}${search && '?[redacted]'}`
}

/** An answer that the job cannot use. 408, 425, 429 and 5xx may be another one next time. */
export function unexpectedStatus({ status, headers }: Response, request: string, text: string): JobError {
  return new JobError('http_status', `${status} from ${request}: ${toExcerpt(text)}`, {
    permanent: !isTransient(status),
    retryAfterSeconds: retryAfterSeconds(status, headers, Date.now()),
  })
}

const isTransient = (code: number): boolean => code >= 500 || code === 408 || code === 425 || code === 429

/** The network failed after the headers arrived; undici names the reason in the cause. */
export function brokenOff(url: string, error: unknown): JobError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason = cause instanceof Error && 'code' in cause ? cause.code : String(cause)
  return new JobError('network_error', `The response of ${redactUrl(url)} broke off: ${reason}`, { cause })
}
