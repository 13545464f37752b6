import type { Member } from '../../db/queries/scope.ts'
import type { Role } from '../../db/rules/roles.ts'
import type { Permission } from './permissions.ts'

/** Who asks, in which organisation, and how they proved it. */
export type Principal = {
  user_id: string
  org_id: string
  role: Role
  /** The sign-in, of a person. */
  session_id: string | null
  /** The session's secret, or the hash of the API key. */
  secret: string
  /** The API key, of a program, and what it was given. */
  key_id: string | null
  scopes: readonly Permission[] | null
  /** When the token or the key ends, in milliseconds; null: never. */
  expires_at: number | null
}

export const memberOf = ({ user_id, org_id, session_id, key_id, secret }: Principal): Member => ({
  userId: user_id,
  orgId: org_id,
  sessionId: session_id,
  keyId: key_id,
  secret,
})
