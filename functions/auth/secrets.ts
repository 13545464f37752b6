import { SECRET_PREFIXES } from '../redaction.ts'
import type { KeyRing } from './key-ring.ts'

/** Opaque secrets: 256 random bits, which need no slow hash. The prefix tells what it is, to people and to scanners. */
export type SecretKind = keyof typeof SECRET_PREFIXES

export type Secret = { secret: string; hash: string }

/** The secret is for the client, once; only the hash is stored. */
export const createSecret = (kind: SecretKind): Promise<Secret> =>
  secretOf(kind, crypto.getRandomValues(new Uint8Array(32)))

/** Of 256 bits that are as good as random. */
export const secretOf = async (kind: SecretKind, bits: Uint8Array): Promise<Secret> => {
  const secret = SECRET_PREFIXES[kind] + toHex(bits)
  return { secret, hash: await hashSecret(secret) }
}

/**
 * 256 bits that follow from a text, for those who have our signing key: Ed25519 signs the same text the same way. The text must
 * have a space in it, which is in no text of a JWT.
 */
export const deriveBits = async (keys: KeyRing, text: string): Promise<Uint8Array> => {
  const { key } = await keys.signer()
  const signature = await crypto.subtle.sign('Ed25519', key, new TextEncoder().encode(text))
  return new Uint8Array(await crypto.subtle.digest('SHA-256', signature))
}

export const isSecret = (kind: SecretKind, text: string): boolean =>
  text.startsWith(SECRET_PREFIXES[kind]) && /^[0-9a-f]{64}$/.test(text.slice(SECRET_PREFIXES[kind].length))

export const hashSecret = async (secret: string): Promise<string> =>
  toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret))))

export const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
