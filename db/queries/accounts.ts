import type { Query } from '../query.ts'
import type { Role } from '../rules/roles.ts'
import { audit } from './audit.ts'

export type Account = {
  user_id: string
  username: string
  org_id: string
  role: Role
}

/** Account, personal organisation, membership and first refresh token, or none of them: no row if the name is taken. */
export const registerAccount = (account: {
  userId: string
  orgId: string
  familyId: string
  username: string
  passwordHash: string
  refreshTokenHash: string
  refreshTokenDays: number
  userAgent: string | null
}): Query<Account> => ({
  name: 'register-account',
  text: `
    with new_user as (
      insert into smartqueue.users (id, username, password_hash)
      values ($1::uuid, $4::text, $5::text)
      on conflict (lower(username)) do nothing
      returning id, username
    ),
    new_org as (
      insert into smartqueue.orgs (id, name, created_by)
      select $2::uuid, username, id
      from new_user
      returning id
    ),
    membership as (
      insert into smartqueue.memberships (org_id, user_id, role)
      select new_org.id, new_user.id, 'org_admin'
      from new_user, new_org
      returning org_id, user_id, role
    ),
    family as (
      insert into smartqueue.refresh_families (id, user_id, org_id, expires_at, user_agent)
      select $3::uuid, user_id, org_id, now() + $7::int * interval '1 day', $8::text
      from membership
      returning id
    ),
    token as (
      insert into smartqueue.refresh_tokens (token_hash, family_id, expires_at)
      select decode($6::text, 'hex'), id, now() + $7::int * interval '1 day'
      from family
    ),
    audit as (${audit('account.registered', `jsonb_build_object('user_id', user_id)`, 'membership')}
    )
    select new_user.id as user_id, new_user.username, membership.org_id, membership.role
    from new_user, membership`,
  values: [
    account.userId,
    account.orgId,
    account.familyId,
    account.username,
    account.passwordHash,
    account.refreshTokenHash,
    account.refreshTokenDays,
    account.userAgent,
  ],
})

/**
 * Creates the account, its membership in the organisation that sent the link, and its first refresh token, or
 * none of them. The row lock makes a second registration with the same link see that it was used. Returns no
 * row if the invitation is not open, and a row without a `user_id` if the name is taken; the invitation then
 * stays open.
 */
export const registerInvited = (account: {
  userId: string
  familyId: string
  username: string
  passwordHash: string
  invitationHash: string
  refreshTokenHash: string
  refreshTokenDays: number
  userAgent: string | null
}): Query<Account | { user_id: null }> => ({
  name: 'register-invited',
  text: `
    with invitation as materialized (
      select id, org_id, role
      from smartqueue.invitations
      where token_hash = decode($5::text, 'hex')
        and accepted_at is null
        and revoked_at is null
        and expires_at > now()
      for update
    ),
    new_user as (
      insert into smartqueue.users (id, username, password_hash)
      select $1::uuid, $3::text, $4::text
      from invitation
      on conflict (lower(username)) do nothing
      returning id, username
    ),
    membership as (
      insert into smartqueue.memberships (org_id, user_id, role)
      select invitation.org_id, new_user.id, invitation.role
      from invitation, new_user
      returning org_id, user_id, role
    ),
    accepted as (
      update smartqueue.invitations i
      set accepted_at = now(), accepted_by = membership.user_id
      from invitation, membership
      where i.id = invitation.id
      returning i.id, i.org_id, i.accepted_by as user_id, i.role
    ),
    family as (
      insert into smartqueue.refresh_families (id, user_id, org_id, expires_at, user_agent)
      select $2::uuid, user_id, org_id, now() + $7::int * interval '1 day', $8::text
      from membership
      returning id
    ),
    token as (
      insert into smartqueue.refresh_tokens (token_hash, family_id, expires_at)
      select decode($6::text, 'hex'), id, now() + $7::int * interval '1 day'
      from family
    ),
    registered as (${audit('account.registered', `jsonb_build_object('user_id', user_id)`, 'accepted')}
    ),
    joined as (${audit('member.joined', `jsonb_build_object('user_id', user_id, 'role', role, 'invitation_id', id)`, 'accepted')}
    )
    select membership.user_id, new_user.username, membership.org_id, membership.role
    from invitation
    left join membership on true
    left join new_user on true`,
  values: [
    account.userId,
    account.familyId,
    account.username,
    account.passwordHash,
    account.invitationHash,
    account.refreshTokenHash,
    account.refreshTokenDays,
    account.userAgent,
  ],
})

export const findUser = (username: string): Query<{ id: string; is_admin: boolean }> => ({
  name: 'find-user',
  text: `
    select id, is_admin
    from smartqueue.users
    where username_key = lower($1::text)`,
  values: [username],
})

export const nameOf = (userId: string): Query<{ username: string }> => ({
  name: 'name-of',
  text: `
    select username
    from smartqueue.users
    where id = $1::uuid`,
  values: [userId],
})

/**
 * Ends all other sign-ins of the user and, on request, revokes their API keys in all organisations. Returns
 * no row if the password was changed in the meantime.
 */
export const changePassword = (change: {
  userId: string
  orgId: string
  sessionId: string
  from: string
  to: string
  revokeKeys: boolean
}): Query<{ ended: number; revoked: number }> => ({
  name: 'change-password',
  text: `
    with changed as (
      update smartqueue.users
      set password_hash = $5::text
      where id = $1::uuid
        and password_hash = $4::text
      returning id, $2::uuid as org_id
    ),
    ended as (
      update smartqueue.refresh_families f
      set revoked_at = now()
      from changed
      where f.user_id = changed.id
        and f.id <> $3::uuid
        and f.revoked_at is null
      returning f.id
    ),
    revoked as (
      update smartqueue.api_keys k
      set revoked_at = now()
      from changed
      where k.user_id = changed.id
        and k.revoked_at is null
        and $6::boolean
      returning k.id, k.org_id, k.name, k.prefix
    ),
    audit as (${audit('account.password_changed', `jsonb_build_object('user_id', id)`, 'changed')}
    ),
    audit_keys as (${audit('api_key.revoked', `jsonb_build_object('api_key_id', id, 'name', name, 'prefix', prefix)`, 'revoked')}
    )
    select
      (select count(*)::integer from ended) as ended,
      (select count(*)::integer from revoked) as revoked
    from changed`,
  values: [change.userId, change.orgId, change.sessionId, change.from, change.to, change.revokeKeys],
})

export type UserRow = { id: string; username: string; is_admin: boolean; org_ids: string[]; created_at: Date }

/** All users, in the order of their ids, which is that of their registration. */
export const listUsers = (page: { after: string | null; limit: number }): Query<UserRow> => ({
  name: 'list-users',
  text: `
    select
      u.id, u.username, u.is_admin, u.created_at,
      array(
        select org_id
        from smartqueue.memberships m
        where m.user_id = u.id
        order by m.created_at, m.org_id
      ) as org_ids
    from smartqueue.users u
    where $1::uuid is null or u.id > $1::uuid
    order by u.id
    limit $2::int`,
  values: [page.after, page.limit],
})
