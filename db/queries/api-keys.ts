import type { Page, Query } from '../query.ts'
import type { MemberRole } from '../rules/roles.ts'

export type ApiKeyRow = {
  id: string
  user_id: string
  username: string
  name: string
  prefix: string
  scopes: string[]
  created_at: string
  expires_at: string | null
  last_used_at: string | null
  revoked_at: string | null
}

/** Of an organisation, that were not revoked. */
export const MAX_KEYS = 1000

/** No row: the user is no member of the organisation, or it has too many keys. */
export const createApiKey = (key: {
  id: string
  orgId: string
  userId: string
  name: string
  prefix: string
  hash: string
  scopes: readonly string[]
  expiresAt: string | null
}): Query<ApiKeyRow> => ({
  name: 'create-api-key',
  text: `
    insert into smartqueue.api_keys as k (id, org_id, user_id, name, prefix, key_hash, scopes, expires_at)
    select $1::uuid, org_id, user_id, $4::text, $5::text, decode($6::text, 'hex'), $7::text[], $8::timestamptz
    from smartqueue.memberships
    where org_id = $2::uuid
      and user_id = $3::uuid
      and (select count(*) from smartqueue.api_keys where org_id = $2::uuid and revoked_at is null) < $9::int
    returning
      id, user_id, (select username from smartqueue.users u where u.id = k.user_id) as username, name, prefix, scopes,
      created_at, expires_at, last_used_at, revoked_at,
      smartqueue.audit(
        org_id, 'api_key.created',
        jsonb_build_object('api_key_id', id, 'name', name, 'prefix', prefix, 'scopes', scopes)
      ) as audited`,
  values: [
    ...[key.id, key.orgId, key.userId, key.name, key.prefix, key.hash, key.scopes, key.expiresAt],
    MAX_KEYS,
  ],
})

/** Oldest first: those of one member, or without one all of the organisation. */
export const listApiKeys = (page: Page & { orgId: string; userId: string | null }): Query<ApiKeyRow> => ({
  name: 'list-api-keys',
  text: `
    select
      k.id, k.user_id, u.username, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, k.last_used_at, k.revoked_at
    from smartqueue.api_keys k
    left join smartqueue.users u on u.id = k.user_id
    where k.org_id = $1::uuid
      and ($2::uuid is null or k.user_id = $2::uuid)
      and ($3::uuid is null or k.id > $3::uuid)
    order by k.id
    limit $4::int`,
  values: [page.orgId, page.userId, page.after, page.limit],
})

/** No row: there is no such key. One that was revoked before stays so. */
export const revokeApiKey = (key: {
  id: string
  orgId: string
  userId: string | null
}): Query<{ id: string }> => ({
  name: 'revoke-api-key',
  text: `
    update smartqueue.api_keys
    set revoked_at = coalesce(revoked_at, now())
    where id = $1::uuid
      and org_id = $2::uuid
      and ($3::uuid is null or user_id = $3::uuid)
    returning
      id,
      case
        when revoked_at = now() then smartqueue.audit(
          org_id, 'api_key.revoked', jsonb_build_object('api_key_id', id, 'name', name, 'prefix', prefix)
        )
      end as audited`,
  values: [key.id, key.orgId, key.userId],
})

export type KeyHolder = Pick<ApiKeyRow, 'id' | 'user_id' | 'scopes' | 'expires_at'> & {
  org_id: string
  role: MemberRole
}

/** Whose key has this hash. No row: nobody's, or it was revoked or has expired. */
export const findApiKey = (hash: string): Query<KeyHolder> => ({
  name: 'find-api-key',
  text: `
    select id, org_id, user_id, role, scopes, expires_at
    from smartqueue.find_api_key($1::text)`,
  values: [hash],
})
