create table orgs (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now(),
  constraint orgs_name_length check (char_length(name) between 1 and 100)
);

create table users (
  id uuid primary key,
  username text not null,
  -- scrypt, in the form that functions/auth/passwords.ts writes.
  password_hash text not null,
  -- Sees every organisation. Inside an organisation the membership decides.
  is_admin boolean not null default false,
  created_at timestamptz not null default now(),
  constraint users_username_length check (char_length(username) between 3 and 64)
);

create unique index users_username_key on users (lower(username));
comment on index users_username_key is 'Serves find-account; names that differ only in case are one name.';

create table memberships (
  org_id uuid not null references orgs on delete cascade,
  user_id uuid not null references users on delete cascade,
  role text not null,
  created_at timestamptz not null default now(),
  primary key (org_id, user_id),
  constraint memberships_role check (role in ('org_admin', 'user'))
);

create index memberships_by_user on memberships (user_id, created_at);
comment on index memberships_by_user is 'Serves find-account: the organisations of one user, oldest first.';

-- One sign-in. Its refresh tokens replace each other; presenting a replaced one revokes the family.
create table refresh_families (
  id uuid primary key,
  user_id uuid not null,
  org_id uuid not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  foreign key (org_id, user_id) references memberships on delete cascade
);

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
