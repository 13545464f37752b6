-- Users, organisations, sign-ins, API keys, invitations, the audit log and rate limits.

create table users (
  id uuid primary key,
  username text not null,
  -- scrypt, in the form that functions/auth/passwords.ts writes.
  password_hash text not null,
  -- Sees every organisation. Inside an organisation the membership decides.
  is_admin boolean not null default false,
  created_at timestamptz not null default now(),
  -- Usernames are unique regardless of case. A column, because under row-level security an index serves only leakproof
  -- conditions, and lower(username) is not one.
  username_key text generated always as (lower(username)) stored,
  constraint users_username_length check (char_length(username) between 3 and 64),
  constraint users_username_key unique (username_key)
);

create table orgs (
  id uuid primary key,
  -- A short id for the index of the queue. See flow_of.
  number integer generated always as identity unique,
  name text not null,
  created_at timestamptz not null default now(),
  -- Null if unknown or if the account was deleted.
  created_by uuid references users on delete set null,
  constraint orgs_name_length check (char_length(name) between 1 and 100)
);

create index orgs_by_creator on orgs (created_by);
comment on index orgs_by_creator is
  'Serves create-org, which counts the organisations of a creator, and the foreign key when an account is deleted.';

create table memberships (
  org_id uuid not null references orgs on delete cascade,
  user_id uuid not null references users on delete cascade,
  role text not null,
  created_at timestamptz not null default now(),
  primary key (org_id, user_id),
  constraint memberships_role check (role in ('org_admin', 'user'))
);

create index memberships_by_user on memberships (user_id, created_at);
comment on index memberships_by_user is 'Serves start-session and list-users: a user''s organisations, oldest first.';

-- One sign-in. Its refresh tokens replace each other; presenting a replaced one revokes the family.
create table refresh_families (
  id uuid primary key,
  user_id uuid not null,
  org_id uuid not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  -- When the last of its tokens expires.
  expires_at timestamptz not null default now() + interval '30 days',
  -- When the sign-in began or its refresh token was last exchanged.
  last_used_at timestamptz not null default now(),
  -- The client address at that time.
  ip inet default scope_ip(),
  user_agent text,
  -- SHA-256 of the session's secret, which its access tokens carry.
  secret_hash bytea not null,
  foreign key (org_id, user_id) references memberships on delete cascade,
  constraint refresh_families_user_agent_length check (char_length(user_agent) <= 256)
);

create index refresh_families_by_user on refresh_families (user_id);
comment on index refresh_families_by_user is
  'Serves list-sessions, and change-password and end-own-sessions, which end the other sign-ins of a user.';

create index refresh_families_by_expiry on refresh_families (expires_at);
comment on index refresh_families_by_expiry is 'Serves delete_stale.';

create index refresh_families_by_member on refresh_families (org_id, user_id);
comment on index refresh_families_by_member is 'Serves the cascade when a membership ends.';

create table refresh_tokens (
  -- SHA-256 of the opaque token: a leaked table signs nobody in.
  token_hash bytea primary key,
  family_id uuid not null references refresh_families on delete cascade,
  expires_at timestamptz not null,
  replaced_at timestamptz
);

create index refresh_tokens_by_family on refresh_tokens (family_id);
comment on index refresh_tokens_by_family is 'Serves the cascade when a family ends.';

create index refresh_tokens_by_expiry on refresh_tokens (expires_at);
comment on index refresh_tokens_by_expiry is 'Serves delete_stale.';

create table api_keys (
  id uuid primary key,
  org_id uuid not null,
  user_id uuid not null,
  name text not null,
  -- The first characters of the key, shown to tell keys apart.
  prefix text not null,
  -- SHA-256 of the whole key.
  key_hash bytea not null,
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  -- To the minute.
  last_used_at timestamptz,
  revoked_at timestamptz,
  constraint api_keys_hash unique (key_hash),
  constraint api_keys_name_length check (char_length(name) between 1 and 100),
  constraint api_keys_some_scope check (cardinality(scopes) > 0),
  foreign key (org_id, user_id) references memberships on delete cascade
);
comment on table api_keys is 'API keys. A key acts for the member who created it, and is deleted with the membership.';

