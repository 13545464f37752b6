import { errors, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import type { Account } from '../../db/queries/accounts.ts'
import { ROLES } from '../../db/rules/roles.ts'
import type { KeyRing } from './key-ring.ts'

/** Who asks, and in which organisation. */
export type Principal = Pick<Account, 'user_id' | 'org_id' | 'role'>

export const ACCESS_TOKEN_SECONDS = 600
const ALGORITHM = 'EdDSA'
const ISSUER = 'smartqueue'

const claimsSchema = z.object({
  sub: z.uuid(),
  org: z.uuid(),
  role: z.enum(ROLES),
})

export const signAccessToken = async (keys: KeyRing, principal: Principal): Promise<string> => {
  const { kid, key } = await keys.signer()
  return new SignJWT({ org: principal.org_id, role: principal.role })
    .setProtectedHeader({ alg: ALGORITHM, kid })
    .setIssuer(ISSUER)
    .setAudience(ISSUER)
    .setSubject(principal.user_id)
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
    return { user_id: claims.data.sub, org_id: claims.data.org, role: claims.data.role }
  } catch (error) {
    if (error instanceof errors.JWTExpired) return 'expired'
    if (error instanceof errors.JOSEError) return 'invalid'
    throw error
  }
}
