/**
 * Whether a delivery comes from whoever has the secret. The bytes are verified as they came, before anything is read out
 * of them, by `crypto.subtle.verify`, which takes the same time whatever it is given.
 */
import { fromBase64Text, fromHex } from './bytes.ts'
import type { HeaderEntries, Scheme } from './schemes.ts'

export type Verdict = { ok: true } | { ok: false; reason: string }

/** Names of headers are in lower case. */
export type Received = { headers: Readonly<Record<string, string>>; bytes: Uint8Array<ArrayBuffer> }

/** The second one is good until then. */
export type Secrets = { current: string; previous: string | null; previousExpiresAtMs: number }

/** A header could name thousands, and each costs a look at the whole body. */
const MOST_SIGNATURES = 10

export const verify = async (
  scheme: Scheme,
  { headers, bytes }: Received,
  secrets: Secrets,
  nowMs: number,
): Promise<Verdict> => {
  const { signature, timestamp, id } = scheme
  const signatures = entriesOf(headers, signature)
  if (signatures.length === 0) return rejected(`The header ${signature.header} has no signature.`)
  const [sentAt = ''] = timestamp ? entriesOf(headers, timestamp) : []
  if (timestamp && !sentAt) return rejected(`The header ${timestamp.header} has no timestamp.`)
  const idHeader = 'header' in id ? id.header : undefined
  const sentId = idHeader === undefined ? undefined : headerOf(headers, idHeader)
  if (scheme.content.includes('{id}') && !sentId) return rejected(`The header ${idHeader} is missing.`)
  const content = contentOf(scheme.content, { id: sentId ?? '', timestamp: sentAt, body: bytes })
  if (!(await isSigned(scheme, content, signatures, goodSecrets(secrets, nowMs)))) {
    return rejected('The signature does not match.')
  }
  // Only now: whether a forged timestamp is old says nothing.
  const fault = timestamp && timestampFault(sentAt, timestamp.toleranceSeconds, nowMs)
  return fault ? rejected(fault) : { ok: true }
}

/** Own ones only: a header may be called `constructor`. */
export const headerOf = (headers: Received['headers'], name: string): string | undefined =>
  Object.hasOwn(headers, name) ? headers[name] : undefined

const rejected = (reason: string): Verdict => ({ ok: false, reason })

const entriesOf = (headers: Received['headers'], entries: HeaderEntries): string[] => {
  const { header, separator, prefix, isBareToo } = entries
  const value = headerOf(headers, header)
  if (!value) return []
  return (separator === null ? [value] : value.split(separator, 100))
    .map((entry) => entry.trim())
    .flatMap((entry) => {
      if (entry.startsWith(prefix)) return [entry.slice(prefix.length)]
      return isBareToo ? [entry] : []
    })
    .filter((entry) => entry !== '')
    .slice(0, MOST_SIGNATURES)
}

const goodSecrets = ({ current, previous, previousExpiresAtMs }: Secrets, nowMs: number): string[] =>
  previous !== null && nowMs < previousExpiresAtMs ? [current, previous] : [current]

/** Everything but the body is text. */
const contentOf = (
  form: string,
  { body, ...texts }: { id: string; timestamp: string; body: Uint8Array<ArrayBuffer> },
): Uint8Array<ArrayBuffer> => {
  const [before = '', after = ''] = form
    .split('{body}', 2)
    .map((text) => text.replace(/\{(id|timestamp)\}/g, (_, name: 'id' | 'timestamp') => texts[name]))
  if (before === '' && after === '') return body
  const [head, tail] = [encode(before), encode(after)]
  const content = new Uint8Array(head.length + body.length + tail.length)
  content.set(head)
  content.set(body, head.length)
  content.set(tail, head.length + body.length)
  return content
}

const encode = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(text))

const isSigned = async (
  scheme: Scheme,
  content: Uint8Array<ArrayBuffer>,
  signatures: readonly string[],
  secrets: readonly string[],
): Promise<boolean> => {
  const decode = scheme.encoding === 'hex' ? fromHex : fromBase64Text
  const candidates = signatures.flatMap((signature) => decode(signature) ?? [])
  for (const secret of secrets) {
    const key = await importKey(scheme, secret)
    for (const candidate of candidates) {
      if (await crypto.subtle.verify('HMAC', key, candidate, content)) return true
    }
  }
  return false
}

const HASHES = { sha1: 'SHA-1', sha256: 'SHA-256', sha384: 'SHA-384', sha512: 'SHA-512' } as const

const importKey = ({ algorithm, key }: Scheme, secret: string): Promise<CryptoKey> => {
  const hmac = { name: 'HMAC', hash: HASHES[algorithm] }
  return crypto.subtle.importKey('raw', keyBytes(key, secret), hmac, false, ['verify'])
}

const WHSEC = 'whsec_'

const keyBytes = (key: Scheme['key'], secret: string): Uint8Array<ArrayBuffer> =>
  key === 'text' ? encode(secret) : (secretBytes(secret) ?? encode(secret))

/** What the base64 of a secret stands for, with `whsec_` before it or not. Undefined if it is none. */
export const secretBytes = (secret: string): Uint8Array<ArrayBuffer> | undefined =>
  fromBase64Text(secret.startsWith(WHSEC) ? secret.slice(WHSEC.length) : secret)

const timestampFault = (sentAt: string, toleranceSeconds: number, nowMs: number): string | undefined => {
  if (!/^\d{1,12}$/.test(sentAt)) return 'The timestamp is not a Unix timestamp in seconds.'
  if (Math.abs(Math.floor(nowMs / 1000) - Number(sentAt)) <= toleranceSeconds) return undefined
  return `The timestamp is more than ${toleranceSeconds} seconds in the past or future.`
}
