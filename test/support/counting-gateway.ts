import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { startNeonGateway } from '../../worker-runtime/local/neon-gateway.ts'

export type CountingGateway = {
  /** Of `startEdge`. */
  readonly bindings: Record<string, string>
  /** Round trips to the database so far, but for counts in the background: the texts of the statements of each. */
  readonly trips: string[][]
  stop(): Promise<void>
}

/** A gateway that notes what passes through it. */
export const startCountingGateway = async (target: string): Promise<CountingGateway> => {
  const gateway = await startNeonGateway({ target })
  const trips: string[][] = []

  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await text(incoming)
    const { query, queries } = JSON.parse(body) as { query?: string; queries?: { query: string }[] }
    const trip = queries?.map((one) => one.query) ?? [query ?? '']
    if (!trip.some((one) => one.includes('into edge_totals'))) trips.push(trip)
    const { method, url, headers } = incoming
    const upstream = request(`http://${gateway.address}${url}`, { method, headers } as object)
    upstream.on('error', () => outgoing.destroy())
    upstream.end(body)
    const [answer] = (await once(upstream, 'response')) as [IncomingMessage]
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  }

  // Longer than the functions keep a connection for the next request: else it may be closed as they send one.
  const server = createServer({ keepAliveTimeout: 65_000 }, (incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    bindings: { DATABASE_URL: gateway.connectionString, NEON_GATEWAY: `127.0.0.1:${port}` },
    trips,
    stop: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await Promise.all([closed, gateway.stop()])
    },
  }
}
