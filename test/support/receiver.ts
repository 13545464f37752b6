import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Received = { path: string; headers: Record<string, string>; body: string }

type Reply = { status: number; headers?: Record<string, string>; body?: string }

export type Receiver = {
  readonly url: string
  /** What has arrived, in order. */
  readonly received: Received[]
  of(path: string): Received[]
  /** What requests for a path get, one after the other; then, and unless told, 204. */
  reply(path: string, ...replies: Reply[]): void
  stop(): Promise<void>
}

/** What callbacks of tests are sent to. */
export const startReceiver = async (): Promise<Receiver> => {
  const received: Received[] = []
  const replies = new Map<string, Reply[]>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const path = request.url ?? ''
    const headers = request.headers as Record<string, string>
    received.push({ path, headers, body: Buffer.concat(chunks).toString() })
    const reply = replies.get(path)?.shift() ?? { status: 204 }
    response.writeHead(reply.status, reply.headers).end(reply.body)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    of: (path) => received.filter((one) => one.path === path),
    reply: (path, ...next) => void replies.set(path, next),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
