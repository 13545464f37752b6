-- The second wall between organisations: row-level security, under roles of which none can bypass it. The first wall is
-- that every statement names its organisation.
--
-- smartqueue_functions is what the functions connect as. Each of their transactions enters first: it names who asks, and
-- the database looks whether that is a member, and opens one organisation. smartqueue_workers is what workers connect as.
-- They run everybody's jobs, and see all of the queue, but no account, key or token.
--
-- Both are groups without a login: `npm run admin -- database-login` makes logins in them.

do $$
begin
  -- Roles belong to the whole server, and another database on it may have made them.
  create role smartqueue_functions nologin;
exception when duplicate_object or unique_violation then null;
end
$$;

do $$
begin
  create role smartqueue_workers nologin;
exception when duplicate_object or unique_violation then null;
end
$$;

-- What a transaction may see, as `enter` has set it.

create function scope_orgs() returns uuid[]
language sql stable parallel safe
return coalesce(nullif(current_setting('smartqueue.orgs', true), ''), '{}')::uuid[];

create function sees_all_orgs() returns boolean
language sql stable parallel safe
return coalesce(current_setting('smartqueue.all_orgs', true), '') = 'on';

create function scope_user() returns uuid
language sql stable parallel safe
return nullif(current_setting('smartqueue.user', true), '')::uuid;

create function scope_key() returns uuid
language sql stable parallel safe
return nullif(current_setting('smartqueue.key', true), '')::uuid;

create function scope_name() returns text
language sql stable parallel safe
-- Who wants to sign in, or is to be invited.
return lower(nullif(current_setting('smartqueue.name', true), ''));

create function scope_secret() returns bytea
language sql stable parallel safe
-- The hash of a refresh token, an API key or the token of an invitation: whoever has one may see its row.
return decode(nullif(current_setting('smartqueue.secret', true), ''), 'hex');

create function scope_ip() returns inet
language sql stable parallel safe
return nullif(current_setting('smartqueue.ip', true), '')::inet;

create function scope_request() returns text
language sql stable parallel safe
return nullif(current_setting('smartqueue.request', true), '');

alter table audit_log
  alter column actor_id set default scope_user(),
  alter column api_key_id set default scope_key(),
  alter column ip set default scope_ip(),
  alter column request_id set default scope_request();

create function set_scope(
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

create function role_in(in_org uuid, in_user uuid, in_session uuid, in_key uuid) returns text
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

create function enter(
  orgs uuid[], users uuid[], sessions uuid[], keys uuid[], least_role text, all_orgs boolean default false,
  ip text default null, request text default null, name text default null, secret text default null
) returns text
language plpgsql
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
      perform from public.orgs o where o.id = enter.orgs[i];
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

create function must_enter(entry text) returns void
language plpgsql
as $$
-- Ends the transaction of whoever was not let in, before it asks for anything.
begin
  if entry <> 'entered' then
    raise exception 'The transaction was not let in: %', entry
      using errcode = case entry when 'forbidden' then 'SQ403' when 'closed' then 'SQ404' else 'SQ401' end;
  end if;
end
$$;

create function open_invitation(invitation uuid) returns text
language plpgsql
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

create function enter_with_refresh_token(token_hash text, ip text, request text) returns text
language plpgsql
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

create function enter_with_api_key(key_hash text) returns text
language plpgsql
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

-- Views ask with the rights of whoever looks at them, not with those of their owner.

alter view job_events set (security_invoker = true);
alter view queue_entries set (security_invoker = true);
alter view held_jobs set (security_invoker = true);
alter view job_overview set (security_invoker = true);

-- Under row-level security an index serves only conditions that cannot leak. Comparisons of arrays could: tags are looked up by
-- a function that checks the organisation itself, and so is the newest event of all, which is nobody's.

create function tagged_jobs(in_org uuid, in_tag text) returns setof uuid
language sql stable security definer
set search_path = pg_catalog, public
begin atomic
  select id
  from jobs
  where org_id = in_org
    and tags @> array[in_tag]
    and tags <> '{}'
    and (sees_all_orgs() or in_org = any (scope_orgs()) or pg_has_role(session_user, 'smartqueue_workers', 'usage'));
end;

create function newest_event_at() returns timestamptz
language sql stable security definer
set search_path = pg_catalog, public
-- Its plan lives as long as the session, and may be made while the table is small.
set enable_seqscan = off
begin atomic
  select at
  from job_event_groups
  order by id desc
  limit 1;
end;

-- The policies. Each table that says whose a row is has them, forced upon its owner too.

do $$
declare
  walled text;
  mine constant text := '(select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[])';
begin
  foreach walled in array '{
    streams, jobs, waiting_jobs, ready_jobs, finished_jobs, attempts, job_event_groups, job_logs, job_progress,
    job_dependencies, blocked_jobs, pauses, reservations, quota_states, idempotency_keys
  }'::text[] loop
    execute format('create policy of_org on %I to smartqueue_functions using (%s)', walled, mine);
    execute format('create policy of_all_orgs on %I to smartqueue_workers using (true)', walled);
  end loop;