create index api_keys_by_member on api_keys (org_id, user_id, id);
comment on index api_keys_by_member is 'Serves list-api-keys, and the cascade when a membership ends.';

create table invitations (
  id uuid primary key,
  org_id uuid not null references orgs on delete cascade,
  role text not null,
  -- An invitation is for a known user, or for anyone who has the link.
  user_id uuid references users on delete cascade,
  token_hash bytea,
  invited_by uuid not null references users on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  accepted_by uuid references users on delete set null,
  revoked_at timestamptz,
  constraint invitations_role check (role in ('org_admin', 'user')),
  constraint invitations_way check ((user_id is null) <> (token_hash is null)),
  constraint invitations_token unique (token_hash)
);

create index invitations_by_org on invitations (org_id, id);
comment on index invitations_by_org is 'Serves list-invitations.';

create index invitations_by_user on invitations (user_id, id) where user_id is not null;
comment on index invitations_by_user is 'Serves list-invitations.';

create index invitations_by_inviter on invitations (invited_by);
comment on index invitations_by_inviter is 'Serves the cascade when an account is deleted.';

create index invitations_by_accepter on invitations (accepted_by) where accepted_by is not null;
comment on index invitations_by_accepter is 'Serves the foreign key when an account is deleted.';

create table audit_log (
  id bigint generated always as identity primary key,
  org_id uuid not null references orgs,
  at timestamptz not null default clock_timestamp(),
  -- The user, and the API key if one was used. Null for an operator with the database's own credentials.
  actor_id uuid default scope_user(),
  api_key_id uuid default scope_key(),
  action text not null,
  -- What the action changed, without secrets.
  target jsonb not null default '{}',
  ip inet default scope_ip(),
  request_id text default scope_request(),
  constraint audit_log_action_form check (action ~ '^[a-z_]+\.[a-z_]+$')
);
comment on table audit_log is 'Who did what, when and from where. Append-only.';

create index audit_log_by_org on audit_log (org_id, id);
comment on index audit_log_by_org is 'Serves list-audit-log.';

create function keep_audit_log() returns trigger
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Rows of the audit log are deleted only with their organisation.
begin
  if tg_op = 'DELETE' then
    if exists (select from org_deletions d where d.id = old.org_id and d.removed_at is null) then return old; end if;
  end if;
  raise exception '% is append-only.', tg_table_name using errcode = 'insufficient_privilege';
end
$$;

create trigger audit_log_append_only before update or delete on audit_log
for each row execute function keep_audit_log();

create trigger audit_log_no_truncate before truncate on audit_log
for each statement execute function keep_audit_log();

create table rate_limits (
  action text not null,
  -- A network, as network_of returns it.
  subject text not null,
  -- A sliding log: the times of all hits within the window, oldest first.
  hits timestamptz[] not null,
  -- Whether the newest request was one of them.
  admitted boolean not null,
  last_hit timestamptz not null,
  primary key (action, subject)
)
with (fillfactor = 50);
comment on table rate_limits is
  'One row for each subject. Its lock makes concurrent requests take turns, so that limits are exact.';

create index rate_limits_by_time on rate_limits (last_hit);
comment on index rate_limits_by_time is 'Serves delete_stale.';

create table sign_in_attempts (
  -- SHA-256 of the name, whether it exists or not: people sometimes type their password here.
  name_hash bytea primary key,
  -- Since the last successful sign-in.
  attempts integer not null,
  blocked_until timestamptz,
  last_attempt timestamptz not null
)
with (fillfactor = 50);

create index sign_in_attempts_by_time on sign_in_attempts (last_attempt);
comment on index sign_in_attempts_by_time is 'Serves delete_stale.';

-- Row-level security. Only definer functions (db/accounts) reach password hashes, hashes of secrets, and rows that are
-- needed before anyone has entered: sign-in by the exact name, and tokens, keys and invitation links by their hash.

