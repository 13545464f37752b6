import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { registerAccount } from '../../db/queries/accounts.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { signAccessToken } from '../../functions/auth/access-token.ts'
import { createKeyRing } from '../../functions/auth/key-ring.ts'
import type { PrivateKey } from '../../functions/bindings.ts'
import type { Edge } from './edge.ts'

export type TestAccount = { username: string; password: string; token: string; userId: string; orgId: string }

const PASSWORD = 'correct horse battery'
/** Of that password, made once: to make one takes a fifth of a second. */
const PASSWORD_HASH = 'scrypt$14$8$5$gEoXEMZ7WzvdgyUhN2mHww==$BvTzw/953DuR9KcY/+YMGr3twLUPIH3eJcsUfUVhMBc='

let created = 0
let networks = 0

/** Each request from a network of its own: what is limited for each is not what most tests are about. */
export const fromElsewhere = (): Record<string, string> => {
  networks++
  return { 'cf-connecting-ip': `10.${(networks >> 16) & 255}.${(networks >> 8) & 255}.${networks & 255}` }
}

const newName = (): string => `user-${process.pid}-${++created}`

/** An account as a registration would have left it, with the token that it would have answered. */
export const registerUser = async (edge: Edge): Promise<TestAccount> => {
  const [username, userId, orgId, familyId] = [newName(), uuidV7(), uuidV7(), uuidV7()]
  const refreshTokenHash = randomBytes(32).toString('hex')
  await edge.seed(
    registerAccount({
      ...{ username, userId, orgId, familyId, refreshTokenHash },
      passwordHash: PASSWORD_HASH,
      refreshTokenDays: 30,
      userAgent: null,
    }),
  )
  const session = { user_id: userId, org_id: orgId, role: 'org_admin' as const, session_id: familyId }
  const token = await signAccessToken(createKeyRing(edge.authKeys.keys as PrivateKey[]), session)
  return { username, password: PASSWORD, token, userId, orgId }
}

/** The same through the API, for tests of what that does. */
export const registerThroughApi = async (edge: Edge): Promise<TestAccount> => {
  const credentials = { username: newName(), password: PASSWORD }
  const { status, body, text } = await edge.request('POST', '/auth/register', {
    json: credentials,
    headers: fromElsewhere(),
  })
  assert.equal(status, 201, text)
  return { ...credentials, token: body.access_token, userId: body.user.id, orgId: body.user.org_id }
}
