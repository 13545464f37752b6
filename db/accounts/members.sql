create or replace function change_member(p_org uuid, p_user uuid, p_role text)
returns table (user_id uuid, username text, role text, joined_at timestamptz, done boolean)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Gives a member another role or, without one, removes them: their sessions and API keys are deleted, and their open
-- invitations are revoked. `done` is false if the organisation would be left without an org_admin. Returns no row if
-- there is no such member. Runs with the rights of its caller, under row-level security.
begin
  -- All org_admins are locked in the same order: if two demote each other at the same time, the second sees the change
  -- of the first.
  perform
  from memberships m
  where m.org_id = p_org
    and (m.role = 'org_admin' or m.user_id = p_user)
  order by m.user_id
  for update;
  select m.user_id, u.username, m.role, m.created_at
  into user_id, username, role, joined_at
  from memberships m
  join users u on u.id = m.user_id
  where m.org_id = p_org
    and m.user_id = p_user;
  if not found then return; end if;
  done := role <> 'org_admin'
    or p_role is not distinct from 'org_admin'
    or exists (
      select
      from memberships m
      where m.org_id = p_org
        and m.user_id <> p_user
        and m.role = 'org_admin'
    );
  if done and p_role is null then
    delete from memberships m where m.org_id = p_org and m.user_id = p_user;
    update invitations i
    set revoked_at = now()
    where i.org_id = p_org
      and i.invited_by = p_user
      and i.accepted_at is null
      and i.revoked_at is null;
    perform audit(p_org, 'member.removed', jsonb_build_object('user_id', p_user, 'role', role));
  elsif done and p_role <> role then
    update memberships m set role = p_role where m.org_id = p_org and m.user_id = p_user;
    perform audit(
      p_org, 'member.role_changed', jsonb_build_object('user_id', p_user, 'from', role, 'to', p_role)
    );
    role := p_role;
  end if;
  return next;
end
$$;

grant execute on function change_member to smartqueue_functions;
