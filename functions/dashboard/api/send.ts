import { noAnswer, refusalOf } from './refusal.ts'

const TIMEOUT_MS = 30_000

export type Request = {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  query?: Record<string, string | number | null | undefined>
  json?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
  /** Goes on when the page is left. */
  keepalive?: boolean
}

/** One request, as it is: without a token. What is no success is thrown as a `Refusal`. */
export const send = async <Answer>(path: string, request: Request = {}): Promise<Answer> => {
  const { method = 'GET', json, headers, signal } = request
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetch(path + queryText(request.query), {
    method,
    headers: { ...(json !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    credentials: 'same-origin',
    keepalive: request.keepalive ?? false,
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  }).catch((error: unknown) => {
    throw signal?.aborted ? error : noAnswer()
  })
  if (!response.ok) throw await refusalOf(response)
  return (response.status === 204 ? undefined : await response.json()) as Answer
}

const queryText = (query: Request['query'] = {}): string => {
  const given = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  )
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return text && `?${text}`
}
