-- Refresh tokens. Whoever presents one acts as its user; the database stores only hashes.

create or replace function rotate_refresh_token(
  p_presented text, p_successor text, p_days integer, p_grace_seconds integer,
  p_ip text, p_user_agent text, p_request text
) returns table (session_id uuid, user_id uuid, username text, org_id uuid, role text)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Exchanges a refresh token for its successor. Returns no row if it is unknown, expired, revoked, or was presented
-- before. The last of these means that two parties hold it, so the whole family is revoked. The row lock makes the
-- second of two concurrent exchanges see the first.
--
-- Within the grace period, a token that was already exchanged gets the same answer again, and nothing changes. The
-- caller must pass the same successor.
declare
  v_presented bytea := decode(p_presented, 'hex');
  v_replaced_at timestamptz;
begin
  perform set_origin(p_ip, p_request);
  select f.id, f.user_id, t.replaced_at
  into session_id, user_id, v_replaced_at
  from refresh_tokens t
  join refresh_families f on f.id = t.family_id
  where t.token_hash = v_presented
    and t.expires_at > now()
    and f.revoked_at is null
  for update;
  if not found then return; end if;
  if v_replaced_at is null then
    update refresh_tokens t set replaced_at = now() where t.token_hash = v_presented;
    insert into refresh_tokens (token_hash, family_id, expires_at)
    values (decode(p_successor, 'hex'), session_id, now() + p_days * interval '1 day');
    update refresh_families f
    set expires_at = now() + p_days * interval '1 day', last_used_at = now(), ip = scope_ip(), user_agent = p_user_agent
    where f.id = session_id;
  elsif (v_replaced_at > now() - p_grace_seconds * interval '1 second') is not true then
    update refresh_families f set revoked_at = now() where f.id = session_id returning f.org_id into org_id;
    perform audit(org_id, 'account.token_reused', jsonb_build_object('user_id', user_id), user_id);
    return;
  end if;
  return query
  select f.id, u.id, u.username, m.org_id, case when u.is_admin then 'admin' else m.role end
  from refresh_families f
  join active_memberships m on m.org_id = f.org_id and m.user_id = f.user_id
  join users u on u.id = m.user_id
  where f.id = session_id;
end
$$;

create or replace function end_session(p_token_hash text, p_ip text, p_request text) returns uuid
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Ends the sign-in of a refresh token, including its access tokens, and returns the organisation where it was active.
-- Null if the token is unknown or the sign-in has ended.
declare
  v_org uuid;
  v_user uuid;
begin
  perform set_origin(p_ip, p_request);
  update refresh_families f
  set revoked_at = now()
  from refresh_tokens t
  where t.token_hash = decode(p_token_hash, 'hex')
    and f.id = t.family_id
    and f.revoked_at is null
  returning f.org_id, f.user_id into v_org, v_user;
  if found then
    perform audit(v_org, 'account.signed_out', jsonb_build_object('user_id', v_user), v_user);
  end if;
  return v_org;
end
$$;

grant execute on function rotate_refresh_token, end_session to smartqueue_functions;
