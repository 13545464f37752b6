import { type CryptoKey, createLocalJWKSet, importJWK, type JWTVerifyGetKey } from 'jose'
import type { PrivateKey } from '../bindings.ts'

export type PublicKey = Pick<PrivateKey, 'kty' | 'crv' | 'kid' | 'x'> & { alg: 'EdDSA'; use: 'sig' }

/** The first key signs; all of them verify, so that a new key can be put in front while old tokens live. */
export type KeyRing = {
  readonly signer: () => Promise<{ kid: string; key: CryptoKey }>
  readonly verifier: JWTVerifyGetKey
  readonly publicKeys: readonly PublicKey[]
}

export const createKeyRing = (privateKeys: readonly PrivateKey[]): KeyRing => {
  const [first] = privateKeys
  if (!first) throw new Error('AUTH_KEYS holds no key')
  // Field by field: what is not named here, above all the private part, stays here.
  const publicKeys = privateKeys.map(
    ({ kty, crv, kid, x }): PublicKey => ({ kty, crv, kid, x, alg: 'EdDSA', use: 'sig' }),
  )
  let imported: Promise<CryptoKey> | undefined
  return {
    signer: async () => {
      imported ??= importJWK(first, 'EdDSA') as Promise<CryptoKey>
      return { kid: first.kid, key: await imported }
    },
    verifier: createLocalJWKSet({ keys: publicKeys }),
    publicKeys,
  }
}
