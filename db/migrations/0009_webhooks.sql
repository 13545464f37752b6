-- Incoming webhooks.

create table webhook_sources (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  name text not null,
  scheme text not null,
  -- Details that the scheme leaves open, such as the header with the signature.
  verification jsonb not null default '{}',
  secret text not null,
  -- Also accepted until then, so that the sender can switch.
  previous_secret text,
  previous_expires_at timestamptz,
  filter jsonb,
  template jsonb not null,
  enabled boolean not null default true,
  -- Incremented by each change, so that a delivery checked against a cached source is not stored if the source changed.
  version bigint not null default 1,
  created_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  constraint webhook_sources_id unique (id),
  constraint webhook_sources_name check (char_length(name) between 1 and 200),
  constraint webhook_sources_scheme check (scheme in ('github', 'stripe', 'standard-webhooks', 'hmac')),
  constraint webhook_sources_previous check ((previous_secret is null) = (previous_expires_at is null))
);
comment on table webhook_sources is 'Senders of webhooks: how they sign, and the job that an event becomes.';

create table webhook_deliveries (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  -- Without a foreign key: deleting a source does not have to wait for its deliveries.
  source_id uuid not null,
  received_at timestamptz not null default now(),
  status text not null,
  reason text,
  event_id text,
  event_type text,
  -- The job that it created, or that its first delivery created.
  job_id uuid,
  replay_of uuid,
  -- Both with secrets redacted. A body that is not JSON is stored as a JSON string.
  headers jsonb not null,
  body jsonb,
  primary key (org_id, id),
  constraint webhook_deliveries_status check (
    status in ('accepted', 'duplicate', 'filtered', 'rejected', 'quarantined')
  ),
  constraint webhook_deliveries_job check (status not in ('accepted', 'duplicate') or job_id is not null)
);
comment on table webhook_deliveries is 'Received webhooks and what was done with each.';

create index webhook_deliveries_by_source on webhook_deliveries (source_id, id);
comment on index webhook_deliveries_by_source is 'Serves list-deliveries.';

create index webhook_deliveries_by_status on webhook_deliveries (source_id, status, id);
comment on index webhook_deliveries_by_status is
  'Serves list-deliveries by status, and the limit on stored rejections.';

create index webhook_deliveries_by_time on webhook_deliveries (received_at);
comment on index webhook_deliveries_by_time is 'Serves delete_expired.';

create policy of_org on webhook_sources to smartqueue_functions
  using (org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs()));

call enable_row_security('webhook_sources');
call isolate_by_org('webhook_deliveries');

grant select, insert, update, delete on webhook_sources to smartqueue_functions;
grant select, insert on webhook_deliveries to smartqueue_functions;
-- The leader deletes old deliveries.
grant select (org_id, id, received_at), delete on webhook_deliveries to smartqueue_workers;
