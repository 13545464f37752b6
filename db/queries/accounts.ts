import type { Query } from '../query.ts'
import type { Role } from '../rules/roles.ts'

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
}): Query<Account> => ({
  name: 'register-account',
  text: `
    with new_user as (
      insert into users (id, username, password_hash)
      values ($1::uuid, $4::text, $5::text)
      on conflict (lower(username)) do nothing
      returning id, username
    ),
    new_org as (
      insert into orgs (id, name)
      select $2::uuid, username
      from new_user
      returning id
    ),
    membership as (
      insert into memberships (org_id, user_id, role)
      select new_org.id, new_user.id, 'org_admin'
      from new_user, new_org
      returning org_id, user_id, role
    ),
    family as (
      insert into refresh_families (id, user_id, org_id)
      select $3::uuid, user_id, org_id
      from membership
      returning id
    ),
    token as (
      insert into refresh_tokens (token_hash, family_id, expires_at)
      select decode($6::text, 'hex'), id, now() + $7::int * interval '1 day'
      from family
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
  ],
})

/** The account of a name in its oldest organisation, with the hash to check the password against. */
export const findAccount = (username: string): Query<Account & { password_hash: string }> => ({
  name: 'find-account',
  text: `
    select
      u.id as user_id,
      u.username,
      u.password_hash,
      m.org_id,
      case when u.is_admin then 'admin' else m.role end as role
    from users u
    join memberships m on m.user_id = u.id
    where lower(u.username) = lower($1::text)
    order by m.created_at, m.org_id
    limit 1`,
  values: [username],
})
