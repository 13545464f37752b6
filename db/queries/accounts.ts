import type { Page, Query } from '../query.ts'
import type { Role } from '../rules/roles.ts'
import type { Origin } from './scope.ts'
import type { NewSession } from './sign-in.ts'

export type Account = {
  user_id: string
  username: string
  org_id: string
  role: Role
}

/** Returns no row if the invitation is not open, and a row without a `user_id` if the name is taken. */
export const registerAccount = (
  account: {
    userId: string
    username: string
    passwordHash: string
    orgId: string
    invitationHash: string | null
  },
  session: NewSession,
  origin: Origin,
): Query<Account | { user_id: null }> => ({
  name: 'register-account',
  text: `
    select user_id, username, org_id, role
    from smartqueue.register(
      $1::uuid, $2::text, $3::text, $4::uuid, $5::text, $6::uuid, $7::text, $8::text, $9::integer, $10::text, $11::text,
      $12::text
    )`,
  values: [
    ...[account.userId, account.username, account.passwordHash, account.orgId, account.invitationHash],
    ...[session.id, session.secretHash, session.tokenHash, session.days],
    ...[origin.ip, origin.userAgent, origin.requestId],
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

export type UserRow = {
  id: string
  username: string
  is_admin: boolean
  org_ids: string[]
  created_at: string
}

/** All users, in the order of their ids, which is that of their registration. */
export const listUsers = (page: Page): Query<UserRow> => ({
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
