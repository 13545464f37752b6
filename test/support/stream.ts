import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { Edge } from './edge.ts'
import { waitFor } from './wait-for.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read frames as they come and assert on what they find
export type Frame = { type: string } & Record<string, any>
export type StreamedEvent = {
  cursor: string
  type: string
  job: { id: string; name: string; type: string; status: string; tags: string[]; attempts: number }
  at: string
  reason: string | null
}

export type StreamClient = {
  readonly frames: Frame[]
  readonly protocol: string
  /** All so far, in the order in which they came. */
  events(): StreamedEvent[]
  /** Each as `ready name`. */
  told(): string[]
  until(what: string, condition: (client: StreamClient) => unknown): Promise<void>
  frame(type: string): Promise<Frame>
  send(frame: object | string): void
  /** The last event, or where it began. */
  cursor(): string
  readonly closed: Promise<{ code: number; reason: string }>
  close(): void
}

export type StreamOptions = {
  token?: string
  ticket?: string
  query?: Record<string, string>
  /** Gives credit back for each event. On unless the test is about that. */
  gives?: boolean
  headers?: Record<string, string>
  /** Told of each as it arrives. */
  onEvent?: (event: StreamedEvent) => void
  onFrame?: (frame: Frame) => void
}

/** A client of the stream. Resolves after its greeting; rejects with `answered 401: …` if there is no socket. */
export const openStream = async (edge: Pick<Edge, 'url'>, options: StreamOptions): Promise<StreamClient> => {
  const { token, ticket, query = {}, gives = true, headers = {} } = options
  const url = new URL(`/jobs/stream?${new URLSearchParams(query)}`, edge.url.replace('http', 'ws'))
  const protocols = ticket === undefined ? [] : ['smartqueue.v1', `ticket.${ticket}`]
  // Its own end: workerd closes the connection of a socket that was closed only when the object hibernates.
  const patience = { closeTimeout: 100 }
  const socket = new WebSocket(url, protocols, {
    ...patience,
    headers: { ...headers, ...(token && { authorization: `Bearer ${token}` }) },
  })
  const frames: Frame[] = []
  const events = () => frames.flatMap((frame) => (frame.type === 'events' ? frame.events : []))
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }))
  })
  socket.on('message', (data) => {
    const frame = JSON.parse(String(data)) as Frame
    frames.push(frame)
    options.onFrame?.(frame)
    if (frame.type === 'events') for (const event of frame.events) options.onEvent?.(event)
    if (gives && frame.type === 'events') send({ type: 'credit', n: frame.events.length })
  })
  const send = (frame: object | string): void =>
    socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  const client: StreamClient = {
    frames,
    get protocol() {
      return socket.protocol
    },
    events,
    told: () => events().map(({ type, job }) => `${type.slice('job.'.length)} ${job.name}`),
    until: async (what, condition) => {
      await waitFor(what, () => condition(client))
    },
    frame: (type) => waitFor(`a frame ${type}`, () => frames.find((frame) => frame.type === type)),
    send,
    cursor: () =>
      events().at(-1)?.cursor ?? frames.findLast(({ cursor }) => typeof cursor === 'string')?.cursor,
    closed,
    close: () => socket.close(),
  }
  await opened(socket)
  if (ticket === undefined) await client.frame('hello')
  return client
}

const opened = (socket: WebSocket): Promise<unknown> =>
  new Promise((resolve, reject) => {
    socket.on('open', resolve)
    socket.on('error', reject)
    socket.on('unexpected-response', async (_request, response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      await once(response, 'end')
      reject(new Error(`answered ${response.statusCode}: ${text}`))
    })
  })
