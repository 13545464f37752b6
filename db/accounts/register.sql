-- Creating accounts and organisations, and joining them. An organisation is created together with its first member;
-- joining an existing one requires an invitation.

create or replace function add_org(p_org uuid, p_name text, p_user uuid) returns void
language sql
begin atomic
  insert into orgs (id, name, created_by) values (p_org, p_name, p_user);
  insert into memberships (org_id, user_id, role) values (p_org, p_user, 'org_admin');
  insert into quota_states (org_id, queued_bound, counted_at) values (p_org, 0, now());
end;

create or replace function oldest_org(p_user uuid, p_spare_org uuid) returns uuid
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The organisation that the user has been in for the longest time. A user without one gets a new personal one with the
-- id `p_spare_org`, regardless of the limit, so that nobody is locked out of their account.
declare
  v_org uuid;
begin
  perform pg_advisory_xact_lock(hashtextextended('orgs' || p_user, 0));
  select m.org_id into v_org
  from active_memberships m
  where m.user_id = p_user
  order by m.created_at, m.org_id
  limit 1;
  if not found then
    perform add_org(p_spare_org, u.username, p_user) from users u where u.id = p_user;
    v_org := p_spare_org;
  end if;
  return v_org;
end
$$;

create or replace function create_org(p_org uuid, p_name text, p_limit integer) returns timestamptz
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- For the user who has entered. Returns null if there is none, or if they have already created `p_limit` organisations.
-- The personal one counts; organisations created by others do not, whatever the user's role.
declare
  v_user constant uuid := scope_user();
begin
  -- A statement of its own, so that the next one also counts what the previous transaction committed.
  perform pg_advisory_xact_lock(hashtextextended('orgs' || v_user, 0));
  if v_user is null or (select count(*) from orgs o where o.created_by = v_user) >= p_limit then
    return null;
  end if;
  perform add_org(p_org, p_name, v_user);
  perform audit(p_org, 'org.created', jsonb_build_object('name', p_name));
  return now();
end
$$;

create or replace function is_pending(p_accepted_at timestamptz, p_revoked_at timestamptz, p_expires_at timestamptz)
returns boolean
language sql stable
-- Whether an invitation can still be accepted.
return p_accepted_at is null and p_revoked_at is null and p_expires_at > now();

create or replace function open_invitation(p_invitation uuid, p_user uuid, p_token_hash text) returns invitations
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Locks an invitation that can still be accepted by the user or with the token, so that it is accepted only once. The
-- inviter must still be allowed to invite.
declare
  v_invitation invitations;
begin
  select i.* into v_invitation
  from invitations i
  where (i.token_hash = decode(p_token_hash, 'hex') or i.user_id = p_user)
    and (i.id = p_invitation or p_invitation is null)
    and is_pending(i.accepted_at, i.revoked_at, i.expires_at)
    and not exists (select from org_deletions d where d.id = i.org_id and d.removed_at is null)
    and exists (
      select
      from users u
      left join memberships m on m.org_id = i.org_id and m.user_id = u.id
      where u.id = i.invited_by
        and (u.is_admin or m.role = 'org_admin')
    )
  for update;
  return v_invitation;
end
$$;

create or replace function join_org(p_invitation invitations, p_user uuid) returns boolean
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Makes the user a member. Returns false if they are one already; the invitation then stays open.
begin
  insert into memberships (org_id, user_id, role)
  values (p_invitation.org_id, p_user, p_invitation.role)
  on conflict on constraint memberships_pkey do nothing;
  if not found then return false; end if;
  update invitations i set accepted_at = now(), accepted_by = p_user where i.id = p_invitation.id;
  perform audit(
    p_invitation.org_id, 'member.joined',
    jsonb_build_object('user_id', p_user, 'role', p_invitation.role, 'invitation_id', p_invitation.id), p_user
  );
  return true;
end
$$;

create or replace function accept_invitation(p_invitation uuid, p_token_hash text)
returns table (org_id uuid, org_name text, role text, joined boolean)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Makes the user who has entered a member. Returns no row if they cannot accept the invitation, and `joined` as
-- join_org does.
declare
  v_user constant uuid := scope_user();
  v_invitation constant invitations := open_invitation(p_invitation, v_user, p_token_hash);
begin
  if v_user is null or v_invitation.id is null then return; end if;
  joined := join_org(v_invitation, v_user);
  return query
  select o.id, o.name, v_invitation.role, joined
  from orgs o
  where o.id = v_invitation.org_id;
end
$$;

create or replace function register(
  p_user uuid, p_username text, p_password_hash text, p_org uuid, p_invitation_hash text,
  p_session uuid, p_secret_hash text, p_token_hash text, p_days integer, p_ip text, p_user_agent text, p_request text
) returns table (user_id uuid, username text, org_id uuid, role text)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Creates the account, its first session and its personal organisation `p_org` or, with the hash of an invitation
-- link's token, its membership in the organisation that sent the link; or none of them. Returns no row if the
-- invitation is not open, and a row without a `user_id` if the name is taken; the invitation then stays open.
declare
  v_invitation invitations;
begin
  perform set_origin(p_ip, p_request);
  if p_invitation_hash is not null then
    v_invitation := open_invitation(null, null, p_invitation_hash);
    if v_invitation.id is null then return; end if;
  end if;
  insert into users (id, username, password_hash)
  values (p_user, p_username, p_password_hash)
  on conflict on constraint users_username_key do nothing
  returning users.id, users.username into user_id, username;
  if user_id is null then
    return next;
    return;
  end if;
  org_id := coalesce(v_invitation.org_id, p_org);
  role := coalesce(v_invitation.role, 'org_admin');
  if v_invitation.id is null then
    perform add_org(p_org, username, p_user);
  else
    perform join_org(v_invitation, p_user);
  end if;
  perform audit(org_id, 'account.registered', jsonb_build_object('user_id', p_user), p_user);
  perform add_session(p_session, p_user, org_id, p_secret_hash, p_token_hash, p_days, p_user_agent);
  return next;
end
$$;

create or replace function create_account(
  p_user uuid, p_org uuid, p_username text, p_password_hash text, p_is_admin boolean
) returns boolean
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- For operators. Returns false if the name is taken.
begin
  insert into users (id, username, password_hash, is_admin)
  values (p_user, p_username, p_password_hash, p_is_admin)
  on conflict on constraint users_username_key do nothing;
  if not found then return false; end if;
  perform add_org(p_org, p_username, p_user);
  perform audit(p_org, 'account.registered', jsonb_build_object('user_id', p_user));
  if p_is_admin then perform audit(p_org, 'admin.granted', jsonb_build_object('user_id', p_user)); end if;
  return true;
end
$$;

create or replace function user_named(p_username text) returns table (id uuid, username text)
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- The user to whom an invitation by name is addressed. Only the exact name matches.
begin atomic
  select u.id, u.username from users u where u.username_key = lower(p_username);
end;

create or replace function find_api_key(p_key_hash text)
returns table (id uuid, org_id uuid, user_id uuid, role text, scopes text[], expires_at timestamptz)
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
begin atomic
  select k.id, k.org_id, k.user_id, m.role, k.scopes, k.expires_at
  from api_keys k
  join active_memberships m on m.org_id = k.org_id and m.user_id = k.user_id
  where k.key_hash = decode(p_key_hash, 'hex')
    and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > now());
end;

grant execute on function create_org, is_pending, accept_invitation, register, user_named, find_api_key
to smartqueue_functions;
