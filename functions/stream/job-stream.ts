import { DurableObject } from 'cloudflare:workers'
import { readSummary } from '../analytics/summary.ts'
import type { RawBindings } from '../bindings.ts'
import { DatabaseUnavailable } from '../database-errors.ts'
import { logFailure } from '../http/log.ts'
import { servicesFor } from '../services.ts'
import type { Refusal } from './close-codes.ts'
import { createHub, type Hub } from './hub.ts'
import { decodeConnection } from './object-link.ts'
import type { Follower, Socket, Subscriber } from './subscriber.ts'
import { issueTicket, redeemTicket, type Ticket } from './tickets.ts'
import { createTopics } from './topics.ts'

const OPEN = 1

/** An error would cross over to the function as one without a class. */
const unavailable = (error: unknown): Refusal => {
  if (error instanceof DatabaseUnavailable) return 'unavailable'
  throw error
}

/**
 * The object of one organisation, which the platform wants to be a class: what it does is in `hub.ts`. It holds sockets of
 * clients, and none of Postgres.
 */
export class JobStream extends DurableObject<RawBindings> {
  readonly #hub: Hub
  readonly #sockets = new WeakMap<WebSocket, Socket>()

  constructor(ctx: DurableObjectState, env: RawBindings) {
    super(ctx, env)
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
    this.#hub = createHub({
      database: servicesFor(env).database,
      topics: createTopics(readSummary),
      storage: ctx.storage,
      sockets: () =>
        ctx
          .getWebSockets()
          .filter(({ readyState }) => readyState === OPEN)
          .map((ws) => this.#socketOf(ws)),
      onError: logFailure,
    })
  }

  issueTicket(follower: Follower): Promise<Ticket | undefined> {
    return issueTicket(this.ctx.storage, follower, Date.now())
  }

  nudge(): number {
    return this.#hub.nudge()
  }

  /** Answers with an open socket, or why there is none. */
  override async fetch(request: Request): Promise<Response> {
    const { proof, wish } = decodeConnection(request)
    const follower =
      'ticket' in proof ? await redeemTicket(this.ctx.storage, proof.ticket, Date.now()) : proof.follower
    const { 0: client, 1: server } = new WebSocketPair()
    const open = (subscriber: Subscriber): Socket => {
      this.ctx.acceptWebSocket(server)
      server.serializeAttachment(subscriber)
      return this.#socketOf(server)
    }
    const refusal = follower ? await this.#hub.connect(follower, wish, open).catch(unavailable) : 'ticket'
    return refusal
      ? Response.json({ refusal }, { status: 403 })
      : new Response(null, { status: 101, webSocket: client })
  }

  override webSocketMessage(ws: WebSocket, message: string | ArrayBuffer): void {
    this.#hub.receive(this.#socketOf(ws), message)
  }

  override webSocketClose(ws: WebSocket): void {
    ws.close()
  }

  override alarm(): Promise<void> {
    return this.#hub.wake()
  }

  #socketOf(ws: WebSocket): Socket {
    const known = this.#sockets.get(ws)
    if (known) return known
    const subscriber = ws.deserializeAttachment() as Subscriber
    const socket: Socket = {
      subscriber,
      // It may have gone a moment ago.
      send: (text) => void (ws.readyState === OPEN && ws.send(text)),
      close: (code, reason) => ws.close(code, reason),
      save: () => ws.serializeAttachment(subscriber),
    }
    this.#sockets.set(ws, socket)
    return socket
  }
}
