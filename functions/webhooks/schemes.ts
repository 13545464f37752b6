/**
 * How senders sign, as data: which header has the signature, what is signed, where the event's id and type stand. One
 * verifier (`verify.ts`) goes by it. What is signed is written with `{id}`, `{timestamp}` and `{body}`.
 */
import type { WebhookScheme } from '../../db/queries/webhook-sources.ts'

export const ALGORITHMS = ['sha256', 'sha512', 'sha384', 'sha1'] as const
export const ENCODINGS = ['hex', 'base64'] as const

export type Scheme = {
  readonly algorithm: (typeof ALGORITHMS)[number]
  readonly encoding: (typeof ENCODINGS)[number]
  /** What the key is: the secret as it is written, or the bytes that its base64 stands for, after `whsec_`. */
  readonly key: 'text' | 'base64'
  readonly signature: HeaderEntries
  /** The Unix timestamp in seconds at which it was sent, and the inclusive tolerance in either direction. */
  readonly timestamp: (HeaderEntries & { readonly toleranceSeconds: number }) | null
  readonly content: string
  readonly id: Place
  readonly type: Place
}

/** Those entries of a header that begin with the prefix, without it. One header may have several signatures. */
export type HeaderEntries = {
  readonly header: string
  readonly separator: string | null
  readonly prefix: string
  /** Entries without the prefix are taken, too. */
  readonly isBareToo?: boolean
}

/** Names of headers are in lower case; a path looks into the body. */
export type Place = { readonly header: string } | { readonly path: string }

export const TOLERANCE_SECONDS = 300

const whole = (header: string): HeaderEntries => ({ header, separator: null, prefix: '' })

export const PRESETS: Record<Exclude<WebhookScheme, 'hmac'>, Scheme> = {
  /** X-Hub-Signature-256: sha256=<hex> */
  github: {
    algorithm: 'sha256',
    encoding: 'hex',
    key: 'text',
    signature: { header: 'x-hub-signature-256', separator: null, prefix: 'sha256=' },
    timestamp: null,
    content: '{body}',
    id: { header: 'x-github-delivery' },
    type: { header: 'x-github-event' },
  },
  /** Stripe-Signature: t=<seconds>,v1=<hex>,v1=<hex>,v0=… */
  stripe: {
    algorithm: 'sha256',
    encoding: 'hex',
    key: 'text',
    signature: { header: 'stripe-signature', separator: ',', prefix: 'v1=' },
    timestamp: {
      header: 'stripe-signature',
      separator: ',',
      prefix: 't=',
      toleranceSeconds: TOLERANCE_SECONDS,
    },
    content: '{timestamp}.{body}',
    id: { path: '$.id' },
    type: { path: '$.type' },
  },
  /** webhook-signature: v1,<base64> v1,<base64> v1a,… */
  'standard-webhooks': {
    algorithm: 'sha256',
    encoding: 'base64',
    key: 'base64',
    signature: { header: 'webhook-signature', separator: ' ', prefix: 'v1,' },
    timestamp: { ...whole('webhook-timestamp'), toleranceSeconds: TOLERANCE_SECONDS },
    content: '{id}.{timestamp}.{body}',
    id: { header: 'webhook-id' },
    type: { path: '$.type' },
  },
}

/** What a source of the scheme `hmac` may say. */
export type HmacSettings = {
  signature_header?: string | undefined
  algorithm?: Scheme['algorithm'] | undefined
  encoding?: Scheme['encoding'] | undefined
  /** Before the signature. Unless it is given, the name of the algorithm and `=` may stand there or not. */
  prefix?: string | undefined
  timestamp_header?: string | undefined
  tolerance_seconds?: number | undefined
  content?: string | undefined
  id_header?: string | undefined
  id_path?: string | undefined
  type_header?: string | undefined
  type_path?: string | undefined
}

export const schemeOf = (scheme: WebhookScheme, settings: HmacSettings): Scheme =>
  scheme === 'hmac' ? hmacScheme(settings) : PRESETS[scheme]

const hmacScheme = (settings: HmacSettings): Scheme => {
  const { algorithm = 'sha256', encoding = 'hex', prefix, timestamp_header, id_path, type_path } = settings
  const { tolerance_seconds: toleranceSeconds = TOLERANCE_SECONDS } = settings
  const timestamp = timestamp_header === undefined ? null : { ...whole(timestamp_header), toleranceSeconds }
  return {
    algorithm,
    encoding,
    key: 'text',
    signature: {
      header: settings.signature_header ?? 'x-signature',
      separator: null,
      prefix: prefix ?? `${algorithm}=`,
      isBareToo: prefix === undefined,
    },
    timestamp,
    content: settings.content ?? (timestamp ? '{timestamp}.{body}' : '{body}'),
    id: id_path === undefined ? { header: settings.id_header ?? 'x-event-id' } : { path: id_path },
    type: type_path === undefined ? { header: settings.type_header ?? 'x-event-type' } : { path: type_path },
  }
}
