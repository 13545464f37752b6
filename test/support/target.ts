import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Target = {
  readonly url: string
  /** Paths of the requests that have arrived, in order. */
  readonly arrived: string[]
  /** Answers all requests that wait, and those that come. */
  release(): void
  stop(): Promise<void>
}

/** What http jobs of tests call. `/ok` answers, `/wait…` answers when released, `/fail…` answers 500. */
export const startTarget = async (): Promise<Target> => {
  const arrived: string[] = []
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? ''
    arrived.push(path)
    if (path.startsWith('/wait')) await released
    response.writeHead(path.startsWith('/fail') ? 500 : 200, { 'content-type': 'text/plain' })
    response.end(path.startsWith('/nul') ? 'a\0b' : 'done')
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    arrived,
    release,
    stop: async () => {
      release()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
