import type { Page, Query } from '../query.ts'
import type { MemberRole } from '../rules/roles.ts'

export const INVITATION_HOURS = 72
/** Of an organisation, that can still be accepted. */
export const MAX_PENDING = 1000

/** `username`: who is invited; null for a link. */
export type InvitationRow = {
  id: string
  org_id: string
  org_name: string
  role: MemberRole
  username: string | null
  invited_by: string | null
  created_at: string
  expires_at: string
}

export type NewInvitation = {
  id: string
  orgId: string
  role: MemberRole
  invitedBy: string
  /** Either a user or whoever has the token. */
  username: string | null
  tokenHash: string | null
}

export type InvitationOutcome = {
  found: boolean
  is_member: boolean
  username: string | null
  created_at: string | null
  expires_at: string | null
}

/** One row. Without a time nothing was made: the user does not exist, or is a member already, or there are too many. */
export const createInvitation = (invitation: NewInvitation): Query<InvitationOutcome> => ({
  name: 'create-invitation',
  text: `
    with invited as materialized (
      select u.id, u.username, exists (
        select from smartqueue.memberships m where m.org_id = $2::uuid and m.user_id = u.id
      ) as is_member
      from smartqueue.user_named($5::text) u
    ),
    created as (
      insert into smartqueue.invitations (id, org_id, role, invited_by, user_id, token_hash, expires_at)
      select
        $1::uuid, $2::uuid, $3::text, $4::uuid, (select id from invited), decode($6::text, 'hex'),
        now() + $7::int * interval '1 hour'
      where ($5::text is null or exists (select from invited where not is_member))
        and (
          select count(*)
          from smartqueue.invitations i
          where i.org_id = $2::uuid
            -- An invitation for the same user is replaced. Links have no user, so all of them count.
            and (i.user_id = (select id from invited)) is not true
            and smartqueue.is_pending(i.accepted_at, i.revoked_at, i.expires_at)
        ) < $8::int
      returning
        created_at, expires_at,
        smartqueue.audit(
          org_id, 'member.invited', jsonb_build_object('invitation_id', id, 'role', role, 'user_id', user_id)
        )
    ),
    -- Whoever is invited again has the newer one.
    superseded as (
      update smartqueue.invitations i
      set revoked_at = now()
      where i.org_id = $2::uuid
        and i.user_id = (select id from invited)
        and smartqueue.is_pending(i.accepted_at, i.revoked_at, i.expires_at)
        and exists (select from created)
    )
    select
      $5::text is null or invited.id is not null as found,
      coalesce(invited.is_member, false) as is_member,
      invited.username, c.created_at, c.expires_at
    from (select) as always
    left join invited on true
    left join created c on true`,
  values: [
    ...[invitation.id, invitation.orgId, invitation.role, invitation.invitedBy],
    ...[invitation.username, invitation.tokenHash, INVITATION_HOURS, MAX_PENDING],
  ],
})

/** Those of an organisation, or for a user, that can still be accepted. */
export const listInvitations = (
  of: { orgId: string } | { userId: string },
  page: Page,
): Query<InvitationRow> => ({
  name: 'list-invitations',
  text: `
    select
      i.id, i.org_id, o.name as org_name, i.role, u.username, by.username as invited_by, i.created_at, i.expires_at
    from smartqueue.invitations i
    join smartqueue.orgs o on o.id = i.org_id
    left join smartqueue.users u on u.id = i.user_id
    left join smartqueue.users by on by.id = i.invited_by
    where (i.org_id = $1::uuid or i.user_id = $2::uuid)
      and smartqueue.is_pending(i.accepted_at, i.revoked_at, i.expires_at)
      and ($3::uuid is null or i.id > $3::uuid)
    order by i.id
    limit $4::int`,
  values: ['orgId' in of ? of.orgId : null, 'userId' in of ? of.userId : null, page.after, page.limit],
})

/** No row: there is none that is pending. */
export const revokeInvitation = (orgId: string, id: string): Query<{ id: string }> => ({
  name: 'revoke-invitation',
  text: `
    update smartqueue.invitations
    set revoked_at = now()
    where org_id = $1::uuid
      and id = $2::uuid
      and smartqueue.is_pending(accepted_at, revoked_at, expires_at)
    returning
      id, smartqueue.audit(org_id, 'member.invitation_revoked', jsonb_build_object('invitation_id', id)) as audited`,
  values: [orgId, id],
})

/** For the user who has entered. No row: they cannot accept it. `joined` is false if they are a member already. */
export const acceptInvitation = (acceptance: {
  id: string
  tokenHash: string | null
}): Query<{ org_id: string; org_name: string; role: MemberRole; joined: boolean }> => ({
  name: 'accept-invitation',
  text: `
    select org_id, org_name, role, joined
    from smartqueue.accept_invitation($1::uuid, $2::text)`,
  values: [acceptance.id, acceptance.tokenHash],
})
