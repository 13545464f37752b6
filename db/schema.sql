-- The whole schema, for reading. The migrations make it; a test proves that both are the same.

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

-- What a job is never changes after submission; where it stands is told by the one table that holds it:
-- waiting_jobs, ready_jobs, leases or finished_jobs. Each transition moves the row in one statement.
-- The queue tables carry no foreign key to jobs: they are written only by those statements, from rows they
-- have just moved, and a key check would lock and dirty the wide row on every move.

create table job_types (
  type text primary key,
  -- JSON Schema of the payload, as the handler's own schema describes it.
  payload_schema jsonb not null,
  registered_at timestamptz not null default now(),
  constraint job_types_type_form check (type ~ '^[a-z][a-z0-9._-]{0,63}$')
);
comment on table job_types is 'Types that a worker has a handler for. Submission refuses all others.';

create table jobs (
  id uuid primary key,
  org_id uuid not null references orgs on delete cascade,
  created_by uuid references users on delete set null,
  type text not null,
  name text not null,
  payload jsonb not null,
  priority text not null,
  -- Order in the queue, lowest first: db/rules/priority.ts.
  rank double precision not null,
  tags text[] not null,
  timeout_seconds integer,
  max_attempts integer not null,
  initial_delay_seconds double precision not null,
  backoff_multiplier double precision not null,
  run_at timestamptz,
  created_at timestamptz not null default now(),
  constraint jobs_name_length check (char_length(name) between 1 and 200),
  constraint jobs_payload_object check (jsonb_typeof(payload) = 'object'),
  constraint jobs_priority check (priority in ('critical', 'high', 'normal', 'low')),
  constraint jobs_timeout_positive check (timeout_seconds > 0),
  constraint jobs_max_attempts_positive check (max_attempts > 0),
  constraint jobs_initial_delay_not_negative check (initial_delay_seconds >= 0),
  constraint jobs_backoff_multiplier_grows check (backoff_multiplier >= 1)
);

create unique index jobs_by_org on jobs (org_id, id);
comment on index jobs_by_org is 'Serves list-jobs: one organisation, newest first (ids are UUIDv7).';

create table waiting_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  state text not null,
  attempts integer not null,
  wake_at timestamptz not null,
  -- Why the last attempt failed.
  error jsonb,
  constraint waiting_jobs_state check (state in ('pending', 'retrying'))
);

create index waiting_jobs_due on waiting_jobs (wake_at);
comment on index waiting_jobs_due is 'Serves wake-due-jobs.';

create table ready_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  type text not null,
  rank double precision not null,
  attempts integer not null
);

create index ready_jobs_order on ready_jobs (rank, job_id);
comment on index ready_jobs_order is 'Serves claim-jobs: lowest rank first, oldest first within a rank.';

create table leases (
  job_id uuid primary key,
  org_id uuid not null,
  worker_id text not null,
  -- Fences every write of the holder: whoever no longer owns this token changes nothing.
  token uuid not null,
  attempt integer not null,
  started_at timestamptz not null default now(),
  expires_at timestamptz not null
)
-- Room on each page and no index on expires_at: a renewal updates in place (HOT). The watchdog reads the whole
-- table, which has one row for each running job.
with (fillfactor = 60);

create table finished_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  state text not null,
  attempts integer not null,
  result jsonb,
  error jsonb,
  worker_id text not null,
  started_at timestamptz not null,
  finished_at timestamptz not null default now(),
  foreign key (org_id, job_id) references jobs (org_id, id) on delete cascade,
  constraint finished_jobs_state check (state in ('completed', 'failed')),
  constraint finished_jobs_error check ((state = 'failed') = (error is not null))
);

create table attempts (
  job_id uuid not null,
  org_id uuid not null,
  attempt integer not null,
  outcome text not null,
  error jsonb,
  worker_id text not null,
  started_at timestamptz not null,
  finished_at timestamptz not null default now(),
  primary key (job_id, attempt),
  foreign key (org_id, job_id) references jobs (org_id, id) on delete cascade,
  constraint attempts_outcome check (outcome in ('completed', 'failed', 'lost'))
);
comment on table attempts is 'Every ended try of a job. A released job was not tried and leaves no row.';

create table job_events (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  job_id uuid not null,
  state text not null,
  attempt integer not null,
  reason text,
  at timestamptz not null default now(),
  constraint job_events_state
    check (state in ('pending', 'ready', 'running', 'retrying', 'completed', 'failed'))
);
comment on table job_events is 'One row for each transition of a job, written by the statement that makes it.';

create table job_logs (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  job_id uuid not null,
  attempt integer not null,
  at timestamptz not null,
  level text not null,
  message text not null,
  foreign key (org_id, job_id) references jobs (org_id, id) on delete cascade,
  constraint job_logs_level check (level in ('debug', 'info', 'warn', 'error'))
);

create index job_logs_by_job on job_logs (job_id, id);
comment on index job_logs_by_job is 'Serves list-job-logs.';

create view job_overview as
select
  j.id,
  j.org_id,
  j.created_by,
  j.type,
  j.name,
  j.payload,
  j.priority,
  j.tags,
  j.timeout_seconds,
  j.max_attempts,
  j.initial_delay_seconds,
  j.backoff_multiplier,
  j.run_at,
  j.created_at,
  case
    when f.job_id is not null then f.state
    when l.job_id is not null then 'running'
    when w.job_id is not null then w.state
    when r.job_id is not null then 'ready'
  end as status,
  coalesce(f.attempts, l.attempt, w.attempts, r.attempts) as attempts,
  coalesce(f.worker_id, l.worker_id) as worker_id,
  coalesce(f.started_at, l.started_at) as started_at,
  f.finished_at,
  f.result,
  coalesce(f.error, w.error) as error
from jobs j
left join finished_jobs f on f.job_id = j.id
left join leases l on l.job_id = j.id
left join waiting_jobs w on w.job_id = j.id
left join ready_jobs r on r.job_id = j.id;
comment on view job_overview is 'Each job with its status: the one place that says which table means what.';
