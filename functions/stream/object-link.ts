import type { Refusal } from './close-codes.ts'
import type { JobStream } from './job-stream.ts'
import type { Follower, Wish } from './subscriber.ts'
import { orgOfTicket } from './tickets.ts'

/** One object for each organisation. */
export type StreamObjects = DurableObjectNamespace<JobStream>

export type Proof = { follower: Follower } | { ticket: string }
export type Connection = { proof: Proof; wish: Wish }

export const streamOf = (objects: StreamObjects, orgId: string) => objects.get(objects.idFromName(orgId))

/** A socket to the object of the organisation, or why there is none. */
export const openSocket = async (
  objects: StreamObjects,
  connection: Connection,
): Promise<WebSocket | Refusal> => {
  const { proof } = connection
  const orgId = 'ticket' in proof ? orgOfTicket(proof.ticket) : proof.follower.member.orgId
  if (orgId === undefined) return 'ticket'
  const url = new URL('https://stream/')
  url.searchParams.set('connection', JSON.stringify(connection))
  const response = await streamOf(objects, orgId).fetch(url, { headers: { upgrade: 'websocket' } })
  if (response.webSocket) return response.webSocket
  if (response.status === 403) return ((await response.json()) as { refusal: Refusal }).refusal
  throw new Error(`The stream of an organisation answered ${response.status}`)
}

/** Only the functions reach the object: what they have checked is taken as it is. */
export const decodeConnection = (request: Request): Connection =>
  JSON.parse(new URL(request.url).searchParams.get('connection') ?? '')
