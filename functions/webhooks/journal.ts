import { createRedactor, type Redactor } from '../redaction.ts'
import type { Body, Headers } from './event.ts'

/** Headers and body as the journal keeps them: JSON, without what looks secret. */
export type Kept = { headers: string; body: string | null }

/** As deep as a body may be. */
const DEEPEST = 32
const HEADERS = { most: 100, longest: 1_000 }

/** Of a delivery that nobody has vouched for. */
const UNVERIFIED_HEADERS = { most: 50, longest: 200 }
const UNVERIFIED_CHARACTERS = 4_096

export const redactorOf = (secrets: readonly (string | null)[]): Redactor =>
  createRedactor(
    secrets.flatMap((secret) => (secret === null ? [] : [secret, secret.replace(/^whsec_/, '')])),
    { deepest: DEEPEST },
  )

export const keep = (redactor: Redactor, headers: Headers, body: Body): Kept => ({
  headers: keepHeaders(redactor, headers),
  body: JSON.stringify(keepBody(redactor, body)),
})

/** Of a delivery that was rejected: enough to see what it was. */
export const keepBeginning = (redactor: Redactor, headers: Headers, body: Body | null): Kept => {
  const kept = keepHeaders(redactor, headers, UNVERIFIED_HEADERS)
  if (body === null) return { headers: kept, body: null }
  const whole = keepBody(redactor, body)
  const text = typeof whole === 'string' ? whole : JSON.stringify(whole)
  const beginning = `${text.slice(0, UNVERIFIED_CHARACTERS).toWellFormed()}…`
  return { headers: kept, body: JSON.stringify(text.length > UNVERIFIED_CHARACTERS ? beginning : whole) }
}

const keepBody = (redactor: Redactor, body: Body): unknown =>
  body.ok ? redactor.value(body.value) : storable(redactor.unstructured(body.text))

const keepHeaders = (redactor: Redactor, headers: Headers, { most, longest } = HEADERS): string => {
  const entries = Object.entries(headers).slice(0, most)
  const short = entries.map(([name, value]) => [name.slice(0, longest), value.slice(0, longest)])
  return JSON.stringify(redactor.value(Object.fromEntries(short)))
}

/** Postgres has no NUL in a text. */
const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()
