import assert from 'node:assert/strict'
import { decodeJwt } from 'jose'
import { registerAccount } from '../../db/queries/accounts.ts'
import type { Member } from '../../db/queries/scope.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { signAccessToken } from '../../functions/auth/access-token.ts'
import { createKeyRing } from '../../functions/auth/key-ring.ts'
import type { PrivateKey } from '../../functions/bindings.ts'
import type { Edge } from './edge.ts'
import { NOWHERE, newSession, storedSession } from './sessions.ts'

export type TestAccount = Member & { username: string; password: string; token: string }

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
  const [username, userId, orgId, session] = [newName(), uuidV7(), uuidV7(), newSession()]
  const account = { username, userId, orgId, passwordHash: PASSWORD_HASH, invitationHash: null }
  await edge.seed(registerAccount(account, storedSession(session), NOWHERE))
  const token = await signAccessToken(createKeyRing(edge.authKeys.keys as PrivateKey[]), {
    ...{ user_id: userId, org_id: orgId, role: 'org_admin' },
    ...{ session_id: session.sessionId, secret: session.secret },
  })
  return { username, password: PASSWORD, token, userId, orgId, ...session }
}

/** The same through the API, for tests of what that does. */
export const registerThroughApi = async (edge: Edge): Promise<TestAccount> => {
  const credentials = { username: newName(), password: PASSWORD }
  const { status, body, text } = await edge.request('POST', '/auth/register', {
    json: credentials,
    headers: fromElsewhere(),
  })
  assert.equal(status, 201, text)
  const { user, access_token: token } = body
  const { sid: sessionId, secret } = decodeJwt<{ sid: string; secret: string }>(token)
  return { ...credentials, token, userId: user.id, orgId: user.org_id, sessionId, keyId: null, secret }
}
