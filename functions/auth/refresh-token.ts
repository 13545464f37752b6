export const REFRESH_TOKEN_DAYS = 30
const PREFIX = 'sqr_'

/** An opaque secret for the client and the hash that is stored. 256 random bits need no slow hash. */
export const createRefreshToken = async (): Promise<{ token: string; hash: string }> => {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const token = PREFIX + toHex(bytes)
  return { token, hash: await hashRefreshToken(token) }
}

export const hashRefreshToken = async (token: string): Promise<string> =>
  toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))))

const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
