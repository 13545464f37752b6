-- API keys, invitations, the audit log, and what counts attempts to sign in.

-- Looked up by this and not by lower(username): under row-level security an index serves only conditions that cannot leak.
alter table users add column username_key text generated always as (lower(username)) stored;
create index users_by_username_key on users (username_key);
comment on index users_by_username_key is 'Serves begin-sign-in and create-invitation.';
comment on index users_username_key is 'Names that differ only in case are one name.';

create index refresh_families_by_user on refresh_families (user_id);
comment on index refresh_families_by_user is 'Serves change-password, which ends all other sign-ins of a user.';

-- When the last of its tokens expires.
alter table refresh_families add column expires_at timestamptz not null default now() + interval '30 days';
create index refresh_families_by_expiry on refresh_families (expires_at);
comment on index refresh_families_by_expiry is 'Serves delete-stale.';

create index refresh_tokens_by_expiry on refresh_tokens (expires_at);
comment on index refresh_tokens_by_expiry is 'Serves delete-stale.';

create table api_keys (
  id uuid primary key,
  org_id uuid not null,
  user_id uuid not null,
  name text not null,
  -- The part of the key that is shown, to tell keys apart.
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
comment on table api_keys is 'Keys of programs. A key acts for the member who made it, and ends with the membership.';

create index api_keys_by_member on api_keys (org_id, user_id, id);
comment on index api_keys_by_member is 'Serves list-api-keys, and the cascade when a membership ends.';

create table invitations (
  id uuid primary key,
  org_id uuid not null references orgs on delete cascade,
  role text not null,
  -- Either a known user is invited, or whoever has the link.
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
comment on index invitations_by_org is 'Serves list-org-invitations.';

create index invitations_by_user on invitations (user_id, id) where user_id is not null;
comment on index invitations_by_user is 'Serves list-own-invitations.';

create table audit_log (
  id bigint generated always as identity primary key,
  org_id uuid not null references orgs,
  at timestamptz not null default clock_timestamp(),
  -- Who: a user, perhaps through an API key. Null: an operator with the database's own credentials.
  actor_id uuid,
  api_key_id uuid,
  action text not null,
  -- What it was done to, without secrets.
  target jsonb not null default '{}',
  -- From where.
  ip inet,
  request_id text,
  constraint audit_log_action_form check (action ~ '^[a-z_]+\.[a-z_]+$')
);
comment on table audit_log is 'Who did what, when and from where. Rows are only added.';

create index audit_log_by_org on audit_log (org_id, id);
comment on index audit_log_by_org is 'Serves list-audit-log.';

create function refuse_change() returns trigger
language plpgsql
as $$
begin
  raise exception 'Rows of % are only added.', tg_table_name using errcode = 'insufficient_privilege';
end
$$;

create trigger audit_log_append_only before update or delete on audit_log
for each row execute function refuse_change();

create trigger audit_log_no_truncate before truncate on audit_log
for each statement execute function refuse_change();

create table rate_limits (
  action text not null,
  -- A network: an IPv4 address, or the /64 of an IPv6 one.
  subject text not null,
  -- A sliding log: the times of all hits within the window, oldest first.
  hits timestamptz[] not null,
  -- Whether the newest request was one of them.
  admitted boolean not null,
  last_hit timestamptz not null,
  primary key (action, subject)
)
with (fillfactor = 50);
comment on table rate_limits is 'One row for each subject: its lock makes concurrent requests take turns, so that limits are exact.';

create index rate_limits_by_time on rate_limits (last_hit);
comment on index rate_limits_by_time is 'Serves delete-stale.';

create table sign_in_attempts (
  -- SHA-256 of the name, known or not: what is typed there may be a password.
  name_hash bytea primary key,
  -- Since the last success.
  attempts integer not null,
  blocked_until timestamptz,
  admitted boolean not null,
  last_attempt timestamptz not null
)
with (fillfactor = 50);

create index sign_in_attempts_by_time on sign_in_attempts (last_attempt);
comment on index sign_in_attempts_by_time is 'Serves delete-stale.';

create function network_of(address inet) returns text
language sql immutable parallel safe
-- A household has at least a /64 of IPv6, so that its addresses are one. An IPv4 address in IPv6 clothes is IPv4.
return case
  when family(address) = 4 then host(address)
  when address <<= '::ffff:0:0/96'::inet then host('0.0.0.0'::inet + (address - '::ffff:0:0'::inet))
  else network(set_masklen(address, 64))::text
end;