create policy of_member on memberships to smartqueue_functions
  using (
    org_id = any ((select scope_orgs())::uuid[]) or user_id = (select scope_user()) or (select sees_all_orgs())
  )
  with check (org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs()));

create policy of_member on orgs for select to smartqueue_functions
  using (
    id = any ((select scope_orgs())::uuid[])
    or exists (select from memberships m where m.org_id = orgs.id and m.user_id = (select scope_user()))
    or exists (select from invitations i where i.org_id = orgs.id and i.user_id = (select scope_user()))
    or (select sees_all_orgs())
  );
create policy of_all_orgs on orgs for select to smartqueue_workers using (true);

create policy of_acquaintance on users for select to smartqueue_functions
  using (
    id = (select scope_user())
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
    or (select sees_all_orgs())
  );
comment on policy of_acquaintance on users is
  'The user, members of the open organisations, and users who have invited or are invited there.';

create policy expired on refresh_tokens to smartqueue_workers using (expires_at < now());

create policy of_user on refresh_families to smartqueue_functions
  using (
    user_id = (select scope_user()) or org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs())
  )
  with check (user_id = (select scope_user()) or (select sees_all_orgs()));
create policy expired on refresh_families to smartqueue_workers using (expires_at < now());

create policy of_org on api_keys for select to smartqueue_functions
  using (
    org_id = any ((select scope_orgs())::uuid[]) or user_id = (select scope_user()) or (select sees_all_orgs())
  );
create policy of_maker on api_keys for insert to smartqueue_functions
  with check (org_id = any ((select scope_orgs())::uuid[]) and user_id = (select scope_user()));
create policy revoked on api_keys for update to smartqueue_functions
  using (org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs()));

create policy of_org on invitations to smartqueue_functions
  using (
    org_id = any ((select scope_orgs())::uuid[]) or user_id = (select scope_user()) or (select sees_all_orgs())
  )
  with check (org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs()));
create policy expired on invitations to smartqueue_workers using (expires_at < now() - interval '30 days');

create policy of_org on audit_log for select to smartqueue_functions
  using (org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs()));
create policy signed on audit_log for insert to smartqueue_functions
  with check (
    (
      org_id = any ((select scope_orgs())::uuid[])
      or exists (select from memberships m where m.org_id = audit_log.org_id and m.user_id = (select scope_user()))
      or (select sees_all_orgs())
    )
    and (actor_id is null or actor_id = (select scope_user()))
    and (api_key_id is null or api_key_id = (select scope_key()))
  );
comment on policy signed on audit_log is 'Users cannot write entries in the name of another user or key.';

call enable_row_security(
  'users', 'orgs', 'memberships', 'refresh_families', 'refresh_tokens', 'api_keys', 'invitations', 'audit_log'
);

grant select on orgs, memberships, audit_log to smartqueue_functions;
grant select (id, username, username_key, is_admin, created_at) on users to smartqueue_functions;
grant select (id, user_id, org_id, created_at, revoked_at, expires_at, last_used_at, ip, user_agent)
  on refresh_families to smartqueue_functions;
grant select (id, org_id, user_id, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at)
  on api_keys to smartqueue_functions;
grant select (id, org_id, role, user_id, invited_by, created_at, expires_at, accepted_at, accepted_by, revoked_at)
  on invitations to smartqueue_functions;
grant insert on api_keys, invitations, audit_log to smartqueue_functions;
grant update (role) on memberships to smartqueue_functions;
grant update (org_id, revoked_at) on refresh_families to smartqueue_functions;
grant update (revoked_at) on api_keys, invitations to smartqueue_functions;
grant delete on memberships to smartqueue_functions;

grant select on orgs to smartqueue_workers;
-- The leader deletes what has expired.
grant select, delete on rate_limits to smartqueue_workers;
grant select (last_attempt), delete on sign_in_attempts to smartqueue_workers;
grant select (expires_at), delete on refresh_tokens, refresh_families, invitations to smartqueue_workers;
