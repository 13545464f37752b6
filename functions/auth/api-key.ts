import { findApiKey } from '../../db/queries/api-keys.ts'
import type { Database } from '../database.ts'
import { SCOPES } from './permissions.ts'
import type { Principal } from './principal.ts'
import { hashSecret } from './secrets.ts'

/** Tells whose key it is. */
export type ApiKeys = { find(key: string): Promise<Principal | undefined> }

/**
 * Remembered for a minute, so that a key costs a round trip of its own now and then only. That opens no door: each
 * transaction looks again whether the key still holds.
 */
const FRESH_MS = 60_000
const MAX_REMEMBERED = 10_000

export const createApiKeys = (database: Database): ApiKeys => {
  const remembered = new Map<string, { principal: Principal; until: number }>()

  const load = async (hash: string): Promise<Principal | undefined> => {
    const [holder] = await database.run(findApiKey(hash))
    if (!holder) return undefined
    const { id, org_id, user_id, role } = holder
    const expires_at = holder.expires_at === null ? null : Date.parse(holder.expires_at)
    const scopes = SCOPES.filter((scope) => holder.scopes.includes(scope))
    return { user_id, org_id, role, session_id: null, key_id: id, secret: hash, scopes, expires_at }
  }

  return {
    find: async (key) => {
      const hash = await hashSecret(key)
      const known = remembered.get(hash)
      if (known && known.until > Date.now()) return known.principal
      const principal = await load(hash)
      remembered.delete(hash)
      if (remembered.size === MAX_REMEMBERED) remembered.clear()
      if (principal) remembered.set(hash, { principal, until: Date.now() + FRESH_MS })
      return principal
    },
  }
}
