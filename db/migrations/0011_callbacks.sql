-- Callbacks notify a URL when a job finishes.

create table callback_endpoints (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  url text not null,
  -- Of all jobs of the organisation. None: it is the callback_url of some jobs, kept here because it is disabled.
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
comment on index callback_endpoints_by_org is 'Serves find-callbacks, past the URLs that are kept because they are disabled.';
comment on table callback_endpoints is 'Where an organisation is told of its jobs, and where it does not want to be told any more.';

create table callback_secrets (
  org_id uuid primary key references orgs on delete cascade,
  secret text not null,
  -- Signs beside the other until then, so that receivers can be changed over.
  previous_secret text,
  previous_expires_at timestamptz,
  created_at timestamptz not null default now(),
  constraint callback_secrets_previous check ((previous_secret is null) = (previous_expires_at is null))
);
comment on table callback_secrets is 'What callbacks of an organisation are signed with.';

create table callback_cursor (
  only_row boolean primary key default true,
  -- Of a row of job_event_groups, and of its jobs: with one statement thousands may have ended.
  xid xid8 not null,
  id bigint not null,
  position integer not null default 0,
  -- Rows up to this one came with a dump from another server, whose transactions had other numbers.
  foreign_id bigint not null default 0,
  constraint callback_cursor_only_row check (only_row)
);
comment on table callback_cursor is 'Up to which event callbacks have been made.';

insert into callback_cursor (xid, id) values ('0', 0);

call isolate_by_org('callback_endpoints', 'callback_secrets');

grant select, insert, update, delete on callback_endpoints, callback_secrets to smartqueue_functions;
grant select (foreign_id) on callback_cursor to smartqueue_functions;
grant select, insert, update, delete on callback_endpoints to smartqueue_workers;
grant select, insert on callback_secrets to smartqueue_workers;
grant select, update on callback_cursor to smartqueue_workers;