end
$$;

create policy of_all_orgs on leases to smartqueue_functions, smartqueue_workers using (true);
comment on policy of_all_orgs on leases is
  'A lease names jobs of several organisations, by their ids alone, and a row must not vanish from the sight of the
statement that takes a job out of it. What the ids stand for is behind the wall.';

create policy of_member on memberships to smartqueue_functions
  using (
    (select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]) or user_id = (select scope_user())
  )
  with check ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]));
comment on policy of_member on memberships is 'One sees where one is a member, and cannot make oneself one.';

create policy of_member on orgs to smartqueue_functions
  using (
    (select sees_all_orgs())
    or id = any ((select scope_orgs())::uuid[])
    or exists (select from memberships m where m.org_id = orgs.id and m.user_id = (select scope_user()))
    or exists (
      select
      from invitations i
      where i.org_id = orgs.id
        and (i.user_id = (select scope_user()) or i.token_hash = (select scope_secret()))
    )
  )
  with check ((select sees_all_orgs()) or id = any ((select scope_orgs())::uuid[]));
create policy of_all_orgs on orgs for select to smartqueue_workers using (true);

create policy of_acquaintance on users to smartqueue_functions
  using (
    (select sees_all_orgs())
    or id = (select scope_user())
    or username_key = (select scope_name())
    or exists (
      select
      from memberships m
      where m.user_id = users.id
        and m.org_id = any ((select scope_orgs())::uuid[])
    )
    or exists (
      select
      from invitations i
      where i.org_id = any ((select scope_orgs())::uuid[])
        and users.id in (i.user_id, i.invited_by)
    )
  )
  with check ((select sees_all_orgs()) or id = (select scope_user()));
comment on policy of_acquaintance on users is
  'Oneself, whoever wants to sign in or is to be invited, by the exact name, and members of the open organisation and those
who have invited or are invited there. Only oneself can be changed.';

create policy of_holder on refresh_tokens to smartqueue_functions
  using (token_hash = (select scope_secret()))
  with check (true);
create policy expired on refresh_tokens to smartqueue_workers using (expires_at < now());

create policy of_user on refresh_families to smartqueue_functions
  using (
    (select sees_all_orgs())
    or user_id = (select scope_user())
    or org_id = any ((select scope_orgs())::uuid[])
    or id = (select t.family_id from refresh_tokens t where t.token_hash = (select scope_secret()))
  )
  with check ((select sees_all_orgs()) or user_id = (select scope_user()));

create policy expired on refresh_families to smartqueue_workers using (expires_at < now());

create policy of_org on api_keys to smartqueue_functions
  using (
    (select sees_all_orgs())
    or user_id = (select scope_user())
    or org_id = any ((select scope_orgs())::uuid[])
    or key_hash = (select scope_secret())
  )
  with check ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]) or user_id = (select scope_user()));

create policy of_org on invitations to smartqueue_functions
  using (
    (select sees_all_orgs())
    or org_id = any ((select scope_orgs())::uuid[])
    or user_id = (select scope_user())
    or token_hash = (select scope_secret())
  )
  with check ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]));
create policy expired on invitations to smartqueue_workers using (expires_at < now() - interval '30 days');

create policy of_org on audit_log for select to smartqueue_functions
  using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]));
create policy signed on audit_log for insert to smartqueue_functions
  with check (
    (
      (select sees_all_orgs())
      or org_id = any ((select scope_orgs())::uuid[])
      or exists (select from memberships m where m.org_id = audit_log.org_id and m.user_id = (select scope_user()))
    )
    and (actor_id is null or actor_id = (select scope_user()))
    and (api_key_id is null or api_key_id = (select scope_key()))
  );
