-- Opens organisations to a transaction, after checking who is asking. Policies read the scope that these functions set.

create or replace function set_scope(
  orgs uuid[] default '{}', in_user uuid default null, key uuid default null, name text default null,
  secret text default null, ip text default null, request text default null, all_orgs boolean default false
) returns void
language sql
begin atomic
  select
    set_config('smartqueue.orgs', orgs::text, true),
    set_config('smartqueue.user', coalesce(in_user::text, ''), true),
    set_config('smartqueue.key', coalesce(key::text, ''), true),
    set_config('smartqueue.name', coalesce(name, ''), true),
    set_config('smartqueue.secret', coalesce(secret, ''), true),
    set_config('smartqueue.ip', coalesce(ip, ''), true),
    set_config('smartqueue.request', coalesce(request, ''), true),
    set_config('smartqueue.all_orgs', case when all_orgs then 'on' else '' end, true);
end;

create or replace function role_in(in_org uuid, in_user uuid, in_session uuid, in_key uuid) returns text
language sql stable
-- What the user may do in the organisation at this moment: null if nothing. A session that was ended and a key that was
-- revoked or has expired are worth nothing; a key never has the power of an admin.
return (
  select case when u.is_admin and in_key is null then 'admin' else m.role end
  from users u
  left join memberships m on m.org_id = in_org and m.user_id = u.id
  where u.id = in_user
    and case
      when in_key is not null then exists (
        select
        from api_keys k
        where k.id = in_key
          and k.org_id = in_org
          and k.user_id = in_user
          and k.revoked_at is null
          and (k.expires_at is null or k.expires_at > now())
      )
      else exists (
        select
        from refresh_families f
        where f.id = in_session
          and f.user_id = in_user
          and f.revoked_at is null
      )
    end
);

create or replace function enter(
  orgs uuid[], users uuid[], sessions uuid[], keys uuid[], least_role text, all_orgs boolean default false,
  ip text default null, request text default null, name text default null, secret text default null
) returns text
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Opens the organisations of those who ask, one for each place of the arrays; an organisation only if each of them who
-- asks for it may, and has at least the role; all organisations only for an admin. Answers 'entered' if nobody was
-- refused, 'forbidden' if only the role was too low, else 'unknown'.
declare
  roles constant text[] := '{user,org_admin,admin}';
  refused uuid[] := '{}';
  found_role text;
  answer text := 'entered';
begin
  for i in 1 .. cardinality(users) loop
    perform set_scope(in_user => users[i]);
    found_role := role_in(orgs[i], users[i], sessions[i], keys[i]);
    if found_role = 'admin' then
      -- In every organisation that there is.
      perform set_scope(in_user => users[i], all_orgs => true);
      perform from smartqueue.orgs o where o.id = enter.orgs[i];
      if not found then found_role := null; end if;
    end if;
    if found_role is null then
      refused := refused || orgs[i];
      answer := 'unknown';
    elsif array_position(roles, found_role) < array_position(roles, least_role) or (all_orgs and found_role <> 'admin') then
      refused := refused || orgs[i];
      answer := case answer when 'unknown' then answer else 'forbidden' end;
    elsif keys[i] is not null then
      update api_keys k
      set last_used_at = now()
      where k.id = any (
        array(
          select u.id
          from api_keys u
          where u.id = keys[i]
            and (u.last_used_at is null or u.last_used_at < now() - interval '1 minute')
          for update skip locked
        )
      );
    end if;
  end loop;
  perform set_scope(
    orgs => array(select distinct o from unnest(enter.orgs) o where o <> all (refused)),
    in_user => case when answer = 'entered' and cardinality(users) = 1 then users[1] end,
    key => case when cardinality(users) = 1 then keys[1] end,
    name => enter.name,
    secret => enter.secret,
    ip => enter.ip,
    request => enter.request,
    all_orgs => enter.all_orgs and answer = 'entered'
  );
  return answer;
end
$$;

create or replace function must_enter(entry text) returns void
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Ends the transaction of whoever was not let in, before it asks for anything.
begin
  if entry <> 'entered' then
    raise exception 'The transaction was not let in: %', entry
      using errcode = case entry when 'forbidden' then 'SQ403' when 'closed' then 'SQ404' else 'SQ401' end;
  end if;
end
$$;

create or replace function open_invitation(invitation uuid) returns text
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Whoever is invited may act in the organisation that invites, as far as it takes to accept. After `enter`.
declare
  inviting uuid;
begin
  select i.org_id into inviting
  from invitations i
  where i.id = invitation
    and (i.user_id = scope_user() or i.token_hash = scope_secret())
    and i.accepted_at is null
    and i.revoked_at is null
    and i.expires_at > now();
  if inviting is null then return 'closed'; end if;
  perform set_config('smartqueue.orgs', (scope_orgs() || inviting)::text, true);
  -- Whoever has invited must still be one who may.
  perform
  from invitations i
  join users u on u.id = i.invited_by
  left join memberships m on m.org_id = i.org_id and m.user_id = u.id
  where i.id = invitation
    and (u.is_admin or m.role = 'org_admin');
  return case when found then 'entered' else 'closed' end;
end
$$;

create or replace function enter_with_refresh_token(token_hash text, ip text, request text) returns text
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Whoever presents a refresh token acts for its user.
declare
  family refresh_families;
begin
  perform set_scope(secret => token_hash);
  select f.* into family
  from refresh_tokens t
  join refresh_families f on f.id = t.family_id
  where t.token_hash = scope_secret();
  perform set_scope(
    orgs => array_remove(array[family.org_id], null), in_user => family.user_id, secret => enter_with_refresh_token.token_hash,
    ip => enter_with_refresh_token.ip, request => enter_with_refresh_token.request
  );
  return case when family.id is null then 'unknown' else 'entered' end;
end
$$;

create or replace function enter_with_api_key(key_hash text) returns text
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Whoever presents an API key may look up what it is worth.
declare
  holder uuid;
begin
  perform set_scope(secret => enter_with_api_key.key_hash);
  select k.user_id into holder from api_keys k where k.key_hash = scope_secret();
  perform set_scope(in_user => holder, secret => enter_with_api_key.key_hash);
  return case when holder is null then 'unknown' else 'entered' end;
end
$$;

create or replace function enter_with_source(source uuid, known_version bigint, ip text, request text) returns text
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Whoever calls the address of a source may see that source. Its organisation is open to those who have verified a
-- delivery, and name the version that they have done so with: one that has changed since is 'closed', as is one that is
-- gone or disabled.
declare
  owner uuid;
begin
  perform set_scope(ip => enter_with_source.ip, request => enter_with_source.request);
  perform set_config('smartqueue.source', source::text, true);
  select s.org_id into owner
  from webhook_sources s
  where s.id = source
    and s.enabled
    and (known_version is null or s.version = known_version);
  if owner is null then return 'closed'; end if;
  if known_version is not null then perform set_config('smartqueue.orgs', array[owner]::text, true); end if;
  return 'entered';
end
$$;

grant execute on function
  set_scope, role_in, enter, must_enter, open_invitation, enter_with_refresh_token, enter_with_api_key,
  enter_with_source
to smartqueue_functions, smartqueue_workers;
