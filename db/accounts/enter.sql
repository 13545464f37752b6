-- Opens organisations to a transaction of the API, after checking who is asking. See ADR 25.
--
-- Each function here takes a secret and compares it inside the database: the secret of a session, the hash of an API
-- key or the secret of a webhook source. Only then does it sign a scope (set_scope), which the policies read. A caller
-- who knows ids but no secret opens nothing.

create or replace function role_in(p_org uuid, p_user uuid, p_session uuid, p_key uuid, p_secret text) returns text
language plpgsql stable
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The role of the user in the organisation at this moment: 'user', 'org_admin', 'admin' or null. `p_secret` is the
-- secret of the session or, in hexadecimal, the hash of the API key. Sessions that have ended, keys that are revoked or
-- have expired and organisations that are being deleted give no role. A key never has the power of an admin.
begin
  if p_key is not null then
    return (
      select m.role
      from api_keys k
      join active_memberships m on m.org_id = k.org_id and m.user_id = k.user_id
      where k.id = p_key
        and k.org_id = p_org
        and k.user_id = p_user
        and encode(k.key_hash, 'hex') = p_secret
        and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > now())
    );
  end if;
  return (
    select case when u.is_admin then 'admin' else m.role end
    from refresh_families f
    join users u on u.id = f.user_id
    join orgs o on o.id = p_org
    left join memberships m on m.org_id = o.id and m.user_id = u.id
    where f.id = p_session
      and f.user_id = p_user
      and f.secret_hash = sha256(convert_to(p_secret, 'UTF8'))
      and f.revoked_at is null
      and not exists (select from org_deletions d where d.id = p_org and d.removed_at is null)
  );
end
$$;

create or replace function is_open(p_org uuid) returns boolean
language plpgsql stable
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Whether this transaction may act in the organisation. Workers run the jobs of all organisations.
begin
  return pg_has_role(session_user, 'smartqueue_workers', 'usage') or p_org = any (scope_orgs()) or sees_all_orgs();
end
$$;

create or replace function require_org(p_org uuid) returns void
language plpgsql stable
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- For definer functions, to which policies do not apply: raises SQ401 unless this transaction may act in the
-- organisation.
begin
  if is_open(p_org) is not true then
    raise exception 'The organisation % is not open to this transaction.', p_org using errcode = 'SQ401';
  end if;
end
$$;

create or replace function set_origin(p_ip text, p_request text) returns void
language sql
begin atomic
  -- For the audit log and the list of sign-ins.
  select
    set_config('smartqueue.ip', coalesce(p_ip, ''), true),
    set_config('smartqueue.request', coalesce(p_request, ''), true);
end;

create or replace function check_role(
  p_org uuid, p_user uuid, p_session uuid, p_key uuid, p_secret text, p_least_role text, p_all_orgs boolean
) returns void
language plpgsql
as $$
-- Raises SQ401 if the user has no role in the organisation, and SQ403 if only the role is too low. Only an admin may
-- see all organisations.
declare
  v_roles constant text[] := '{user,org_admin,admin}';
  v_role constant text := role_in(p_org, p_user, p_session, p_key, p_secret);
begin
  if v_role is null then
    raise exception 'No such session, API key or membership.' using errcode = 'SQ401';
  end if;
  if
    -- Without a least role or a scope, nobody is let in.
    (array_position(v_roles, v_role) >= array_position(v_roles, p_least_role)) is not true
    or (not p_all_orgs or v_role = 'admin') is not true
  then
    raise exception 'The role % is too low.', v_role using errcode = 'SQ403';
  end if;
  if p_key is not null then
    perform use_key(p_key);
  end if;
end
$$;

create or replace function enter(
  p_org uuid, p_user uuid, p_session uuid, p_key uuid, p_secret text, p_least_role text, p_all_orgs boolean, p_ip text,
  p_request text
) returns void
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Opens the organisation to a user who has at least the role, or all organisations to an admin.
begin
  perform check_role(p_org, p_user, p_session, p_key, p_secret, p_least_role, p_all_orgs);
  perform set_origin(p_ip, p_request);
  perform set_scope(array[p_org], p_user, p_key, p_all_orgs);
end
$$;

create or replace function admit(p_org uuid, p_entry jsonb) returns void
language plpgsql
as $$
-- Checks the caller inside a definer function on the hot path, so that a request is one call and not a transaction that
-- begins with enter. `p_entry` holds the arguments of enter (EntryProof in db/queries/scope.ts); if it is null, the
-- transaction must already have entered. `p_org` is null for all organisations. It opens nothing: policies do not apply
-- to definer functions.
declare
  v_home uuid;
  v_all_orgs boolean;
begin
  if p_entry is null then
    perform require_org(p_org);
    return;
  end if;
  v_home := p_entry ->> 'org';
  v_all_orgs := p_entry ->> 'all_orgs';
  perform check_role(
    v_home, (p_entry ->> 'user')::uuid, (p_entry ->> 'session')::uuid, (p_entry ->> 'key')::uuid,
    p_entry ->> 'secret', p_entry ->> 'least_role', v_all_orgs
  );
  if v_all_orgs is not true and p_org is distinct from v_home then
    raise exception 'The organisation % is not open to this call.', p_org using errcode = 'SQ401';
  end if;
end
$$;

create or replace function enter_with_source(p_source uuid, p_version bigint, p_secret text, p_ip text, p_request text)
returns void
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Opens the organisation of a webhook source to a delivery that was verified with its secret. Raises SQ404 if the
-- source has changed since, is disabled or is gone.
declare
  v_org uuid;
begin
  select s.org_id into v_org
  from webhook_sources s
  where s.id = p_source
    and s.enabled
    and s.version = p_version
    and s.secret = p_secret
    and not exists (select from org_deletions d where d.id = s.org_id and d.removed_at is null);
  if not found then
    raise exception 'The webhook source has changed, is disabled or is gone.' using errcode = 'SQ404';
  end if;
  perform set_origin(p_ip, p_request);
  perform set_scope(array[v_org]);
end
$$;

create or replace function enter_stream(p_org uuid, p_users uuid[], p_sessions uuid[], p_keys uuid[], p_secrets text[])
returns text[]
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Opens the organisation to its subscribers if at least one of them may enter. Returns for each of them 'entered',
-- 'ended' if the session or key is no longer valid, or 'removed' if the user is no longer a member.
declare
  v_answers text[] := '{}';
begin
  for i in 1 .. coalesce(cardinality(p_users), 0) loop
    v_answers := v_answers || case
      when role_in(p_org, p_users[i], p_sessions[i], p_keys[i], p_secrets[i]) is not null then 'entered'
      when exists (
        select
        from users u
        left join memberships m on m.org_id = p_org and m.user_id = u.id
        where u.id = p_users[i]
          and (m.user_id is not null or u.is_admin and p_keys[i] is null)
          and not exists (select from org_deletions d where d.id = p_org and d.removed_at is null)
      ) then 'ended'
      else 'removed'
    end;
  end loop;
  perform set_scope(case when 'entered' = any (v_answers) then array[p_org] else '{}' end);
  return v_answers;
end
$$;

grant execute on function enter, enter_with_source, enter_stream to smartqueue_functions;
