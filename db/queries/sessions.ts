/** Sign-ins, and their refresh tokens by their hashes. See `db/accounts/refresh-tokens.sql`. */
import type { NewestFirst, Query } from '../query.ts'
import type { Account } from './accounts.ts'
import type { Origin } from './scope.ts'

/** A sign-in of a user, whatever its active organisation. */
export type SessionRow = {
  id: string
  org_id: string
  created_at: string
  last_used_at: string
  expires_at: string
  ip: string | null
  user_agent: string | null
}

/** Active sign-ins, newest first. */
export const listSessions = (page: NewestFirst & { userId: string }): Query<SessionRow> => ({
  name: 'list-sessions',
  text: `
    select id, org_id, created_at, last_used_at, expires_at, host(ip) as ip, user_agent
    from smartqueue.refresh_families
    where user_id = $1::uuid
      and revoked_at is null
      and expires_at > now()
      and ($2::uuid is null or id < $2::uuid)
    order by id desc
    limit $3::int`,
  values: [page.userId, page.before, page.limit],
})

/**
 * Ends one sign-in of the user, or all the others. Returns a row with its active organisation for each that was ended,
 * and for the one also if it has ended before.
 */
export const endOwnSessions = (session: {
  id: string
  userId: string
  others: boolean
}): Query<{ org_id: string }> => ({
  name: 'end-own-sessions',
  text: `
    update smartqueue.refresh_families
    set revoked_at = coalesce(revoked_at, now())
    where user_id = $2::uuid
      and (id = $1::uuid) <> $3::boolean
      and (not $3::boolean or revoked_at is null and expires_at > now())
    returning
      org_id,
      case
        when revoked_at = now() then smartqueue.audit(
          org_id, 'account.signed_out', jsonb_build_object('user_id', user_id, 'session_id', id)
        )
      end as audited`,
  values: [session.id, session.userId, session.others],
})

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
