import { errors, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import { ROLES } from '../../db/rules/roles.ts'
import type { KeyRing } from './key-ring.ts'
import type { Principal } from './principal.ts'

export const ACCESS_TOKEN_SECONDS = 600
const ALGORITHM = 'EdDSA'
const ISSUER = 'smartqueue'

const claimsSchema = z.object({
  sub: z.uuid(),
  org: z.uuid(),
  sid: z.uuid(),
  secret: z.string(),
  role: z.enum(ROLES),
  exp: z.number(),
})

export type Session = Pick<Principal, 'user_id' | 'org_id' | 'role' | 'secret'> & { session_id: string }

export const signAccessToken = async (keys: KeyRing, session: Session): Promise<string> => {
  const { kid, key } = await keys.signer()
  const { org_id: org, role, session_id: sid, secret } = session
  return new SignJWT({ org, role, sid, secret })
    .setProtectedHeader({ alg: ALGORITHM, kid })
    .setIssuer(ISSUER)
    .setAudience(ISSUER)
    .setSubject(session.user_id)
    .setIssuedAt()
    .setExpirationTime(`${ACCESS_TOKEN_SECONDS} s`)
    .sign(key)
}

/** The algorithm is pinned: what the token's own header asks for does not count. */
export const verifyAccessToken = async (
  keys: KeyRing,
  token: string,
): Promise<Principal | 'expired' | 'invalid'> => {
  try {
    const { payload } = await jwtVerify(token, keys.verifier, {
      algorithms: [ALGORITHM],
      issuer: ISSUER,
      audience: ISSUER,
      requiredClaims: ['exp', 'iat', 'sub'],
    })
    const claims = claimsSchema.safeParse(payload)
    if (!claims.success) return 'invalid'
    const { sub, org, sid, secret, role, exp } = claims.data
    const proof = { session_id: sid, secret, key_id: null, scopes: null, expires_at: exp * 1000 }
    return { user_id: sub, org_id: org, role, ...proof }
  } catch (error) {
    if (error instanceof errors.JWTExpired) return 'expired'
    if (error instanceof errors.JOSEError) return 'invalid'
    throw error
  }
}

export type TokenVerifier = { verify(token: string): Promise<Principal | 'expired' | 'invalid'> }

const MAX_REMEMBERED = 10_000

/**
 * Caches valid tokens until they expire: verifying a signature takes longer than the rest of most requests. Whether the
 * session is still valid is checked by the database, in every transaction.
 */
export const createTokenVerifier = (keys: KeyRing): TokenVerifier => {
  const remembered = new Map<string, Principal>()
  return {
    verify: async (token) => {
      const known = remembered.get(token)
      if (known) return (known.expires_at ?? 0) > Date.now() ? known : 'expired'
      const verdict = await verifyAccessToken(keys, token)
      if (typeof verdict === 'string') return verdict
      if (remembered.size === MAX_REMEMBERED) remembered.clear()
      remembered.set(token, verdict)
      return verdict
    },
  }
}
