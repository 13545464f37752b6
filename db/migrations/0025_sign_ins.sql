-- Sign-ins can be listed, and an account can create a limited number of organisations.

alter table refresh_families
  -- When the sign-in began or its refresh token was last exchanged.
  add column last_used_at timestamptz not null default now(),
  -- The client address at that time.
  add column ip inet default scope_ip(),
  add column user_agent text;
alter table refresh_families
  add constraint refresh_families_user_agent_length check (char_length(user_agent) <= 256);
-- Every exchange set the expiry to 30 days later.
update refresh_families set last_used_at = least(expires_at - interval '30 days', now());
comment on index refresh_families_by_user is
  'Serves list-sessions, and change-password and end-other-sessions, which end the other sign-ins of a user.';
grant update (last_used_at, ip, user_agent) on refresh_families to smartqueue_functions;

-- Null if unknown or if the account was deleted.
alter table orgs add column created_by uuid default scope_user() references users on delete set null;
update orgs o
set created_by = (
  select m.user_id
  from memberships m
  where m.org_id = o.id
    and m.role = 'org_admin'
  order by m.created_at, m.user_id
  limit 1
);
create index orgs_by_creator on orgs (created_by);
comment on index orgs_by_creator is 'Serves create-org and start-session, which count the organisations a user has created.';

create policy of_creator on orgs for select to smartqueue_functions using (created_by = (select scope_user()));
comment on policy of_creator on orgs is
  'An organisation that a user created and left still counts towards their limit.';
