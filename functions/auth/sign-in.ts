import type { z } from '@hono/zod-openapi'
import {
  type Account,
  changePassword,
  nameOf,
  registerAccount,
  registerInvited,
} from '../../db/queries/accounts.ts'
import { auditFailedSignIn } from '../../db/queries/audit.ts'
import { hitRateLimit } from '../../db/queries/rate-limits.ts'
import { endSession, rotateRefreshToken } from '../../db/queries/refresh-tokens.ts'
import {
  approach,
  enterWithRefreshToken,
  type Origin,
  openInvitationByToken,
  takeTurns,
} from '../../db/queries/scope.ts'
import { beginSignIn, startSession } from '../../db/queries/sign-in.ts'
import type { Run } from '../../db/query.ts'
import { passwordFault } from '../../db/rules/password-rules.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { Database } from '../database.ts'
import { NotEntered } from '../database-errors.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { ProblemError } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import type { Services } from '../services.ts'
import { hashPassword, spendPasswordCheck, verifyPassword } from './passwords.ts'
import type { Principal } from './principal.ts'
import { LIMITS, nameBlocked, rateHeaders, rateLimited } from './rate-limit.ts'
import { graceOf, isOfKind, REFRESH_TOKEN_DAYS, type RefreshKind, successorOf } from './refresh-kinds.ts'
import type { passwordChange } from './schemas.ts'
import { createSecret, hashSecret } from './secrets.ts'

type Credentials = { username: string; password: string }

/** Somebody who has just proved who they are. */
export type SignedIn = {
  account: Account & { session_id: string }
  refreshToken: string
  headers: Record<string, string>
}

/**
 * Without an invitation link the account gets a personal organisation; with one it joins the organisation
 * that sent it.
 */
export const register = async (
  { database, registration }: Services,
  origin: Origin,
  { username, password, invitation }: Credentials & { invitation?: string | undefined },
  kind: RefreshKind,
): Promise<SignedIn> => {
  if (registration === 'closed' || (registration === 'invite' && invitation === undefined))
    throw registrationClosed(registration)
  refuseGuessable('#/password', password, username)
  const [verdict] = await database.run(hitRateLimit(LIMITS.register, origin.ip))
  if (!verdict) throw new Error('A hit is one row')
  if (!verdict.admitted) throw rateLimited(LIMITS.register, verdict)
  const [passwordHash, refresh] = await Promise.all([hashPassword(password), createSecret(kind)])
  const made = {
    ...{ userId: uuidV7(), familyId: uuidV7(), username, passwordHash, userAgent: origin.userAgent },
    ...{ refreshTokenHash: refresh.hash, refreshTokenDays: REFRESH_TOKEN_DAYS },
  }
  const account =
    invitation === undefined
      ? await registerAlone(database, origin, made)
      : await registerWith(database, origin, { ...made, invitationHash: await hashSecret(invitation) })
  const headers = rateHeaders(LIMITS.register, verdict)
  if (!account) {
    throw new ProblemError('username-taken', `"${username}" is taken. Choose another name, or sign in.`, {
      errors: [{ in: 'body', pointer: '#/username', detail: 'is taken: choose another, or sign in' }],
      headers,
    })
  }
  return { account: { ...account, session_id: made.familyId }, refreshToken: refresh.secret, headers }
}

const registrationClosed = (registration: 'invite' | 'closed'): ProblemError =>
  new ProblemError(
    'registration-closed',
    registration === 'invite'
      ? 'Registration requires an invitation link. Ask an org_admin for one and send its token as "invitation".'
      : 'Only the operator creates accounts. Ask the operator of this system for one.',
  )

/** Returns undefined if the name is taken. */
const registerAlone = async (
  database: Database,
  origin: Origin,
  account: Omit<Parameters<typeof registerAccount>[0], 'orgId'>,
): Promise<Account | undefined> => {
  const orgId = uuidV7()
  const { userId, username: name } = account
  const run = database.after(approach({ orgId, userId, name, origin }))
  const [registered] = await run(registerAccount({ ...account, orgId }))
  return registered
}

