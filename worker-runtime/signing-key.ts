import { generateKeyPairSync, randomBytes } from 'node:crypto'

/** A private Ed25519 key for access tokens, as a JWK with an id of its own. */
export const createSigningKey = (): { kid: string; d: string } & Record<string, unknown> => {
  const { d = '', ...rest } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  return { ...rest, d, kid: randomBytes(6).toString('hex') }
}
