import { formatTraceparent, newSpanId, parseTraceparent } from '../../functions/tracing/traceparent.ts'
import { safely } from '../describe-error.ts'
import { type GuardedFetch, JobError } from '../handler-api.ts'
import type { FetchSpan } from './job-tracing.ts'

/**
 * A `fetch` that tells the receiver in which trace it is called, and its own side what it took. It needs nothing of
 * OpenTelemetry, so that it costs a thread nothing to load. A traceparent that the handler has set stays as it is.
 */
export const tracedFetch = (
  fetch: GuardedFetch,
  traceparent: string,
  report: (fetched: FetchSpan) => void,
): GuardedFetch => {
  const parent = parseTraceparent(traceparent)
  if (!parent) return fetch
  return async (url, init = {}) => {
    const spanId = newSpanId()
    const given = URL.parse(String(url))
    const span = {
      spanId,
      method: init.method?.toUpperCase() ?? 'GET',
      scheme: given?.protocol.slice(0, -1) ?? '',
      host: given?.hostname ?? '',
      port: Number(given?.port || (given?.protocol === 'https:' ? 443 : 80)),
      startMs: nowMs(),
    }
    const isOwn = Object.keys(init.headers ?? {}).some((name) => name.toLowerCase() === 'traceparent')
    const headers = isOwn ? {} : { traceparent: formatTraceparent({ ...parent, spanId }) }
    try {
      const response = await fetch(url, { ...init, headers: { ...init.headers, ...headers } })
      report({ ...span, endMs: nowMs(), status: response.status, error: undefined })
      return response
    } catch (error) {
      report({ ...span, endMs: nowMs(), status: undefined, error: codeOf(error) })
      throw error
    }
  }
}

/** As exact as a span should be, in time since 1970. */
export const nowMs = (): number => performance.timeOrigin + performance.now()

const codeOf = (error: unknown): string =>
  safely(() => {
    if (error instanceof JobError) return String(error.code)
    return error instanceof Error ? String(error.name) : 'Error'
  }, 'Error')
