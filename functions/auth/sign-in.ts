import type { z } from '@hono/zod-openapi'
import { type Account, nameOf, registerAccount } from '../../db/queries/accounts.ts'
import { hitRateLimit } from '../../db/queries/rate-limits.ts'
import type { Origin } from '../../db/queries/scope.ts'
import { endSession, rotateRefreshToken } from '../../db/queries/sessions.ts'
import {
  auditFailedSignIn,
  beginSignIn,
  changePassword,
  type NewSession,
  startSession,
} from '../../db/queries/sign-in.ts'
import type { Run } from '../../db/query.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { ProblemError } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import type { Services } from '../services.ts'
import { passwordFault } from './password-rules.ts'
import { hashPassword, hashWith } from './passwords.ts'
import type { Principal } from './principal.ts'
import { LIMITS, nameBlocked, rateHeaders, rateLimited } from './rate-limit.ts'
import {
  graceOf,
  isOfKind,
  REFRESH_TOKEN_DAYS,
  type RefreshKind,
  sessionSecretOf,
  successorOf,
} from './refresh-kinds.ts'
import type { passwordChange } from './schemas.ts'
import { createSecret, hashSecret } from './secrets.ts'

type Credentials = { username: string; password: string }

/** Somebody who has just proved who they are. */
export type SignedIn = {
  account: Account & { session_id: string; secret: string }
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
  const [passwordHash, session] = await Promise.all([hashPassword(password), createSession(kind)])
  const invitationHash = invitation === undefined ? null : await hashSecret(invitation)
  const [account] = await database.run(
    registerAccount(
      { userId: uuidV7(), username, passwordHash, orgId: uuidV7(), invitationHash },
      session.stored,
      origin,
    ),
  )
  if (!account) throw invitationNotOpen()
  const headers = rateHeaders(LIMITS.register, verdict)
  if (account.user_id === null) {
    throw new ProblemError('username-taken', `"${username}" is taken. Choose another name, or sign in.`, {
      errors: [{ in: 'body', pointer: '#/username', detail: 'is taken: choose another, or sign in' }],
      headers,
    })
  }
  return { ...signedIn(account, session), headers }
}

/** A new session: what the client gets, and what is stored. */
type Session = { refreshToken: string; secret: string; stored: NewSession }

const createSession = async (kind: RefreshKind): Promise<Session> => {
  const { secret: refreshToken, hash: tokenHash } = await createSecret(kind)
  const secret = sessionSecretOf(kind, refreshToken)
  const stored = { id: uuidV7(), secretHash: await hashSecret(secret), tokenHash, days: REFRESH_TOKEN_DAYS }
  return { refreshToken, secret, stored }
}

const signedIn = (account: Account, { refreshToken, secret, stored }: Session) => ({
  account: { ...account, session_id: stored.id, secret },
  refreshToken,
})

const registrationClosed = (registration: 'invite' | 'closed'): ProblemError =>
  new ProblemError(
    'registration-closed',
    registration === 'invite'
      ? 'Registration requires an invitation link. Ask an org_admin for one and send its token as "invitation".'
      : 'Only the operator creates accounts. Ask the operator of this system for one.',
  )

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
  const { parameters, headers } = await countAttempt(database.run, username, origin)
  const session = await createSession(kind)
  const user = { username, passwordHash: await hashWith(password, parameters), spareOrgId: uuidV7() }
  const [account] = await database.run(startSession(user, session.stored, origin))
  if (!account) {
    hold(database.run(auditFailedSignIn(username, origin)).catch(logFailure))
    throw wrongCredentials(headers)
  }
  return { ...signedIn(account, session), headers }
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
  return { parameters: attempt.password_parameters, headers }
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
  const [account] = await database.run(
    rotateRefreshToken({ ...rotation, graceSeconds: graceOf(kind) }, origin),
  )
  if (!account) return undefined
  return {
    account: { ...account, secret: sessionSecretOf(kind, presented) },
    refreshToken: successor.secret,
  }
}

/**
 * Ends the sign-in of a refresh token, and answers in which organisation. One that is not known has none, which is as well.
 */
export const logout = async (
  { database }: Services,
  origin: Origin,
  presented: string,
): Promise<string | undefined> => {
  const [ended] = await database.run(endSession(await hashSecret(presented), origin))
  return ended?.org_id ?? undefined
}

export const replacePassword = async (
  run: Run,
  { user_id: userId, org_id: orgId, session_id: sessionId }: Principal,
  origin: Origin,
  { current_password, new_password, revoke_keys: revokeKeys }: z.output<typeof passwordChange>,
): Promise<{ ended_sessions: number; revoked_keys: number }> => {
  if (sessionId === null) throw new Error('A session without a user')
  const { username, hash, headers } = await hashOwnPassword(run, userId, origin, current_password)
  const isGuessable = passwordFault(new_password, username) !== undefined
  const to = isGuessable ? null : await hashPassword(new_password)
  const [changed] = await run(changePassword({ orgId, sessionId, from: hash, to, revokeKeys }))
  if (!changed) throw wrongPassword('#/current_password', headers)
  refuseGuessable('#/new_password', new_password, username)
  return { ended_sessions: changed.ended, revoked_keys: changed.revoked }
}

/**
 * Hashes the password that a signed-in user has entered to confirm an action that a stolen token must not allow. The
 * statement that acts compares the hash.
 */
export const hashOwnPassword = async (
  run: Run,
  userId: string,
  origin: Origin,
  password: string,
): Promise<{ username: string; hash: string; headers: Record<string, string> }> => {
  const [user] = await run(nameOf(userId))
  if (!user) throw new Error('A session without a user')
  const { parameters, headers } = await countAttempt(run, user.username, origin)
  return { username: user.username, hash: await hashWith(password, parameters), headers }
}

export const wrongPassword = (pointer: string, headers: Record<string, string>): ProblemError =>
  new ProblemError('wrong-credentials', 'The password is wrong.', {
    errors: [{ in: 'body', pointer, detail: 'is wrong' }],
    headers,
  })
