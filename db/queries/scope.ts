/**
 * Opens the rows of an organisation to a transaction of the functions: the first statement of each. The database
 * checks a secret and signs what it opens. See `db/accounts/enter.sql` and ADR 25.
 */
import type { Query } from '../query.ts'
import type { Role } from '../rules/roles.ts'

/** A statement that comes before others in their transaction. Queries that accept its `proof` do not need it. */
export type Entry = Query<unknown> & { readonly proof?: EntryProof }

/** The credentials of the caller as JSON, for `smartqueue.admit`. */
export type EntryProof = string

/** The SQLSTATEs with which a transaction ends that was not let in. */
export const NOT_ENTERED = {
  /** No member, or the session or key has ended. */
  SQ401: 'unknown',
  /** The role is too low. */
  SQ403: 'forbidden',
  /** The webhook source has changed, or is gone. */
  SQ404: 'closed',
} as const

/** A user in an organisation, and how they prove it: by a session or by an API key. */
export type Member = {
  orgId: string
  userId: string
  sessionId: string | null
  keyId: string | null
  /** The session's secret, or the hash of the API key. */
  secret: string
}

/** Where a request came from, for the audit log and the list of sign-ins. */
export type Origin = { ip: string | null; userAgent: string | null; requestId: string }

export type EntryOptions = {
  leastRole: Role
  /** Opens all organisations, to an admin. */
  allOrgs?: boolean
  origin?: Origin
}

/** Whoever is not let in gets an error, and nothing after it runs. */
export const enter = (member: Member, options: EntryOptions): Entry => ({
  name: 'enter',
  text: `
    select smartqueue.enter(
      $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::text, $6::text, $7::boolean, $8::text, $9::text
    )`,
  values: [
    ...[member.orgId, member.userId, member.sessionId, member.keyId, member.secret],
    ...[options.leastRole, options.allOrgs ?? false],
    ...[options.origin?.ip ?? null, options.origin?.requestId ?? null],
  ],
  proof: JSON.stringify({
    org: member.orgId,
    user: member.userId,
    session: member.sessionId,
    key: member.keyId,
    secret: member.secret,
    least_role: options.leastRole,
    all_orgs: options.allOrgs ?? false,
  }),
})

/** Opens the organisation of a source, if it is enabled and still at the version with which a delivery was verified. */
export const enterWithSource = (
  source: { id: string; version: string; secret: string },
  origin: Origin,
): Entry => ({
  name: 'enter-with-source',
  text: `
    select smartqueue.enter_with_source($1::uuid, $2::bigint, $3::text, $4::text, $5::text)`,
  values: [source.id, source.version, source.secret, origin.ip, origin.requestId],
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

/** Resources whose number is limited: per organisation, and rejections per source. */
type Limited =
  | 'api-keys'
  | 'invitations'
  | 'schedules'
  | 'webhook-sources'
  | 'callback-endpoints'
  | 'webhook-rejections'
