-- Deletion of organisations. An organisation may have millions of rows, so a request only records the deletion, which
-- closes the organisation immediately; the leader then removes its rows in batches (db/accounts/deletion.sql, ADR 21).

create table org_deletions (
  -- The organisation. No foreign key: the row outlives the organisation as a record of the deletion.
  id uuid primary key,
  requested_at timestamptz not null default now(),
  requested_by uuid,
  request_id text default scope_request(),
  -- When the last row of the organisation was removed. Null while the leader is still removing rows.
  removed_at timestamptz
);
comment on table org_deletions is
  'Deleted organisations, when and by whom. While its rows are being removed, an organisation is closed to everyone.';

create index org_deletions_pending on org_deletions (id) where removed_at is null;
comment on index org_deletions_pending is
  'Serves the policies not_deleted, regardless of the number of past deletions.';

create view active_memberships with (security_invoker = true) as
select m.org_id, m.user_id, m.role, m.created_at
from memberships m
where not exists (select from org_deletions d where d.id = m.org_id and d.removed_at is null);
comment on view active_memberships is 'Memberships of organisations that are not being deleted. For definer functions.';

create policy of_admin on org_deletions for select to smartqueue_functions
  using (removed_at is null or (select sees_all_orgs()));
comment on policy of_admin on org_deletions is
  'Platform admins read all rows. Everyone else needs the ids of organisations being removed, for not_deleted.';
create policy of_all_orgs on org_deletions for select to smartqueue_workers using (true);

call enable_row_security('org_deletions');

-- Anyone who acts in an organisation is a member, an invited user or a webhook source of it, or a platform admin, who
-- needs its row in orgs. Hiding these four closes it to sessions, API keys, tickets, invitations and webhooks.

create policy not_deleted on orgs as restrictive to smartqueue_functions
  using (id <> all (array(select d.id from org_deletions d where d.removed_at is null)));
create policy not_deleted on memberships as restrictive to smartqueue_functions
  using (org_id <> all (array(select d.id from org_deletions d where d.removed_at is null)));
create policy not_deleted on invitations as restrictive to smartqueue_functions
  using (org_id <> all (array(select d.id from org_deletions d where d.removed_at is null)));
create policy not_deleted on webhook_sources as restrictive to smartqueue_functions
  using (org_id <> all (array(select d.id from org_deletions d where d.removed_at is null)));

grant select on org_deletions to smartqueue_functions, smartqueue_workers;
