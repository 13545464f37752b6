import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type StatusServer = {
  /** Resolves when it listens; rejects if the port is taken. */
  start(): Promise<void>
  /** Where it listens: useful if the port was 0. */
  port(): number
  /** Twice is safe. */
  stop(): Promise<void>
}

export type StatusAnswer = { status: number; type: string; body: string }

export type StatusRoute = () => StatusAnswer | Promise<StatusAnswer>

/** Why not; undefined: all is well. */
export type Check = () => string | undefined

/** A probe: 200, or 503 and the reason. */
export const probe =
  (check: Check): StatusRoute =>
  () => {
    const reason = check()
    return { status: reason === undefined ? 200 : 503, type: PLAIN, body: `${reason ?? 'ok'}\n` }
  }

/** What Prometheus scrapes, of a registry of prom-client. */
export const exposition =
  (registry: { readonly contentType: string; metrics(): Promise<string> }): StatusRoute =>
  async () => ({ status: 200, type: registry.contentType, body: await registry.metrics() })

/**
 * Tells kubelet and Prometheus about a process: some paths, each of them a question without an input. It answers from what
 * the process knows by itself; that it answers at all says that the event loop turns.
 */
export const createStatusServer = (options: {
  port: number
  /** Where to listen. Unset: on all addresses, and with IPv6 also on those. */
  ip?: string | undefined
  routes: Readonly<Record<string, StatusRoute>>
  onError: (error: Error) => void
}): StatusServer => {
  const routes = new Map(Object.entries(options.routes))

  const answer = async (method: string | undefined, url: string | undefined): Promise<StatusAnswer> => {
    const route = routes.get(url?.split('?', 1)[0] ?? '')
    if (!route) return { status: 404, type: PLAIN, body: `Try ${[...routes.keys()].join(', ')}\n` }
    if (method !== 'GET' && method !== 'HEAD')
      return { status: 405, type: PLAIN, body: 'GET and HEAD only\n' }
    try {
      return await route()
    } catch (error) {
      options.onError(error as Error)
      return { status: 500, type: PLAIN, body: 'It broke: see the log\n' }
    }
  }

  // Nobody has anything to send: whoever is slow about asking is cut off.
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 5_000 }, (request, response) => {
    request.resume()
    void answer(request.method, request.url).then((found) => send(response, found, request.method === 'HEAD'))
  })

  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(options.port, options.ip, () => {
          server.off('error', reject)
          server.on('error', options.onError)
          resolve()
        })
      }),
    port: () => (server.address() as AddressInfo | null)?.port ?? options.port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const PLAIN = 'text/plain; charset=utf-8'

const send = (response: ServerResponse, { status, type, body }: StatusAnswer, headOnly: boolean): void => {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(status === 405 && { allow: 'GET, HEAD' }),
  })
  response.end(headOnly ? undefined : body)
}
