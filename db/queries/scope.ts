/**
 * What opens the rows of an organisation to a transaction of the functions: the first statement of each. The database
 * looks itself whether whoever asks may, at this moment. See `db/accounts/enter.sql`.
 */
import type { Query, QueryValue } from '../query.ts'
import type { Role } from '../rules/roles.ts'

/** A statement that comes before others in their transaction. */
export type Entry = Query<unknown>

/** The SQLSTATEs with which a transaction ends that was not let in. */
export const NOT_ENTERED = {
  /** No member, or the session or key has ended. */
  SQ401: 'unknown',
  /** The role is too low. */
  SQ403: 'forbidden',
  /** There is no such invitation that could be accepted, or no such webhook source as it was remembered. */
  SQ404: 'closed',
} as const

/** A user in an organisation, and how they proved it: by a session or by an API key. */
export type Member = { orgId: string; userId: string; sessionId: string | null; keyId: string | null }

/** Where a request came from, for the audit log and the list of sign-ins. */
export type Origin = { ip: string | null; userAgent: string | null; requestId: string }

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

const ENTER = `smartqueue.enter(
      $1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text, $6::boolean, $7::text, $8::text, $9::text, $10::text
    )`

/** Whoever is not let in gets an error, and nothing after it runs. */
export const enter = (member: Member, options: EntryOptions): Entry => ({
  name: 'enter',
  text: `
    select smartqueue.must_enter(${ENTER})`,
  values: entryValues([member], options),
})

/** For several at once. Whoever is not let in sees nothing; the others are not disturbed. */
export const enterTogether = (members: readonly Member[]): Entry => ({
  name: 'enter-together',
  text: `
    select ${ENTER}`,
  values: entryValues(members, { leastRole: 'user' }),
})

const entryValues = (members: readonly Member[], options: EntryOptions): QueryValue[] => [
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
]

/** Of a token that is not known nothing is seen. */
export const enterWithRefreshToken = (tokenHash: string, origin: Origin): Entry => ({
  name: 'enter-with-refresh-token',
  text: `
    select smartqueue.enter_with_refresh_token($1::text, $2::text, $3::text)`,
  values: [tokenHash, origin.ip, origin.requestId],
})

export const enterWithApiKey = (keyHash: string): Entry => ({
  name: 'enter-with-api-key',
  text: `
    select smartqueue.enter_with_api_key($1::text)`,
  values: [keyHash],
})

/** Whoever calls the address of a webhook source may see that one, and nothing else. */
export const approachSource = (sourceId: string, origin: Origin): Entry => ({
  name: 'approach-source',
  text: `
    select smartqueue.enter_with_source($1::uuid, null, $2::text, $3::text)`,
  values: [sourceId, origin.ip, origin.requestId],
})

/** Opens the organisation of a source, if it is enabled and still at the version that was gone by. */
export const enterWithSource = (source: { id: string; version: string }, origin: Origin): Entry => ({
  name: 'enter-with-source',
  text: `
    select smartqueue.must_enter(smartqueue.enter_with_source($1::uuid, $2::bigint, $3::text, $4::text))`,
  values: [source.id, source.version, origin.ip, origin.requestId],
})

/** For an invited user, after `enter`. */
export const openInvitation = (invitationId: string): Entry => ({
  name: 'open-invitation',
  text: `
    select smartqueue.must_enter(smartqueue.open_invitation($1::uuid))`,
  values: [invitationId],
})

/** Enters a registration by invitation link, after `approach` with the hash of the link's token. */
export const openInvitationByToken = (): Entry => ({
  name: 'open-invitation-by-token',
  text: `
    select smartqueue.must_enter(
      smartqueue.open_invitation(
        (select id from smartqueue.invitations where token_hash = smartqueue.scope_secret())
      )
    )`,
  values: [],
})

/**
 * Serialises transactions that count before they insert. It must be a separate statement, so that the next
 * one also counts what the previous transaction committed.
 */
export const takeTurns = (limited: Limited, ownerId: string): Entry => ({
  name: 'take-turns',
  text: `
    select pg_advisory_xact_lock(hashtextextended($1::text || $2::text, 0))`,
  values: [limited, ownerId],
})

/** Resources whose number per account or organisation is limited. */
type Limited = 'orgs' | 'api-keys' | 'invitations' | 'schedules' | 'webhook-sources' | 'callback-endpoints'

/** Before anybody is known: what the request itself names. */
export const approach = (scope: {
  orgId?: string
  userId?: string
  name?: string
  secretHash?: string
  origin: Origin
}): Entry => ({
  name: 'approach',
  text: `
    select smartqueue.set_scope(
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
