import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ApiAnswer } from './external-metrics.ts'

/** What the server shows, and whose certificates it takes. */
export type TlsContext = { readonly cert: string; readonly key: string; readonly ca: string }

export type TlsServer = {
  /** Resolves when it listens. */
  start(): Promise<void>
  port(): number
  /** For connections from now on; open ones end with their next answer. Throws if key and certificate do not fit. */
  change(context: TlsContext): void
  /** What has been asked is still answered. */
  stop(): Promise<void>
}

const MIN_VERSION = { minVersion: 'TLSv1.2' } as const

/** A cluster has few API servers, each with few connections. */
const MAX_CONNECTIONS = 200
/** Go keeps idle connections for 90 s: to end them earlier would lose requests that are on their way. */
const KEEP_ALIVE_MS = 120_000
/** Longer than any answer takes. */
const STOP_MS = 5_000

/** Speaks only to clients whose certificate the CA has signed. */
export const createTlsServer = (options: {
  port: number
  context: TlsContext
  answer: (request: IncomingMessage, commonName: string | undefined) => Promise<ApiAnswer>
  onRefused: (error: Error) => void
  onError: (error: Error) => void
}): TlsServer => {
  // Those who have connected under another context were let in by rules that hold no more.
  let current = new WeakSet<TLSSocket>()

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const socket = request.socket as TLSSocket
    request.resume()
    const answer = await options.answer(request, commonNameOf(socket))
    send(response, answer, { close: !current.has(socket) })
  }

  const server = createServer(
    {
      ...MIN_VERSION,
      ...options.context,
      requestCert: true,
      rejectUnauthorized: true,
      handshakeTimeout: 10_000,
      headersTimeout: 10_000,
      requestTimeout: 10_000,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => {
      serve(request, response).catch((error: Error) => {
        options.onError(error)
        response.destroy()
      })
    },
  )
  server.maxConnections = MAX_CONNECTIONS
  server.on('secureConnection', (socket) => current.add(socket))
  server.on('tlsClientError', options.onRefused)

  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(options.port, () => {
          server.off('error', reject)
          server.on('error', options.onError)
          resolve()
        })
      }),
    port: () => (server.address() as AddressInfo | null)?.port ?? options.port,
    change: (context) => {
      server.setSecureContext({ ...MIN_VERSION, ...context })
      current = new WeakSet()
      server.closeIdleConnections()
    },
    stop: async () => {
      // Nobody is to stay on: what is being answered is answered, and then closed.
      current = new WeakSet()
      const timer = setTimeout(() => server.closeAllConnections(), STOP_MS)
      await new Promise((resolve) => server.close(resolve))
      clearTimeout(timer)
    },
  }
}

/** The last, if a certificate has several: as Kubernetes takes them. */
const commonNameOf = (socket: TLSSocket): string | undefined => {
  const name: string | string[] | undefined = socket.getPeerCertificate().subject?.CN
  return Array.isArray(name) ? name.at(-1) : name
}

const send = (response: ServerResponse, { status, body }: ApiAnswer, { close }: { close: boolean }): void => {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-cache, private',
    ...(status === 405 && { allow: 'GET' }),
    ...(close && { connection: 'close' }),
  })
  response.end(text)
}
