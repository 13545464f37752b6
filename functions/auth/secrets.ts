/** Opaque secrets: 256 random bits, which need no slow hash. The prefix tells what it is, to people and to scanners. */
export type SecretKind = 'refresh' | 'browser-refresh' | 'api-key' | 'invitation'

const PREFIXES: Record<SecretKind, string> = {
  refresh: 'sqr_',
  'browser-refresh': 'sqb_',
  'api-key': 'sqk_',
  invitation: 'sqi_',
}

export type Secret = { secret: string; hash: string }

/** The secret is for the client, once; only the hash is stored. */
export const createSecret = (kind: SecretKind): Promise<Secret> =>
  secretOf(kind, crypto.getRandomValues(new Uint8Array(32)))

/** Of 256 bits that are as good as random. */
export const secretOf = async (kind: SecretKind, bits: Uint8Array): Promise<Secret> => {
  const secret = PREFIXES[kind] + toHex(bits)
  return { secret, hash: await hashSecret(secret) }
}

export const isSecret = (kind: SecretKind, text: string): boolean =>
  text.startsWith(PREFIXES[kind]) && /^[0-9a-f]{64}$/.test(text.slice(PREFIXES[kind].length))

export const hashSecret = async (secret: string): Promise<string> =>
  toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret))))

const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
