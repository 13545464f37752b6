-- Callbacks notify a URL when a job finishes.

create table callback_endpoints (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  url text not null,
  -- Events of all jobs of the organisation. Empty if this is the callback_url of some jobs and was disabled.
  events text[] not null,
  disabled_at timestamptz,
  disabled_reason text,
  created_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  constraint callback_endpoints_url unique (org_id, url),
  constraint callback_endpoints_url_length check (char_length(url) <= 2048),
  constraint callback_endpoints_events check (events <@ '{job.completed,job.failed,job.cancelled}'::text[])
);

create index callback_endpoints_by_org on callback_endpoints (org_id) where disabled_at is null and events <> '{}';
comment on index callback_endpoints_by_org is 'Serves find-callbacks, without the disabled endpoints.';
comment on table callback_endpoints is
  'URLs that are notified of an organisation''s finished jobs, and URLs that were disabled.';

create table callback_secrets (
  org_id uuid primary key references orgs on delete cascade,
  secret text not null,
  -- Callbacks are signed with both until then, so that receivers can switch.
  previous_secret text,
  previous_expires_at timestamptz,
  created_at timestamptz not null default now(),
  constraint callback_secrets_previous check ((previous_secret is null) = (previous_expires_at is null))
);
comment on table callback_secrets is 'The secrets that sign an organisation''s callbacks.';

call isolate_by_org('callback_endpoints', 'callback_secrets');

grant select, insert, update, delete on callback_endpoints, callback_secrets to smartqueue_functions;
grant select, insert, update, delete on callback_endpoints to smartqueue_workers;
grant select, insert on callback_secrets to smartqueue_workers;
