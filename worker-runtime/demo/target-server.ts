import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { UsageError } from '../command.ts'
import { type Kind, kindOf } from './kinds.ts'
import { drawRuntimeMs } from './runtimes.ts'

export type TargetServer = { readonly url: string; stop(): void }

/** The services that the tenants' jobs call: it takes as long, and fails as often, as the kind of the job says. */
export const startTargetServer = async (options: { port: number; seed: number }): Promise<TargetServer> => {
  const random = createRandom(options.seed)
  const server = createServer((request, response) => {
    request.resume()
    const kind = kindOf(nameIn(request))
    if (!kind) return void response.end()
    const kb = Number(request.headers['content-length'] ?? 0) / 1024
    const ms = drawRuntimeMs(kind.runtime, { kb, atMs: Date.now(), random })
    const reply = setTimeout(() => answer(kind, response, random), ms)
    response.once('close', () => clearTimeout(reply))
  })
  await listen(server, options.port)
  return {
    url: `http://127.0.0.1:${options.port}`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const listen = (server: ReturnType<typeof createServer>, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = `Port ${port}, which the jobs of the demo call, is taken. Does another demo run?`
      reject(error.code === 'EADDRINUSE' ? new UsageError(taken) : error)
    })
    server.listen({ port, host: '127.0.0.1', exclusive: true }, resolve)
  })

const nameIn = ({ url = '/' }: IncomingMessage): string => new URL(url, 'http://demo').pathname.slice(1)

const answer = ({ type, fails }: Kind, response: ServerResponse, random: () => number): void => {
  if (fails && random() < fails.share) {
    const { status, message, retryAfterSeconds } = fails
    if (retryAfterSeconds) response.setHeader('retry-after', retryAfterSeconds)
    response.writeHead(status, { 'content-type': 'text/plain' }).end(message)
    return
  }
  if (type === 'etl') response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(FEED)
  else response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
}

const SECTIONS = ['politics', 'sports', 'culture', 'science']
const FEED = Array.from({ length: 200 }, (_, n) =>
  JSON.stringify({ id: n, section: SECTIONS[n % SECTIONS.length], published: n % 5 !== 0 }),
).join('\n')
