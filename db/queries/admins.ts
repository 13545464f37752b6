import type { Query } from '../query.ts'

/** What an operator does with the database's own credentials: the audit log has no actor. */

/** Creates an account with a personal organisation. Returns no row if the name is taken. */
export const createAccount = (account: {
  userId: string
  orgId: string
  username: string
  passwordHash: string
  isAdmin: boolean
}): Query<{ user_id: string }> => ({
  name: 'create-account',
  text: `
    with new_user as (
      insert into smartqueue.users (id, username, password_hash, is_admin)
      values ($1::uuid, $3::text, $4::text, $5::boolean)
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
      returning org_id, user_id
    ),
    audit as (
      insert into smartqueue.audit_log (org_id, action, target)
      select org_id, action, jsonb_build_object('user_id', user_id)
      from membership
      cross join unnest(array['account.registered', case when $5::boolean then 'admin.granted' end]) as action
      where action is not null
    )
    select user_id
    from membership`,
  values: [account.userId, account.orgId, account.username, account.passwordHash, account.isAdmin],
})

/** No row: nobody has the name. */
export const setAdmin = (username: string, isAdmin: boolean): Query<{ user_id: string }> => ({
  name: 'set-admin',
  text: `
    with changed as (
      update smartqueue.users
      set is_admin = $2::boolean
      where username_key = lower($1::text)
      returning id as user_id
    )
    select c.user_id
    from changed c
    cross join smartqueue.audit_everywhere(
      c.user_id, case when $2::boolean then 'admin.granted' else 'admin.revoked' end
    )`,
  values: [username, isAdmin],
})

export const listAdmins = (): Query<{ username: string; created_at: string }> => ({
  name: 'list-admins',
  text: `
    select username, created_at
    from smartqueue.users
    where is_admin
    order by id`,
  values: [],
})

/** Ends all sign-ins of the user. No row: nobody has the name. */
export const resetPassword = (username: string, passwordHash: string): Query<{ user_id: string }> => ({
  name: 'reset-password',
  text: `
    with changed as (
      update smartqueue.users
      set password_hash = $2::text
      where username_key = lower($1::text)
      returning id as user_id
    ),
    ended as (
      update smartqueue.refresh_families f
      set revoked_at = now()
      from changed
      where f.user_id = changed.user_id
        and f.revoked_at is null
    ),
    forgotten as (
      delete from smartqueue.sign_in_attempts
      where name_hash = sha256(convert_to(lower($1::text), 'UTF8'))
    )
    select c.user_id
    from changed c
    cross join smartqueue.audit_everywhere(c.user_id, 'account.password_changed')`,
  values: [username, passwordHash],
})
