/** Refresh tokens, by their hashes. See `db/accounts/refresh-tokens.sql`. */
import type { Query } from '../query.ts'
import type { Account } from './accounts.ts'
import type { Origin } from './scope.ts'

/** Returns no row if the token is unknown, expired, revoked, or was presented before. */
export const rotateRefreshToken = (
  rotation: { presentedHash: string; successorHash: string; days: number; graceSeconds: number | null },
  origin: Origin,
): Query<Account & { session_id: string }> => ({
  name: 'rotate-refresh-token',
  text: `
    select session_id, user_id, username, org_id, role
    from smartqueue.rotate_refresh_token(
      $1::text, $2::text, $3::integer, $4::integer, $5::text, $6::text, $7::text
    )`,
  values: [
    ...[rotation.presentedHash, rotation.successorHash, rotation.days, rotation.graceSeconds],
    ...[origin.ip, origin.userAgent, origin.requestId],
  ],
})

/** Ends the sign-in of a refresh token. Null if it is unknown or has ended. */
export const endSession = (tokenHash: string, origin: Origin): Query<{ org_id: string | null }> => ({
  name: 'end-session',
  text: `
    select smartqueue.end_session($1::text, $2::text, $3::text) as org_id`,
  values: [tokenHash, origin.ip, origin.requestId],
})
