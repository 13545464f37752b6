/** Signing in with a password, whose stored hash never leaves the database. See `db/accounts/sign-in.sql`. */
import type { Query } from '../query.ts'
import type { Account } from './accounts.ts'
import type { RateLimit, RateVerdict } from './rate-limits.ts'
import type { Origin } from './scope.ts'

export type SignInAttempt = RateVerdict & {
  /** The name has had too many attempts: seconds until the next. Null if it may be tried now. */
  blocked_for: number | null
  /** What to hash the password with. Null: nobody has the name. */
  password_parameters: string | null
}

/** Counts an attempt for the network and for the name, before the password is looked at. */
export const beginSignIn = (
  { limit, windowSeconds }: RateLimit,
  attempt: { username: string; ip: string | null },
): Query<SignInAttempt> => ({
  name: 'begin-sign-in',
  text: `
    select admitted, remaining, resets_in, blocked_for, password_parameters
    from smartqueue.begin_sign_in($1::text, $2::inet, $3::integer, $4::integer)`,
  values: [attempt.username, attempt.ip, limit, windowSeconds],
})

/** A new session, with the hashes of its secret and of its first refresh token. */
export type NewSession = { id: string; secretHash: string; tokenHash: string; days: number }

/** Returns no row if the name or the password is wrong. */
export const startSession = (
  user: { username: string; passwordHash: string; spareOrgId: string },
  session: NewSession,
  origin: Origin,
): Query<Account> => ({
  name: 'start-session',
  text: `
    select user_id, username, org_id, role
    from smartqueue.start_session(
      $1::text, $2::text, $3::uuid, $4::text, $5::text, $6::integer, $7::uuid, $8::text, $9::text, $10::text
    )`,
  values: [
    ...[user.username, user.passwordHash],
    ...[session.id, session.secretHash, session.tokenHash, session.days],
    ...[user.spareOrgId, origin.ip, origin.userAgent, origin.requestId],
  ],
})

/** All organisations of the user are told. Who it was is not known. */
export const auditFailedSignIn = (username: string, origin: Origin): Query<never> => ({
  name: 'audit-failed-sign-in',
  text: `
    select smartqueue.audit_failed_sign_in($1::text, $2::text, $3::text)`,
  values: [username, origin.ip, origin.requestId],
})

/** Ends all other sign-ins. No row: `from` is not the hash of the current password. Without `to`, only checks it. */
export const changePassword = (change: {
  orgId: string
  sessionId: string
  from: string
  to: string | null
  revokeKeys: boolean
}): Query<{ ended: number; revoked: number }> => ({
  name: 'change-password',
  text: `
    select ended, revoked
    from smartqueue.change_password($1::uuid, $2::uuid, $3::text, $4::text, $5::boolean)`,
  values: [change.orgId, change.sessionId, change.from, change.to, change.revokeKeys],
})
