import { hashSecret, toHex } from '../auth/secrets.ts'
import type { Follower } from './subscriber.ts'

/** What a browser shows instead of a token, which it can put into no header of a WebSocket. */
export type Ticket = { ticket: string; expires_at: string }

const GOOD_FOR_MS = 30_000
/** Of one organisation, at a time. */
const MOST_OPEN = 1_000

type StoredTicket = Follower & { until: number }

/** The storage of the organisation's object: between the two requests it may have been put to sleep. */
export type TicketStore = Pick<DurableObjectStorage, 'get' | 'put' | 'delete' | 'list'>

/** It begins with the organisation, so that whoever it is shown to finds the object that knows it. */
export const orgOfTicket = (ticket: string): string | undefined =>
  /^([0-9a-f-]{36})\.[0-9a-f]{64}$/.exec(ticket)?.[1]

const keyOf = async (ticket: string): Promise<string> => `ticket:${await hashSecret(ticket)}`

/** Undefined: too many are open. */
export const issueTicket = async (
  store: TicketStore,
  follower: Follower,
  now: number,
): Promise<Ticket | undefined> => {
  const open = await store.list<StoredTicket>({ prefix: 'ticket:' })
  const over = [...open].filter(([, { until }]) => until <= now).map(([key]) => key)
  // A hundred and twenty-eight at a time is what the storage takes.
  await store.delete(over.slice(0, 128))
  if (open.size - over.length >= MOST_OPEN) return undefined
  const ticket = `${follower.member.orgId}.${toHex(crypto.getRandomValues(new Uint8Array(32)))}`
  const until = now + GOOD_FOR_MS
  await store.put(await keyOf(ticket), { ...follower, until } satisfies StoredTicket)
  return { ticket, expires_at: new Date(until).toISOString() }
}

/** Good once: of two who show it at the same time the second finds it gone. */
export const redeemTicket = async (
  store: TicketStore,
  ticket: string,
  now: number,
): Promise<Follower | undefined> => {
  const key = await keyOf(ticket)
  const found = await store.get<StoredTicket>(key)
  if (!found || !(await store.delete(key)) || found.until <= now) return undefined
  return { member: found.member, isAdmin: found.isAdmin, expiresAt: found.expiresAt }
}
