import { createRoute, z } from '@hono/zod-openapi'
import type { Context, MiddlewareHandler } from 'hono'
import { ping } from '../../db/queries/notifications.ts'
import { access } from '../auth/permit.ts'
import { memberOf } from '../auth/principal.ts'
import type { AppEnv } from '../context.ts'
import { jsonContent, problems } from '../http/openapi.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { openSocket, type Proof, streamOf } from './object-link.ts'
import { closedSocket, problemOf } from './refusals.ts'
import { streamCursor, streamEvent, streamQuery, ticket, toWish } from './schemas.ts'
import { translate } from './sse.ts'
import type { Follower } from './subscriber.ts'
import { sealTicket, unsealTicket } from './ticket-seal.ts'

/** Before the routes with an id, which would take `stream` and `events` for one. */
export const streamRoutes = () =>
  createRouter()
    .openapi(ticketRoute, async (c) => {
      // Whether they are let in at all is looked at first.
      await c.get('run')(ping())
      const follower = followerOf(c)
      const { keys, streams } = c.get('services')
      const issued = await streamOf(streams.objects, follower.member.orgId).issueTicket(follower)
      if (!issued)
        throw new ProblemError('limit-reached', 'Too many tickets are open. Use some, or wait 30 s.')
      return c.json({ ticket: await sealTicket(keys, issued.ticket), expires_at: issued.expires_at }, 201)
    })
    .openapi(socketRoute, async (c) => {
      if (c.req.header('upgrade')?.toLowerCase() !== 'websocket') throw notUpgraded()
      const shown = ticketOf(c)
      const { keys, streams } = c.get('services')
      const ticket = shown && (await unsealTicket(keys, shown))
      if (shown !== undefined && !ticket) return switchProtocols(c, closedSocket('ticket'))
      const proof: Proof = ticket ? { ticket } : { follower: followerOf(c) }
      const opened = await openSocket(streams.objects, { proof, wish: toWish(c.req.valid('query')) })
      if (typeof opened !== 'string') return switchProtocols(c, opened)
      // A page is told nothing of an answer that is no socket, but the code of one that closes.
      if (shown === undefined) throw problemOf(opened)
      return switchProtocols(c, closedSocket(opened))
    })
    .openapi(eventsRoute, async (c) => {
      const { 'last-event-id': last } = c.req.valid('header')
      const wish = toWish(c.req.valid('query'))
      const opened = await openSocket(c.get('services').streams.objects, {
        proof: { follower: followerOf(c) },
        wish: { ...wish, place: last ?? wish.place },
      })
      if (typeof opened === 'string') throw problemOf(opened)
      return c.body(translate(opened), 200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'x-accel-buffering': 'no',
      })
    })

const followerOf = (c: Context<AppEnv>): Follower => {
  const principal = c.get('principal')
  return {
    member: memberOf(principal),
    isAdmin: principal.role === 'admin',
    expiresAt: principal.expires_at,
  }
}

const PROTOCOL = 'smartqueue.v1'

const offered = (c: Context<AppEnv>): string[] =>
  (c.req.header('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim())

const ticketOf = (c: Context<AppEnv>): string | undefined =>
  offered(c)
    .find((name) => name.startsWith('ticket.'))
    ?.slice('ticket.'.length)

const switchProtocols = (c: Context<AppEnv>, webSocket: WebSocket): Response =>
  new Response(null, {
    status: 101,
    webSocket,
    headers: offered(c).includes(PROTOCOL) ? { 'sec-websocket-protocol': PROTOCOL } : {},
  })

const notUpgraded = (): ProblemError =>
  new ProblemError(
    'upgrade-required',
    'This is a WebSocket: connect to it with a client for those, or use GET /jobs/events.',
    { headers: { upgrade: 'websocket' } },
  )

const byBearer = access('jobs:read')

/** A ticket was paid for with a token. Whether it is any good its object knows. */
const unlessTicket: MiddlewareHandler<AppEnv> = (c, next) => {
  const [permit] = byBearer.middleware
  return ticketOf(c) === undefined && permit ? permit(c, next) : next()
}

const ticketRoute = createRoute({
  method: 'post',
  path: '/jobs/stream/tickets',
  tags: ['stream'],
  summary: 'Get a ticket for the stream',
  description:
    'For pages, which cannot send a token with a WebSocket: `new WebSocket(url, ["smartqueue.v1", "ticket." + ticket])`. ' +
    'Good once, for 30 seconds. The socket closes when the token ends that the ticket was got with.',
  ...byBearer,
  responses: {
    201: jsonContent(ticket, 'The ticket'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'limit-reached'),
  },
})

const refusals = problems('unauthenticated', 'forbidden', 'not-found', 'invalid-request', 'limit-reached')

const socketRoute = createRoute({
  method: 'get',
  path: '/jobs/stream',
  tags: ['stream'],
  summary: 'Follow the jobs of the organisation (WebSocket)',
  description:
    'Every change of state in the order of the commits, from `cursor` on without gaps or repeats. With a token or an API ' +
    'key in the header, or with a ticket in the subprotocol. Frames and close codes: docs/stream.md.',
  ...byBearer,
  middleware: unlessTicket,
  request: { query: streamQuery },
  responses: {
    101: { description: 'A WebSocket of the subprotocol `smartqueue.v1`' },
    ...refusals,
    ...problems('upgrade-required'),
  },
})

const eventsRoute = createRoute({
  method: 'get',
  path: '/jobs/events',
  tags: ['stream'],
  summary: 'Follow the jobs of the organisation (server-sent events)',
  description:
    'The same as GET /jobs/stream for clients without WebSockets. The `id` of an event is its cursor; a client that comes ' +
    'again with `Last-Event-ID` misses nothing.',
  ...byBearer,
  request: {
    query: streamQuery,
    headers: z.object({
      'last-event-id': streamCursor.optional().openapi({
        type: 'string',
        description: 'As `cursor`, which it overrules.',
      }),
    }),
  },
  responses: {
    200: {
      description: 'Events, until one side closes',
      content: { 'text/event-stream': { schema: streamEvent } },
    },
    ...refusals,
  },
})
