import type { Query } from '../query.ts'
import type { Account } from './accounts.ts'
import { audit } from './audit.ts'

/**
 * Exchanges a refresh token for its successor. No row: unknown, expired, revoked, or presented before.
 * The last of these means that two parties hold it, so the whole family is revoked. The row lock makes the
 * second of two concurrent exchanges see the first.
 *
 * With a grace, one that was exchanged no longer ago is answered as it was then, and nothing changes: its successor has to
 * be the same.
 */
export const rotateRefreshToken = (rotation: {
  presentedHash: string
  successorHash: string
  days: number
  graceSeconds: number | null
  userAgent: string | null
}): Query<Account & { session_id: string }> => ({
  name: 'rotate-refresh-token',
  text: `
    with presented as materialized (
      select
        t.token_hash, t.family_id, t.replaced_at,
        coalesce(t.replaced_at > now() - $4::int * interval '1 second', false) as repeated
      from smartqueue.refresh_tokens t
      join smartqueue.refresh_families f on f.id = t.family_id
      where t.token_hash = decode($1::text, 'hex')
        and t.expires_at > now()
        and f.revoked_at is null
      for update
    ),
    revoked as (
      update smartqueue.refresh_families f
      set revoked_at = now()
      from presented p
      where f.id = p.family_id
        and p.replaced_at is not null
        and not p.repeated
      returning f.org_id, f.user_id
    ),
    audit as (${audit('account.token_reused', `jsonb_build_object('user_id', user_id)`, 'revoked')}
    ),
    replaced as (
      update smartqueue.refresh_tokens t
      set replaced_at = now()
      from presented p
      where t.token_hash = p.token_hash
        and p.replaced_at is null
      returning t.family_id
    ),
    prolonged as (
      update smartqueue.refresh_families f
      set
        expires_at = now() + $3::int * interval '1 day', last_used_at = now(), ip = smartqueue.scope_ip(),
        user_agent = $5::text
      from replaced r
      where f.id = r.family_id
    ),
    successor as (
      insert into smartqueue.refresh_tokens (token_hash, family_id, expires_at)
      select decode($2::text, 'hex'), family_id, now() + $3::int * interval '1 day'
      from replaced
    )
    select
      f.id as session_id,
      u.id as user_id,
      u.username,
      m.org_id,
      case when u.is_admin then 'admin' else m.role end as role
    from (select family_id from replaced union all select family_id from presented where repeated) r
    join smartqueue.refresh_families f on f.id = r.family_id
    join smartqueue.memberships m on m.org_id = f.org_id and m.user_id = f.user_id
    join smartqueue.users u on u.id = m.user_id`,
  values: [
    rotation.presentedHash,
    rotation.successorHash,
    rotation.days,
    rotation.graceSeconds,
    rotation.userAgent,
  ],
})

/**
 * Ends the sign-in of a refresh token, its access tokens included, and answers where it was active. Of one that has ended
 * it changes nothing: no row.
 */
export const endSession = (tokenHash: string): Query<{ org_id: string | null }> => ({
  name: 'end-session',
  text: `
    with ended as (
      update smartqueue.refresh_families f
      set revoked_at = now()
      from smartqueue.refresh_tokens t
      where t.token_hash = decode($1::text, 'hex')
        and f.id = t.family_id
        and f.revoked_at is null
      returning f.org_id, f.user_id
    ),
    audit as (${audit('account.signed_out', `jsonb_build_object('user_id', user_id)`, 'ended')}
    )
    select org_id
    from ended`,
  values: [tokenHash],
})
