import { createRedactor, type Redactor } from '../../db/rules/redaction.ts'
import type { Body, Headers } from './event.ts'

/** Headers and body as the journal keeps them: JSON, without what looks secret. */
export type Kept = { headers: string; body: string | null }

/** As deep as a body may be. */
const DEEPEST = 32
const MOST_HEADERS = 100
const LONGEST_HEADER = 1_000

/** Of a body that nobody has vouched for. */
const UNVERIFIED_CHARACTERS = 4_096

export const redactorOf = (secrets: readonly (string | null)[]): Redactor =>
  createRedactor(
    secrets.flatMap((secret) => (secret === null ? [] : [secret, secret.replace(/^whsec_/, '')])),
    { deepest: DEEPEST },
  )

export const keep = (redactor: Redactor, headers: Headers, body: Body): Kept => ({
  headers: keepHeaders(redactor, headers),
  body: JSON.stringify(body.ok ? redactor.value(body.value) : storable(redactor.unstructured(body.text))),
})

/** Of a delivery that was rejected: enough to see what it was. */
export const keepBeginning = (redactor: Redactor, headers: Headers, body: Body | null): Kept => {
  if (body === null) return { headers: keepHeaders(redactor, headers), body: null }
  const { body: whole, headers: kept } = keep(redactor, headers, body)
  if (whole === null || whole.length <= UNVERIFIED_CHARACTERS) return { headers: kept, body: whole }
  const text = body.ok ? whole : storable(redactor.unstructured(body.text))
  return { headers: kept, body: JSON.stringify(`${text.slice(0, UNVERIFIED_CHARACTERS).toWellFormed()}…`) }
}

const keepHeaders = (redactor: Redactor, headers: Headers): string => {
  const entries = Object.entries(headers).slice(0, MOST_HEADERS)
  const short = entries.map(([name, value]) => [
    name.slice(0, LONGEST_HEADER),
    value.slice(0, LONGEST_HEADER),
  ])
  return JSON.stringify(redactor.value(Object.fromEntries(short)))
}

/** Postgres has no NUL in a text. */
const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()
