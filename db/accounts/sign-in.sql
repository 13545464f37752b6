-- Signing in with a password. The functions compute scrypt; the stored hash never leaves the database. begin_sign_in
-- counts the attempt and returns how to hash a password for one exact name: cost and salt. start_session compares the
-- result.

create or replace function begin_sign_in(p_username text, p_ip inet, p_limit integer, p_seconds integer)
returns table (
  admitted boolean, remaining integer, resets_in integer, blocked_for integer, password_parameters text
)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Counts an attempt for the network and for the name, before the password is checked. Unknown names are counted and
-- blocked in the same way, so they cannot be told apart. `blocked_for`: seconds until the next attempt.
declare
  v_free_attempts constant integer := 10;
  v_longest_block constant integer := 900;
  -- After this time without an attempt, the count of the name starts over.
  v_forget constant interval := interval '1 hour';
  v_name sign_in_attempts;
begin
  select h.admitted, h.remaining, h.resets_in
  into admitted, remaining, resets_in
  from hit_rate_limit('login', p_ip, p_limit, p_seconds) h;
  if not admitted then
    return next;
    return;
  end if;
  -- The update locks the row of a known name, so that concurrent attempts take turns.
  insert into sign_in_attempts as a (name_hash, attempts, last_attempt)
  values (sha256(convert_to(lower(p_username), 'UTF8')), 0, clock_timestamp())
  on conflict (name_hash) do update
  set attempts = case when a.last_attempt < clock_timestamp() - v_forget then 0 else a.attempts end
  returning a.* into v_name;
  if v_name.blocked_until > clock_timestamp() then
    blocked_for := greatest(1, ceil(extract(epoch from v_name.blocked_until - clock_timestamp())));
  else
    v_name.attempts := v_name.attempts + 1;
    v_name.blocked_until := case
      when v_name.attempts > v_free_attempts then
        clock_timestamp()
          + least(v_longest_block, 2 ^ least(v_name.attempts - v_free_attempts, 20)) * interval '1 second'
    end;
    select regexp_replace(u.password_hash, '\$[^$]*$', '') into password_parameters
    from users u
    where u.username_key = lower(p_username);
  end if;
  update sign_in_attempts a
  set attempts = v_name.attempts, blocked_until = v_name.blocked_until, last_attempt = clock_timestamp()
  where a.name_hash = v_name.name_hash;
  return next;
end
$$;

create or replace function add_session(
  p_session uuid, p_user uuid, p_org uuid, p_secret_hash text, p_token_hash text, p_days integer, p_user_agent text
) returns void
language sql
begin atomic
  -- For register and start_session.
  insert into refresh_families (id, user_id, org_id, secret_hash, expires_at, user_agent)
  values (p_session, p_user, p_org, decode(p_secret_hash, 'hex'), now() + p_days * interval '1 day', p_user_agent);
  insert into refresh_tokens (token_hash, family_id, expires_at)
  values (decode(p_token_hash, 'hex'), p_session, now() + p_days * interval '1 day');
end;

create or replace function start_session(
  p_username text, p_password_hash text, p_session uuid, p_secret_hash text, p_token_hash text, p_days integer,
  p_org uuid, p_ip text, p_user_agent text, p_request text
) returns table (user_id uuid, username text, org_id uuid, role text)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Signs the user in to their oldest organisation. Returns no row if the name or the password is wrong.
declare
  v_is_admin boolean;
begin
  perform set_origin(p_ip, p_request);
  select u.id, u.username, u.is_admin
  into user_id, username, v_is_admin
  from users u
  where u.username_key = lower(p_username)
    and u.password_hash = p_password_hash;
  if not found then return; end if;
  org_id := oldest_org(user_id, p_org);
  select case when v_is_admin then 'admin' else m.role end into role
  from memberships m
  where m.org_id = start_session.org_id
    and m.user_id = start_session.user_id;
  delete from sign_in_attempts a where a.name_hash = sha256(convert_to(lower(username), 'UTF8'));
  perform add_session(p_session, user_id, org_id, p_secret_hash, p_token_hash, p_days, p_user_agent);
  perform audit(org_id, 'account.signed_in', jsonb_build_object('user_id', user_id), user_id);
  return next;
end
$$;

create or replace function audit_failed_sign_in(p_username text, p_ip text, p_request text) returns void
language sql security definer
set search_path = pg_catalog, smartqueue, pg_temp
begin atomic
  select set_origin(p_ip, p_request);
  select audit_everywhere(u.id, 'account.sign_in_failed') from users u where u.username_key = lower(p_username);
end;

create or replace function change_password(p_org uuid, p_session uuid, p_from text, p_to text, p_revoke_keys boolean)
returns table (ended integer, revoked integer)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Ends all other sign-ins of the user who has entered and, on request, revokes their API keys in all organisations.
-- Returns no row if `p_from` is not the hash of the current password. Without `p_to` it only checks that.
declare
  v_user constant uuid := scope_user();
begin
  perform require_org(p_org);
  update users u
  set password_hash = coalesce(p_to, u.password_hash)
  where u.id = v_user
    and u.password_hash = p_from
    and scope_key() is null;
  if not found then return; end if;
  if p_to is null then return next; return; end if;
  update refresh_families f
  set revoked_at = now()
  where f.user_id = v_user
    and f.id <> p_session
    and f.revoked_at is null;
  get diagnostics ended = row_count;
  perform audit(p_org, 'account.password_changed', jsonb_build_object('user_id', v_user));
  with gone as (
    update api_keys k
    set revoked_at = now()
    where k.user_id = v_user
      and k.revoked_at is null
      and p_revoke_keys
    returning k.id, k.org_id, k.name, k.prefix
  )
  select count(*) into revoked
  from gone g
  cross join audit(
    g.org_id, 'api_key.revoked', jsonb_build_object('api_key_id', g.id, 'name', g.name, 'prefix', g.prefix)
  );
  return next;
end
$$;

grant execute on function begin_sign_in, start_session, audit_failed_sign_in, change_password to smartqueue_functions;
