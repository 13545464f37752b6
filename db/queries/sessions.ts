import type { Query } from '../query.ts'

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
export const listSessions = (page: {
  userId: string
  before: string | null
  limit: number
}): Query<SessionRow> => ({
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
 * Returns the sign-in's active organisation, or no row if the user has no such sign-in. Ending it twice is
 * harmless.
 */
export const endOwnSession = (session: { id: string; userId: string }): Query<{ org_id: string }> => ({
  name: 'end-own-session',
  text: `
    with found as materialized (
      select id, org_id, revoked_at
      from smartqueue.refresh_families
      where id = $1::uuid
        and user_id = $2::uuid
      for update
    ),
    ended as (
      update smartqueue.refresh_families f
      set revoked_at = now()
      from found
      where f.id = found.id
        and found.revoked_at is null
      returning f.id, f.org_id, f.user_id
    ),
    audit as (
      insert into smartqueue.audit_log (org_id, action, target)
      select org_id, 'account.signed_out', jsonb_build_object('user_id', user_id, 'session_id', id)
      from ended
    )
    select org_id
    from found`,
  values: [session.id, session.userId],
})

/** Ends all sign-ins of the user but one. Returns a row for each that was ended. */
export const endOtherSessions = (session: { id: string; userId: string }): Query<{ org_id: string }> => ({
  name: 'end-other-sessions',
  text: `
    with ended as (
      update smartqueue.refresh_families
      set revoked_at = now()
      where user_id = $2::uuid
        and id <> $1::uuid
        and revoked_at is null
        and expires_at > now()
      returning id, org_id, user_id
    )
    select e.org_id
    from ended e
    cross join smartqueue.audit(
      e.org_id, 'account.signed_out', jsonb_build_object('user_id', e.user_id, 'session_id', e.id)
    )`,
  values: [session.id, session.userId],
})
