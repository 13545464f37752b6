/**
 * Anybody can show a ticket, and it names the object that is to look for it. So the functions seal those that are issued, and
 * wake no object for one without its seal: who has not signed in makes none of them work.
 */
import type { KeyRing } from '../auth/key-ring.ts'
import { deriveBits, toHex } from '../auth/secrets.ts'

export const sealTicket = async (keys: KeyRing, ticket: string): Promise<string> =>
  `${ticket}.${await sealOf(keys, ticket)}`

/** The ticket within; undefined: it is none of ours. */
export const unsealTicket = async (keys: KeyRing, sealed: string): Promise<string | undefined> => {
  const [, ticket, seal] = /^([0-9a-f-]{36}\.[0-9a-f]{64})\.([0-9a-f]{64})$/.exec(sealed) ?? []
  return ticket !== undefined && seal === (await sealOf(keys, ticket)) ? ticket : undefined
}

const sealOf = async (keys: KeyRing, ticket: string): Promise<string> =>
  toHex(await deriveBits(keys, `the seal of ${ticket}`))
