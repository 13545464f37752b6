import type { Page, Query } from '../query.ts'
import type { MemberRole } from '../rules/roles.ts'

export type MemberRow = { user_id: string; username: string; role: MemberRole; joined_at: string }

/** In the order of their ids. */
export const listMembers = (page: Page & { orgId: string }): Query<MemberRow> => ({
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

/** Without a role the membership ends, with its sessions and API keys and the invitations that the member has made. */
export const changeMember = (change: {
  orgId: string
  userId: string
  role: MemberRole | null
}): Query<MemberChange> => ({
  name: 'change-member',
  text: `
    select user_id, username, role, joined_at, done
    from smartqueue.change_member($1::uuid, $2::uuid, $3::text)`,
  values: [change.orgId, change.userId, change.role],
})