comment on policy signed on audit_log is 'Nobody writes in the name of another.';

create policy of_org on quotas for select to smartqueue_functions
  using (
    org_id is null or (select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[])
  );
create policy of_admin on quotas to smartqueue_functions using ((select sees_all_orgs()));
create policy of_all_orgs on quotas for select to smartqueue_workers using (true);

do $$
declare
  walled text;
begin
  foreach walled in array '{
    orgs, users, memberships, refresh_families, refresh_tokens, api_keys, invitations, audit_log, quotas, quota_states,
    idempotency_keys, streams, jobs, waiting_jobs, ready_jobs, leases, finished_jobs, attempts,
    job_event_groups, job_logs, job_progress, job_dependencies, blocked_jobs, pauses, reservations
  }'::text[] loop
    execute format('alter table %I enable row level security', walled);
    execute format('alter table %I force row level security', walled);
    -- Whoever migrates must see what it migrates. No part of SmartQueue runs as the owner: it refuses to start.
    execute format('create policy of_owner on %I to %I using (true)', walled, current_user);
  end loop;
end
$$;

-- What each may do at all.

grant usage on schema public to smartqueue_functions, smartqueue_workers;
grant select on
  schema_migrations, job_types, type_estimates, workers, scheduler_leader, orgs, memberships, users, refresh_families,
  refresh_tokens, api_keys, invitations, audit_log, rate_limits, sign_in_attempts, quotas, quota_states,
  idempotency_keys, streams, jobs, waiting_jobs, ready_jobs, leases, finished_jobs, attempts, job_event_groups, job_logs,
  job_progress, job_dependencies, blocked_jobs, pauses, reservations, job_events, queue_entries, held_jobs, job_overview
to smartqueue_functions;
grant insert on
  orgs, memberships, refresh_families, refresh_tokens, api_keys, invitations, audit_log, rate_limits,
  sign_in_attempts, quotas, quota_states, idempotency_keys, streams, jobs, waiting_jobs, ready_jobs,
  finished_jobs, attempts, job_event_groups, job_dependencies, blocked_jobs, pauses, job_events
to smartqueue_functions;
grant insert (id, username, password_hash) on users to smartqueue_functions;
-- To lock a row takes the right to change it.
grant update on
  rate_limits, sign_in_attempts, quotas,
  quota_states, idempotency_keys, waiting_jobs, ready_jobs, leases, finished_jobs, blocked_jobs
to smartqueue_functions;
grant update (password_hash) on users to smartqueue_functions;
grant update (role) on memberships to smartqueue_functions;
grant update (org_id, revoked_at, expires_at) on refresh_families to smartqueue_functions;
grant update (replaced_at) on refresh_tokens to smartqueue_functions;
grant update (last_used_at, revoked_at) on api_keys to smartqueue_functions;
grant update (accepted_at, accepted_by, revoked_at) on invitations to smartqueue_functions;
grant update (name) on streams to smartqueue_functions;
grant delete on
  memberships, sign_in_attempts, waiting_jobs, ready_jobs, finished_jobs, blocked_jobs, pauses, reservations
to smartqueue_functions;
grant usage on sequence ready_keys to smartqueue_functions;

grant select on
  schema_migrations, orgs, quotas, pauses, jobs, streams, queue_entries, held_jobs, job_overview, job_events
to smartqueue_workers;
grant select, insert, update, delete on
  job_types, type_estimates, workers, scheduler_leader, waiting_jobs, ready_jobs, leases, finished_jobs, attempts,
  job_event_groups, job_logs, job_progress, job_dependencies, blocked_jobs, reservations
to smartqueue_workers;
grant update on streams to smartqueue_workers;
grant delete on jobs to smartqueue_workers;
grant insert on job_events to smartqueue_workers;
grant select, delete on rate_limits, idempotency_keys to smartqueue_workers;
grant select (last_attempt), delete on sign_in_attempts to smartqueue_workers;
grant select (expires_at), delete on refresh_tokens, refresh_families, invitations to smartqueue_workers;
grant usage on sequence ready_keys, lease_tokens to smartqueue_workers;
