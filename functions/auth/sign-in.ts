import { type Account, changePassword, nameOf, registerAccount } from '../../db/queries/accounts.ts'
import { auditFailedSignIn } from '../../db/queries/audit.ts'
import { hitRateLimit } from '../../db/queries/rate-limits.ts'
import { endSession, rotateRefreshToken } from '../../db/queries/refresh-tokens.ts'
import { approach, enterWithRefreshToken, type Origin } from '../../db/queries/scope.ts'
import { beginSignIn, startSession } from '../../db/queries/sign-in.ts'
import type { Run } from '../../db/query.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { Database } from '../database.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { ProblemError } from '../http/problem.ts'
import type { Services } from '../services.ts'
import { hashPassword, spendPasswordCheck, verifyPassword } from './passwords.ts'
import type { Principal } from './principal.ts'
import { LIMITS, nameBlocked, rateHeaders, rateLimited } from './rate-limit.ts'
import { graceOf, isOfKind, REFRESH_TOKEN_DAYS, type RefreshKind, successorOf } from './refresh-kinds.ts'
import { createSecret, hashSecret } from './secrets.ts'

type Credentials = { username: string; password: string }

/** Somebody who has just proved who they are. */
export type SignedIn = {
  account: Account & { session_id: string }
  refreshToken: string
  headers: Record<string, string>
}

export const register = async (
  { database }: Services,
  origin: Origin,
  { username, password }: Credentials,
  kind: RefreshKind,
): Promise<SignedIn> => {
  const [verdict] = await database.run(hitRateLimit(LIMITS.register, origin.ip))
  if (!verdict) throw new Error('A hit is one row')
  if (!verdict.admitted) throw rateLimited(LIMITS.register, verdict)
  const [passwordHash, refresh] = await Promise.all([hashPassword(password), createSecret(kind)])
  const ids = { userId: uuidV7(), orgId: uuidV7(), familyId: uuidV7() }
  const run = database.after(approach({ orgId: ids.orgId, userId: ids.userId, name: username, origin }))
  const [account] = await run(
    registerAccount({
      ...ids,
      username,
      passwordHash,
      refreshTokenHash: refresh.hash,
      refreshTokenDays: REFRESH_TOKEN_DAYS,
    }),
  )
  const headers = rateHeaders(LIMITS.register, verdict)
  if (!account) {
    throw new ProblemError('username-taken', `"${username}" is taken. Choose another name, or sign in.`, {
      errors: [{ in: 'body', pointer: '#/username', detail: 'is taken' }],
      headers,
    })
  }
  return { account: { ...account, session_id: ids.familyId }, refreshToken: refresh.secret, headers }
}

/** A wrong password and an unknown name take the same steps and the same time, and get the same answer. */
export const login = async (
  { database }: Services,
  origin: Origin,
  { username, password }: Credentials,
  { kind, hold }: { kind: RefreshKind; hold: Hold },
): Promise<SignedIn> => {
  const anyone = database.after(approach({ name: username, origin }))
  const { userId, hash, headers } = await countAttempt(anyone, username, origin)
  const isRight = hash === null ? await spendPasswordCheck(password) : await verifyPassword(password, hash)
  if (userId === null || !isRight) {
    if (userId !== null) hold(tellOfFailure(database.after(approach({ userId, origin })), userId))
    throw new ProblemError('wrong-credentials', 'Check both, or register with POST /auth/register.', {
      headers,
    })
  }
  return { ...(await startSessionOf(database, userId, origin, kind)), headers }
}

/** Every look at a password counts as an attempt to sign in, whether it is the right one or not. */
const countAttempt = async (run: Run, username: string, { ip }: Origin) => {
  const [attempt] = await run(beginSignIn(LIMITS.login, { username, ip }))
  if (!attempt) throw new Error('An attempt is one row')
  if (!attempt.admitted) throw rateLimited(LIMITS.login, attempt)
  const headers = rateHeaders(LIMITS.login, attempt)
  if (attempt.blocked_for !== null) throw nameBlocked(attempt.blocked_for, headers)
  return { userId: attempt.user_id, hash: attempt.password_hash, headers }
}

const tellOfFailure = (run: Run, userId: string): Promise<unknown> =>
  run(auditFailedSignIn(userId)).catch(logFailure)

const startSessionOf = async (
  database: Database,
  userId: string,
  origin: Origin,
  kind: RefreshKind,
): Promise<Omit<SignedIn, 'headers'>> => {
  const refresh = await createSecret(kind)
  const [familyId, orgId] = [uuidV7(), uuidV7()]
  const session = { userId, orgId, familyId, tokenHash: refresh.hash, days: REFRESH_TOKEN_DAYS }
  const [account] = await database.after(approach({ userId, orgId, origin }))(startSession(session))
  if (!account) throw new Error('A user signed in who is none')
  return { account: { ...account, session_id: session.familyId }, refreshToken: refresh.secret }
}

/** Undefined: the token is worth nothing. */
export const refresh = async (
  { database, keys }: Services,
  origin: Origin,
  { presented, kind }: { presented: string | undefined; kind: RefreshKind },
): Promise<Omit<SignedIn, 'headers'> | undefined> => {
  if (presented === undefined || !isOfKind(kind, presented)) return undefined
  const [successor, presentedHash] = await Promise.all([
    successorOf(kind, keys, presented),
    hashSecret(presented),
  ])
  const rotation = { presentedHash, successorHash: successor.hash, days: REFRESH_TOKEN_DAYS }
  const run = database.after(enterWithRefreshToken(presentedHash, origin))
  const [account] = await run(rotateRefreshToken({ ...rotation, graceSeconds: graceOf(kind) }))
  return account && { account, refreshToken: successor.secret }
}

/**
 * Ends the sign-in of a refresh token, and answers in which organisation. One that is not known has none, which is as well.
 */
export const logout = async (
  { database }: Services,
  origin: Origin,
  presented: string,
): Promise<string | undefined> => {
  const hash = await hashSecret(presented)
  const [ended] = await database.after(enterWithRefreshToken(hash, origin))(endSession(hash))
  return ended?.org_id ?? undefined
}

export const replacePassword = async (
  run: Run,
  { user_id: userId, org_id: orgId, session_id: sessionId }: Principal,
  origin: Origin,
  { current_password, new_password }: { current_password: string; new_password: string },
): Promise<{ ended_sessions: number }> => {
  const [user] = await run(nameOf(userId))
  if (!user || sessionId === null) throw new Error('A session without a user')
  const { hash, headers } = await countAttempt(run, user.username, origin)
  if (hash === null || !(await verifyPassword(current_password, hash))) {
    throw new ProblemError('wrong-credentials', 'The current password is wrong.', {
      errors: [{ in: 'body', pointer: '#/current_password', detail: 'is wrong' }],
      headers,
    })
  }
  const to = await hashPassword(new_password)
  const [changed] = await run(changePassword({ userId, orgId, sessionId, from: hash, to }))
  if (!changed)
    throw new ProblemError('wrong-credentials', 'The password was changed meanwhile.', { headers })
  return { ended_sessions: changed.ended }
}
