/**
 * What opens the rows of an organisation to a transaction of the functions: the first statement of each. The database
 * looks itself whether whoever asks may, at this moment. See `db/migrations/0013_row_security.sql`.
 */
import type { Query } from '../query.ts'
import type { Role } from '../rules/roles.ts'

/**
 * `unknown`: no member, or the session or key has ended. `forbidden`: the role is too low. `closed`: there is no such
 * invitation that could be accepted.
 */
export type Entry = { entry: 'entered' | 'forbidden' | 'unknown' | 'closed' }

/** A user in an organisation, and how they proved it: by a session or by an API key. */
export type Member = { orgId: string; userId: string; sessionId: string | null; keyId: string | null }

/** From where a request came, for the audit log. */
export type Origin = { ip: string | null; requestId: string }

export type EntryOptions = {
  leastRole: Role
  /** Opens all organisations, to an admin. */
  allOrgs?: boolean
  origin?: Origin
  /** A user of this name may be seen, too. */
  name?: string
  /** What has this hash may be seen, too. */
  secretHash?: string
}

export const enter = (members: readonly Member[], options: EntryOptions): Query<Entry> => ({
  name: 'enter',
  text: `
    select enter(
      $1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text, $6::boolean, $7::text, $8::text, $9::text, $10::text
    ) as entry`,
  values: [
    members.map(({ orgId }) => orgId),
    members.map(({ userId }) => userId),
    members.map(({ sessionId }) => sessionId),
    members.map(({ keyId }) => keyId),
    options.leastRole,
    options.allOrgs ?? false,
    options.origin?.ip ?? null,
    options.origin?.requestId ?? null,
    options.name ?? null,
    options.secretHash ?? null,
  ],
})

export const enterWithRefreshToken = (tokenHash: string, origin: Origin): Query<Entry> => ({
  name: 'enter-with-refresh-token',
  text: `
    select enter_with_refresh_token($1::text, $2::text, $3::text) as entry`,
  values: [tokenHash, origin.ip, origin.requestId],
})

export const enterWithApiKey = (keyHash: string): Query<Entry> => ({
  name: 'enter-with-api-key',
  text: `
    select enter_with_api_key($1::text) as entry`,
  values: [keyHash],
})

/** For an invited user, after `enter`. */
export const openInvitation = (invitationId: string): Query<Entry> => ({
  name: 'open-invitation',
  text: `
    select open_invitation($1::uuid) as entry`,
  values: [invitationId],
})

/** Before anybody is known: what the request itself names. */
export const approach = (scope: {
  orgId?: string
  userId?: string
  name?: string
  secretHash?: string
  origin: Origin
}): Query<Entry> => ({
  name: 'approach',
  text: `
    select 'entered' as entry, set_scope(
      array_remove(array[$1::uuid], null), $2::uuid, null, $3::text, $4::text, $5::text, $6::text
    )`,
  values: [
    scope.orgId ?? null,
    scope.userId ?? null,
    scope.name ?? null,
    scope.secretHash ?? null,
    scope.origin.ip,
    scope.origin.requestId,
  ],
})
