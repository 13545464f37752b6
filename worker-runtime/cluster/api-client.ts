import { Agent, request } from 'undici'
import { z } from 'zod'
import { readCredentials } from './service-account.ts'

/** The few requests that SmartQueue has for the API of Kubernetes. It asks and does not watch: seconds are soon enough. */
export type ApiClient = {
  get<Body>(path: string, schema: z.ZodType<Body>, accept?: string): Promise<Body>
  /** A JSON merge patch (RFC 7396): what it does not name stays. */
  mergePatch(path: string, patch: object): Promise<void>
  close(): Promise<void>
}

/** The API has answered, and it was no. The message is the API's own and says who may not do what. */
export class ApiError extends Error {
  readonly status: number
  /** The API asks for a pause. */
  readonly retryAfterMs: number | undefined

  constructor(what: string, status: number, message: string, retryAfterMs: number | undefined) {
    super(`${what}: ${status} ${message}`)
    this.name = 'ApiError'
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

/** Metadata is all that is needed of most objects. A pod as a whole is ten times as long. */
export const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'

const TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024
const LONGEST_RETRY_AFTER_SECONDS = 60

export const createApiClient = (options: {
  server: string
  serviceAccountFolder: string
  timeoutMs?: number
}): ApiClient => {
  const { timeoutMs = TIMEOUT_MS } = options
  let agent: { readonly ca: string; readonly dispatcher: Agent } | undefined

  const dispatcherFor = (ca: string): Agent => {
    if (agent?.ca === ca) return agent.dispatcher
    // What is under way on the old one goes on; a failure to close it is nobody's.
    agent?.dispatcher.close().catch(() => {})
    const connect = { ca, timeout: timeoutMs }
    agent = { ca, dispatcher: new Agent({ connect, connections: 2, maxResponseSize: MAX_RESPONSE_BYTES }) }
    return agent.dispatcher
  }

  const send = async (
    method: 'GET' | 'PATCH',
    path: string,
    rest: { headers: Record<string, string>; body?: string },
  ): Promise<unknown> => {
    const { token, ca } = await readCredentials(options.serviceAccountFolder)
    const { statusCode, headers, body } = await request(`${options.server}${path}`, {
      ...rest,
      method,
      dispatcher: dispatcherFor(ca),
      signal: AbortSignal.timeout(timeoutMs),
      headers: { ...rest.headers, authorization: `Bearer ${token}`, 'user-agent': 'smartqueue' },
    })
    const text = await body.text()
    if (statusCode >= 200 && statusCode < 300) return parseJson(text)
    const what = `${method} ${path.split('?', 1)[0]}`
    throw new ApiError(what, statusCode, messageOf(text), pauseOf(headers['retry-after']))
  }

  return {
    get: async (path, schema, accept = 'application/json') =>
      schema.parse(await send('GET', path, { headers: { accept } })),
    mergePatch: async (path, patch) => {
      const headers = { accept: METADATA, 'content-type': 'application/merge-patch+json' }
      await send('PATCH', path, { headers, body: JSON.stringify(patch) })
    },
    close: async () => agent?.dispatcher.destroy(),
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Errors are Status objects; those of a proxy in between are not. */
const statusSchema = z.object({ kind: z.literal('Status'), message: z.string() })

const messageOf = (text: string): string => {
  const status = statusSchema.safeParse(parseJson(text))
  return status.success ? status.data.message : text.slice(0, 200)
}

const pauseOf = (header: string | string[] | undefined): number | undefined => {
  const seconds = Number(header)
  return seconds > 0 ? Math.min(seconds, LONGEST_RETRY_AFTER_SECONDS) * 1000 : undefined
}
