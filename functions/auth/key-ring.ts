import { type CryptoKey, createLocalJWKSet, importJWK, type JWTVerifyGetKey } from 'jose'
import type { PrivateKey } from '../bindings.ts'

/** The first key signs; all of them verify, so that a new key can be put in front while old tokens live. */
export type KeyRing = {
  readonly signer: () => Promise<{ kid: string; key: CryptoKey }>
  readonly verifier: JWTVerifyGetKey
}

export const createKeyRing = (privateKeys: readonly PrivateKey[]): KeyRing => {
  const [first] = privateKeys
  if (!first) throw new Error('AUTH_KEYS holds no key')
  const publicKeys = privateKeys.map(({ kty, crv, kid, x }) => ({
    kty,
    crv,
    kid,
    x,
    alg: 'EdDSA',
    use: 'sig',
  }))
  let imported: Promise<CryptoKey> | undefined
  return {
    signer: async () => {
      imported ??= importJWK(first, 'EdDSA') as Promise<CryptoKey>
      return { kid: first.kid, key: await imported }
    },
    verifier: createLocalJWKSet({ keys: publicKeys }),
  }
}
