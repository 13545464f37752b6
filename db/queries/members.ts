import type { Query } from '../query.ts'
import type { MemberRole } from '../rules/roles.ts'
import { audit } from './audit.ts'

export type MemberRow = { user_id: string; username: string; role: MemberRole; joined_at: string }

/** In the order of their ids. */
export const listMembers = (page: {
  orgId: string
  after: string | null
  limit: number
}): Query<MemberRow> => ({
  name: 'list-members',
  text: `
    select m.user_id, u.username, m.role, m.created_at as joined_at
    from smartqueue.memberships m
    join smartqueue.users u on u.id = m.user_id
    where m.org_id = $1::uuid
      and ($2::uuid is null or m.user_id > $2::uuid)
    order by m.user_id
    limit $3::int`,
  values: [page.orgId, page.after, page.limit],
})

/** `done` false: it would leave the organisation without an org_admin. No row: there is no such member. */
export type MemberChange = MemberRow & { done: boolean }

/**
 * The member, and whether another org_admin stays. All org_admins are locked in one order, and looked at as they are once
 * locked: of two who demote each other at the same time the second sees what the first has done.
 */
const TARGET = `
    locked as materialized (
      select org_id, user_id, role, created_at
      from smartqueue.memberships
      where org_id = $1::uuid
        and (role = 'org_admin' or user_id = $2::uuid)
      order by user_id
      for update
    ),
    target as materialized (
      select
        org_id, user_id, role, created_at,
        role <> 'org_admin'
          or exists (select from locked where role = 'org_admin' and user_id <> $2::uuid) as replaceable
      from locked
      where user_id = $2::uuid
    )`

const ANSWER = (done: string, role: string): string => `
    select t.user_id, u.username, ${role} as role, t.created_at as joined_at, ${done} as done
    from target t
    join smartqueue.users u on u.id = t.user_id`

export const changeRole = (change: {
  orgId: string
  userId: string
  role: MemberRole
}): Query<MemberChange> => ({
  name: 'change-role',
  text: `
    with ${TARGET.trim()},
    changed as (
      update smartqueue.memberships m
      set role = $3::text
      from target t
      where m.org_id = t.org_id
        and m.user_id = t.user_id
        and (t.replaceable or $3::text = 'org_admin')
        and m.role <> $3::text
      returning m.org_id, m.user_id, t.role as was, m.role
    ),
    audit as (${audit('member.role_changed', `jsonb_build_object('user_id', user_id, 'from', was, 'to', role)`, 'changed')}
    )${ANSWER(`t.replaceable or $3::text = 'org_admin'`, '$3::text')}`,
  values: [change.orgId, change.userId, change.role],
})

/** With the membership go its sessions and API keys, and the invitations that the member has made. */
export const removeMember = (member: { orgId: string; userId: string }): Query<MemberChange> => ({
  name: 'remove-member',
  text: `
    with ${TARGET.trim()},
    removed as (
      delete from smartqueue.memberships m
      using target t
      where m.org_id = t.org_id
        and m.user_id = t.user_id
        and t.replaceable
      returning m.org_id, m.user_id, m.role
    ),
    withdrawn as (
      update smartqueue.invitations i
      set revoked_at = now()
      from removed r
      where i.org_id = r.org_id
        and i.invited_by = r.user_id
        and i.accepted_at is null
        and i.revoked_at is null
    ),
    audit as (${audit('member.removed', `jsonb_build_object('user_id', user_id, 'role', role)`, 'removed')}
    )${ANSWER('t.replaceable', 't.role')}`,
  values: [member.orgId, member.userId],
})
