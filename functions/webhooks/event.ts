/** What a delivery says: its body as a document, its headers, and the event's own id and type. */

import { type Documents, lookUp, parsePath } from '../../db/rules/paths.ts'
import { hashSecret } from '../auth/secrets.ts'
import { findUnstorable } from '../http/storable.ts'
import type { Place, Scheme } from './schemes.ts'
import { headerOf } from './verify.ts'

export type Headers = Readonly<Record<string, string>>

/** A body that is no document is kept as text. */
export type Body =
  | { readonly ok: true; readonly value: object }
  | { readonly ok: false; readonly text: string; readonly reason: string }

export type EventNames = { readonly id: string | null; readonly type: string | null }

/** Documents that filters and templates look into. */
export const ROOTS = ['$', '$headers', '$event'] as const

const MAX_DEPTH = 32
const MAX_NAME = 200

export const readBody = (bytes: Uint8Array<ArrayBuffer>): Body => {
  const text = new TextDecoder('utf-8', { fatal: false, ignoreBOM: false }).decode(bytes)
  const unreadable = (reason: string): Body => ({ ok: false, text, reason })
  let value: unknown
  try {
    // Text with a replacement character may have been no UTF-8, or just have it.
    if (text.includes('\ufffd')) new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
    value = LONG_NUMBER.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text)
  } catch {
    return unreadable('The body is not JSON in UTF-8. Have the sender send application/json.')
  }
  if (typeof value !== 'object' || value === null) return unreadable('The body is no JSON object or list.')
  const found = findUnstorable(value, MAX_DEPTH)
  if (found?.reason === 'depth') return unreadable(`The body is nested deeper than ${MAX_DEPTH} levels.`)
  if (found) return unreadable(`The body cannot be stored unchanged: ${found.pointer} ${found.detail}.`)
  return { ok: true, value }
}

/** Sixteen digits in a row, or an exponent: the least that can be a number which a double does not hold. */
const LONG_NUMBER = /\d{16}|\d[eE]\+?\d{3}/

/** The sender cannot be told to send it otherwise: what a double would change becomes text, digit for digit. */
const keepDigits = (_key: string, value: unknown, context?: { source?: string }): unknown => {
  if (typeof value !== 'number') return value
  const written = context?.source ?? String(value)
  const isRounded = /^-?\d+$/.test(written) && !Number.isSafeInteger(value)
  return isRounded || !Number.isFinite(value) ? written : value
}

export const namesOf = async (scheme: Scheme, headers: Headers, body: Body): Promise<EventNames> => {
  const find = (place: Place): string | null => {
    if ('header' in place) return headerOf(headers, place.header) || null
    const path = parsePath(place.path)
    const found = path && body.ok ? lookUp({ $: body.value }, path) : undefined
    return typeof found === 'number' || (typeof found === 'string' && found !== '') ? String(found) : null
  }
  const [id, type] = [find(scheme.id), find(scheme.type)]
  return {
    id: id === null ? null : await shortened(id),
    type: type?.slice(0, MAX_NAME).toWellFormed() ?? null,
  }
}

/** An id that is too long for a key goes by its hash: it is told from others just as well. */
const shortened = async (id: string): Promise<string> =>
  id.length <= MAX_NAME ? id : `sha256:${await hashSecret(id)}`

export const documentsOf = (event: {
  body: unknown
  headers: Headers
  names: EventNames
  source: { id: string; name: string }
  deliveryId: string
  receivedAt: Date
}): Documents => ({
  $: event.body,
  $headers: event.headers,
  // What the event does not have is not there, so that a default can stand in.
  $event: {
    ...(event.names.id !== null && { id: event.names.id }),
    ...(event.names.type !== null && { type: event.names.type }),
    source: event.source.name,
    source_id: event.source.id,
    delivery_id: event.deliveryId,
    received_at: event.receivedAt.toISOString(),
  },
})