/** Returns undefined if the name is taken. */
const registerWith = async (
  database: Database,
  origin: Origin,
  account: Parameters<typeof registerInvited>[0],
): Promise<Account | undefined> => {
  const { userId, username: name, invitationHash: secretHash } = account
  const run = database.after(approach({ userId, name, secretHash, origin }), openInvitationByToken())
  const [registered] = await run(registerInvited(account)).catch((error: unknown) => {
    if (error instanceof NotEntered && error.reason === 'closed') return []
    throw error
  })
  if (!registered) throw invitationNotOpen()
  return registered.user_id === null ? undefined : registered
}

const invitationNotOpen = (): ProblemError =>
  new ProblemError(
    'not-found',
    'The invitation was used, has expired or was revoked. Ask the person who invited you for a new link.',
    { errors: [{ in: 'body', pointer: '#/invitation', detail: 'is no longer open' }] },
  )

const refuseGuessable = (pointer: string, password: string, username: string): void => {
  const detail = passwordFault(password, username)
  if (detail !== undefined) throw problemAt('invalid-request', [{ in: 'body', pointer, detail }])
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
    throw wrongCredentials(headers)
  }
  const session = await startSessionOf(database, userId, origin, kind)
  if (!session) throw wrongCredentials(headers)
  return { ...session, headers }
}

const wrongCredentials = (headers: Record<string, string>): ProblemError =>
  new ProblemError('wrong-credentials', 'Check both, or register with POST /auth/register.', { headers })

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

/** Returns undefined if the account was deleted in the meantime. */
const startSessionOf = async (
  database: Database,
  userId: string,
  origin: Origin,
  kind: RefreshKind,
): Promise<Omit<SignedIn, 'headers'> | undefined> => {
  const refresh = await createSecret(kind)
  const [familyId, orgId] = [uuidV7(), uuidV7()]
  const run = database.after(approach({ userId, orgId, origin }), takeTurns('orgs', userId))
  const [account] = await run(
    startSession({
      ...{ userId, orgId, familyId, tokenHash: refresh.hash, days: REFRESH_TOKEN_DAYS },
      userAgent: origin.userAgent,
    }),
  )
  return account && { account: { ...account, session_id: familyId }, refreshToken: refresh.secret }
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
  const run = database.after(enterWithRefreshToken(presentedHash, origin))
  const [account] = await run(
    rotateRefreshToken({
      ...{ presentedHash, successorHash: successor.hash, days: REFRESH_TOKEN_DAYS },
      ...{ graceSeconds: graceOf(kind), userAgent: origin.userAgent },
    }),
  )
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
  { current_password, new_password, revoke_keys: revokeKeys }: z.output<typeof passwordChange>,
): Promise<{ ended_sessions: number; revoked_keys: number }> => {
  if (sessionId === null) throw new Error('A session without a user')
  const confirmed = { password: current_password, pointer: '#/current_password' }
  const { username, hash, headers } = await confirmPassword(run, userId, origin, confirmed)
  refuseGuessable('#/new_password', new_password, username)
  const to = await hashPassword(new_password)
  const [changed] = await run(changePassword({ userId, orgId, sessionId, from: hash, to, revokeKeys }))
  if (!changed) throw passwordChanged(headers)
  return { ended_sessions: changed.ended, revoked_keys: changed.revoked }
}

/**
 * Confirms the password of a signed-in user before an action that a stolen token must not allow. Returns the
 * matching hash: the next statement compares it, in case the password is changed in the meantime.
 */
export const confirmPassword = async (
  run: Run,
  userId: string,
  origin: Origin,
  { password, pointer }: { password: string; pointer: string },
): Promise<{ username: string; hash: string; headers: Record<string, string> }> => {
  const [user] = await run(nameOf(userId))
  if (!user) throw new Error('A session without a user')
  const { hash, headers } = await countAttempt(run, user.username, origin)
  if (hash === null || !(await verifyPassword(password, hash))) {
    throw new ProblemError('wrong-credentials', 'The password is wrong.', {
      errors: [{ in: 'body', pointer, detail: 'is wrong' }],
      headers,
    })
  }
  return { username: user.username, hash, headers }
}

export const passwordChanged = (headers: Record<string, string> = {}): ProblemError =>
  new ProblemError(
    'wrong-credentials',
    'The password was changed in the meantime. Try again with the new one.',
    {
      headers,
    },
  )
