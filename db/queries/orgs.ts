import type { Page, Query } from '../query.ts'
import type { MemberRole } from '../rules/roles.ts'
import type { Account } from './accounts.ts'

/** `role`: that of the user who asks; null for an admin who is no member. */
export type OrgRow = {
  id: string
  name: string
  role: MemberRole | null
  members: number
  created_at: string
}

/** For the user who has entered. Null if they have already created `limit` organisations. */
export const createOrg = (org: {
  id: string
  name: string
  limit: number
}): Query<{ created_at: string | null }> => ({
  name: 'create-org',
  text: `
    select smartqueue.create_org($1::uuid, $2::text, $3::integer) as created_at`,
  values: [org.id, org.name, org.limit],
})

export const getOrg = (orgId: string, userId: string): Query<OrgRow> => ({
  name: 'get-org',
  text: `
    select
      o.id, o.name, o.created_at, m.role,
      (select count(*)::integer from smartqueue.memberships a where a.org_id = o.id) as members
    from smartqueue.orgs o
    left join smartqueue.memberships m on m.org_id = o.id and m.user_id = $1::uuid
    where o.id = $2::uuid`,
  values: [userId, orgId],
})

/** Those of one user in the order of their ids, or those of everybody. */
export const listOrgs = (
  page: Page & { userId: string; everybodys: boolean },
): Query<Omit<OrgRow, 'members'>> => ({
  name: 'list-orgs',
  text: `
    select o.id, o.name, o.created_at, m.role
    from smartqueue.orgs o
    left join smartqueue.memberships m on m.org_id = o.id and m.user_id = $1::uuid
    where ($2::boolean or m.user_id is not null)
      and ($3::uuid is null or o.id > $3::uuid)
    order by o.id
    limit $4::int`,
  values: [page.userId, page.everybodys, page.after, page.limit],
})

/**
 * Makes an organisation the active one of a session. An admin who is no member only looks: the session stays where it
 * is, and the access token alone is for the other organisation. No row: there is no such organisation.
 */
export const switchOrg = (change: { orgId: string; userId: string; sessionId: string }): Query<Account> => ({
  name: 'switch-org',
  text: `
    with account as materialized (
      select
        u.id as user_id, u.username, o.id as org_id, case when u.is_admin then 'admin' else m.role end as role,
        m.role is not null as is_member
      from smartqueue.orgs o
      join smartqueue.users u on u.id = $1::uuid
      left join smartqueue.memberships m on m.org_id = o.id and m.user_id = u.id
      where o.id = $2::uuid
    ),
    switched as (
      update smartqueue.refresh_families f
      set org_id = account.org_id
      from account
      where f.id = $3::uuid
        and account.is_member
    )
    select a.user_id, a.username, a.org_id, a.role
    from account a
    cross join smartqueue.audit(a.org_id, 'org.switched', jsonb_build_object('user_id', a.user_id))`,
  values: [change.userId, change.orgId, change.sessionId],
})
