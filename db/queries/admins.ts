import type { Query } from '../query.ts'

/** What an operator does with the database's own credentials: the audit log has no actor. */

/** Creates an account with a personal organisation, unless the name is taken. */
export const createAccount = (account: {
  userId: string
  orgId: string
  username: string
  passwordHash: string
  isAdmin: boolean
}): Query<{ created: boolean }> => ({
  name: 'create-account',
  text: `
    select smartqueue.create_account($1::uuid, $2::uuid, $3::text, $4::text, $5::boolean) as created`,
  values: [account.userId, account.orgId, account.username, account.passwordHash, account.isAdmin],
})

/** No row: nobody has the name. */
export const setAdmin = (username: string, isAdmin: boolean): Query<{ user_id: string }> => ({
  name: 'set-admin',
  text: `
    update smartqueue.users
    set is_admin = $2::boolean
    where username_key = lower($1::text)
    returning
      id as user_id,
      smartqueue.audit_everywhere(id, case when $2::boolean then 'admin.granted' else 'admin.revoked' end) as audited`,
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
      returning id as user_id, smartqueue.audit_everywhere(id, 'account.password_changed')
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
    select user_id
    from changed`,
  values: [username, passwordHash],
})
