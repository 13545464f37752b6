-- The whole schema, for reading. The migrations make it; a test proves that both are the same.

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

create table users (
  id uuid primary key,
  username text not null,
  -- scrypt, in the form that functions/auth/passwords.ts writes.
  password_hash text not null,
  -- Sees every organisation. Inside an organisation the membership decides.
  is_admin boolean not null default false,
  created_at timestamptz not null default now(),
  -- Looked up by this and not by lower(username): under row-level security an index serves only conditions that cannot leak.
  username_key text generated always as (lower(username)) stored,
  constraint users_username_length check (char_length(username) between 3 and 64)
);

create unique index users_username_key on users (lower(username));
comment on index users_username_key is 'Names that differ only in case are one name.';

create index users_by_username_key on users (username_key);
comment on index users_by_username_key is 'Serves begin-sign-in and create-invitation.';

create table orgs (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now(),
  -- Null if unknown or if the account was deleted.
  created_by uuid default scope_user() references users on delete set null,
  constraint orgs_name_length check (char_length(name) between 1 and 100)
);

create index orgs_by_creator on orgs (created_by);
comment on index orgs_by_creator is 'Serves create-org and start-session, which count the organisations a user has created.';

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
  -- When the last of its tokens expires.
  expires_at timestamptz not null default now() + interval '30 days',
  -- When the sign-in began or its refresh token was last exchanged.
  last_used_at timestamptz not null default now(),
  -- The client address at that time.
  ip inet default scope_ip(),
  user_agent text,
  foreign key (org_id, user_id) references memberships on delete cascade,
  constraint refresh_families_user_agent_length check (char_length(user_agent) <= 256)
);

create index refresh_families_by_user on refresh_families (user_id);
comment on index refresh_families_by_user is
  'Serves list-sessions, and change-password and end-other-sessions, which end the other sign-ins of a user.';

create index refresh_families_by_expiry on refresh_families (expires_at);
comment on index refresh_families_by_expiry is 'Serves delete-stale.';

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

create index invitations_by_inviter on invitations (invited_by);
comment on index invitations_by_inviter is 'Serves the cascade when an account is deleted.';

create index invitations_by_accepter on invitations (accepted_by) where accepted_by is not null;
comment on index invitations_by_accepter is 'Serves the foreign key when an account is deleted.';

create table audit_log (
  id bigint generated always as identity primary key,
  org_id uuid not null references orgs,
  at timestamptz not null default clock_timestamp(),
  -- Who: a user, perhaps through an API key. Null: an operator with the database's own credentials.
  actor_id uuid default scope_user(),
  api_key_id uuid default scope_key(),
  action text not null,
  -- What it was done to, without secrets.
  target jsonb not null default '{}',
  -- From where.
  ip inet default scope_ip(),
  request_id text default scope_request(),
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

-- The audit log is deleted only with its organisation.
create function keep_audit_log() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and exists (select from org_deletions d where d.id = old.org_id and d.removed_at is null) then
    return old;
  end if;
  raise exception 'Rows of % are only added.', tg_table_name using errcode = 'insufficient_privilege';
end
$$;

create trigger audit_log_append_only before update or delete on audit_log
for each row execute function keep_audit_log();

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

-- What a job is never changes after submission; where it stands is told by the one table that holds it:
-- waiting_jobs, blocked_jobs, ready_jobs, leases or finished_jobs. Each transition moves the row in one statement.
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

create type job_state as enum
  ('pending', 'blocked', 'ready', 'running', 'retrying', 'completed', 'failed', 'cancelled');
comment on type job_state is 'An enum and not a checked text: it is written for each transition, in a quarter of the bytes.';

-- Streams: what repeats, and so can be learned.

create table streams (
  id bigint generated always as identity primary key,
  org_id uuid not null references orgs on delete cascade,
  type text not null,
  name text not null,
  -- Executions learned from; a robust running mean of ln(milliseconds), and its mean absolute deviation.
  runs bigint not null default 0,
  mean_log double precision,
  deviation_log double precision,
  -- The mean that queued jobs were last scored with, and whether the two have come a lane apart.
  scored_log double precision,
  moved boolean not null default false,
  -- How far the last executions lay from the running mean: above nought the stream is getting slower.
  drift_log double precision not null default 0,
  constraint streams_identity unique (org_id, type, name)
)
-- Each group of completions updates its streams: in place (HOT), as long as the page has room.
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
comment on table streams is 'An organisation''s jobs of one type and name, with the running estimate of their runtime.';

create index streams_moved on streams (id) where moved;
comment on index streams_moved is 'Serves rescore-jobs: streams whose queued jobs stand in the wrong lane.';

create table type_estimates (
  -- The empty type stands for all of them.
  type text primary key,
  runs bigint not null,
  mean_log double precision not null,
  deviation_log double precision not null,
  -- Of the newest executions of the type.
  median_log double precision,
  drift_log double precision not null default 0
);
comment on table type_estimates is 'What a stream without executions starts from. Kept by the leader.';

create function lane_of(rank double precision) returns smallint
language sql immutable parallel safe
-- A tenth in ln wide: jobs of one lane differ by less than 10 % in rank and run in order of arrival.
return floor(least(greatest(rank, -100), 100) * 10)::smallint;

create function error_fingerprint(error jsonb) returns text
language sql immutable parallel safe
-- Errors that differ only in ids, numbers, addresses or quoted values are the same error. A number that the message
-- begins with is a status, and tells them apart.
return md5(
  coalesce(error ->> 'code', '') || ' ' || coalesce(substring(error ->> 'message' from '^[0-9]{3}\M'), '') || ' ' ||
  regexp_replace(
    regexp_replace(left(coalesce(error ->> 'message', ''), 400), '"[^"]*"|''[^'']*''|`[^`]*`', '?', 'g'),
    '[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|[0-9a-f]{12,}|[0-9]+', '#', 'gi'
  )
);

-- Checked types and not checks of the table: what a thousand jobs have in common is then checked once, not a thousand
-- times, and a check of a table is parsed anew by each statement.
create domain job_name as text constraint job_name_length check (char_length(value) between 1 and 200);
create domain payload_object as jsonb constraint payload_object_is_one check (jsonb_typeof(value) = 'object');
create domain job_priority as text constraint job_priority_is_known check (value in ('critical', 'high', 'normal', 'low'));
create domain parent_failure_rule as text constraint parent_failure_rule_is_known check (value in ('fail', 'wait'));
create domain prediction_source as text
  constraint prediction_source_is_known check (value in ('lstm', 'stream', 'type', 'default'));
create domain positive_integer as integer constraint positive_integer_is_positive check (value > 0);
create domain unsigned_integer as integer constraint unsigned_integer_is_not_negative check (value >= 0);
create domain unsigned_real as real constraint unsigned_real_is_not_negative check (value >= 0);
create domain unsigned_double as double precision constraint unsigned_double_is_not_negative check (value >= 0);
create domain growth_factor as double precision constraint growth_factor_grows check (value >= 1);

create table jobs (
  org_id uuid not null,
  id uuid not null,
  created_by uuid,
  stream_id bigint not null,
  type text not null,
  name job_name not null,
  payload payload_object not null,
  priority job_priority not null,
  tags text[] not null,
  timeout_seconds positive_integer,
  max_attempts positive_integer not null,
  initial_delay_seconds unsigned_double not null,
  backoff_multiplier growth_factor not null,
  cpu_units unsigned_real not null,
  memory_mb unsigned_integer not null,
  run_at timestamptz,
  deadline timestamptz,
  on_parent_failure parent_failure_rule not null,
  -- The prediction at submission, and where it came from.
  predicted_ms double precision not null,
  predicted_p90_ms double precision not null,
  prediction_source prediction_source not null,
  model_version integer,
  -- Order in the queue, lowest first: rank_base + rank_slope × the stream's mean_log. See db/rules/priority.ts.
  rank_base double precision not null,
  rank_slope real not null,
  created_at timestamptz not null default now(),
  -- How far the prediction lies from the stream's mean at submission: while the job waits, it keeps that distance.
  residual_log real not null default 0,
  -- Beyond this an attempt is slow. Null: not enough is known of the stream.
  predicted_p99_ms double precision,
  -- How long after its submission the job was promised to start.
  promised_wait_ms double precision,
  -- What the predictor saw, packed by db/learning/sample.ts: what is learned from when the job has run. Of jobs that were
  -- submitted together and look alike only the first few have one.
  sample bytea,
  callback_url text,
  triggered_by jsonb,
  traceparent text,
  primary key (org_id, id),
  constraint jobs_callback_url check (char_length(callback_url) <= 2048)
);
-- Not valid: no row had one when it was added. New ones are checked.
alter table jobs add constraint jobs_traceparent check (char_length(traceparent) <= 128) not valid;
comment on table jobs is 'What was submitted. Never changes.';
comment on column jobs.callback_url is 'Told when the job has ended, beside the endpoints of its organisation.';
comment on column jobs.triggered_by is
  'What has made the job, if not a person or program over the API: {kind: webhook | schedule | callback, …}.';
comment on column jobs.traceparent is
  'The span in which the job was submitted, as W3C Trace Context writes it. Null: nobody traces it.';

create index jobs_by_callback on jobs (org_id, id) where callback_url is not null;
comment on index jobs_by_callback is 'Serves find-callbacks: whether anybody has asked for one.';

create index jobs_by_told on jobs (org_id, (triggered_by ->> 'job_id'), id) where triggered_by ->> 'kind' = 'callback';
comment on index jobs_by_told is 'Serves callbacks_of_job.';

create index jobs_by_stream on jobs (stream_id, id) with (deduplicate_items = off);
comment on index jobs_by_stream is 'Serves list-jobs by type and by name.';

create index jobs_by_priority on jobs (org_id, priority, id) where priority <> 'normal';
comment on index jobs_by_priority is 'Serves list-jobs by a priority that is not the common one.';

create index jobs_by_tag on jobs using gin (tags) where tags <> '{}';
comment on index jobs_by_tag is 'Serves list-jobs by tag.';

create table waiting_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  state job_state not null,
  attempts integer not null,
  wake_at timestamptz not null,
  -- Why the last attempt failed.
  error jsonb,
  constraint waiting_jobs_state check (state in ('pending', 'retrying'))
);
comment on table waiting_jobs is 'Pending and retrying jobs: what becomes ready when its time comes.';

create index waiting_jobs_due on waiting_jobs (wake_at);
comment on index waiting_jobs_due is 'Serves wake-due-jobs.';

create index waiting_jobs_pending on waiting_jobs (org_id, job_id) where state = 'pending';
comment on index waiting_jobs_pending is 'Serves list-jobs by status pending, next to organisations with many.';

create index waiting_jobs_retrying on waiting_jobs (org_id, job_id) where state = 'retrying';
comment on index waiting_jobs_retrying is 'Serves list-jobs by status retrying, next to organisations with many.';

create sequence ready_keys cache 1;

create table ready_jobs (
  org_id uuid not null,
  job_id uuid not null,
  stream_id bigint not null,
  type text not null,
  -- The rank, to a tenth. 10000 is added while the job is parked: paused, of a type that no worker handles, or to run alone.
  lane smallint not null,
  -- Order of becoming ready. It only grows, which is what lets a worker remember where a lane begins.
  key bigint not null default nextval('ready_keys'),
  attempts integer not null,
  cpu_units real not null,
  memory_mb integer not null,
  predicted_ms real not null,
  -- Latest start that still makes the deadline.
  start_by timestamptz,
  -- A worker was lost while it held this job, which may have been the cause: it counts as started from its next claim on.
  suspect boolean not null default false,
  ready_at timestamptz not null default now(),
  alone boolean not null default false,
  primary key (org_id, job_id)
)
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

comment on column ready_jobs.alone is
  'Its worker was lost twice in a row: it runs alone, parked where ordinary claims do not look, until it is clear whether it is the cause.';

-- Keys are never equal: to look for equal entries whenever a page is full would be for nothing.
create index ready_jobs_order on ready_jobs (lane, key) with (deduplicate_items = off);
comment on index ready_jobs_order is 'Serves exchange-jobs: lowest lane first, in order of arrival within it.';

create index ready_jobs_age on ready_jobs (key) with (deduplicate_items = off) where lane < 5000;
comment on index ready_jobs_age is 'Serves exchange-jobs: the oldest first, whatever its lane.';

create index ready_jobs_parked on ready_jobs (key) where lane >= 5000;
comment on index ready_jobs_parked is 'Serves unpark-jobs.';

create index ready_jobs_start_by on ready_jobs (start_by) where start_by is not null and lane < 5000;
comment on index ready_jobs_start_by is 'Serves exchange-jobs: jobs that must start now to make their deadline.';

create index ready_jobs_big on ready_jobs (ready_at) where (cpu_units > 1 or memory_mb > 64) and lane < 5000;
comment on index ready_jobs_big is 'Serves reserve-capacity: jobs that smaller ones can overtake.';

create index ready_jobs_alone on ready_jobs (key) where alone;
comment on index ready_jobs_alone is 'Serves claim-suspect, ask-to-isolate, look-out and reclaim-expired-leases.';

create sequence lease_tokens cache 1;

create table leases (
  -- Fences every write of the holder: whoever no longer owns this token changes nothing. Grows from lease to lease.
  token bigint primary key,
  worker_id text not null,
  expires_at timestamptz not null,
  -- The jobs of one claim, in its order; the other arrays have a value for each.
  job_ids uuid[] not null,
  org_ids uuid[] not null,
  attempts integer[] not null,
  -- Null while the worker holds the job and has not started it.
  started_ats timestamptz[] not null,
  alone boolean not null default false
)
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table leases is
  'One for each claim, however many jobs it took: it is inserted once, renewed as one, and deleted when the last of them
has ended. A job that ended before the others stays in it until then; where else it stands says so.';
comment on column leases.alone is 'Its only job runs alone in its worker because it is suspected of killing workers.';

-- Compressing ids gains nothing.
alter table leases
  alter column job_ids set storage external,
  alter column org_ids set storage external,
  alter column attempts set storage external,
  alter column started_ats set storage external;

create table finished_jobs (
  org_id uuid not null,
  job_id uuid not null,
  stream_id bigint not null,
  state job_state not null,
  attempts integer not null,
  result jsonb,
  error jsonb,
  -- Groups dead letters.
  fingerprint text,
  -- The last attempt. Null if the job never started.
  worker_id text,
  started_at timestamptz,
  -- What a completed execution teaches: its runtime, by the worker's clock.
  runtime_ms double precision,
  finished_at timestamptz not null default now(),
  primary key (org_id, job_id),
  constraint finished_jobs_state check (state in ('completed', 'failed', 'cancelled')),
  constraint finished_jobs_error check ((state = 'failed') = (error is not null and fingerprint is not null))
)
with (autovacuum_vacuum_insert_scale_factor = 0.05);
comment on table finished_jobs is 'Completed, failed and cancelled jobs with their last attempt. Off the hot path: only inserted into.';

-- A state is a predicate and no column: under row-level security no index serves the comparison of an enum.
create index finished_jobs_failed on finished_jobs (org_id, job_id) where state = 'failed';
comment on index finished_jobs_failed is 'Serves list-jobs by status failed.';

create index finished_jobs_cancelled on finished_jobs (org_id, job_id) where state = 'cancelled';
comment on index finished_jobs_cancelled is 'Serves list-jobs by status cancelled.';

create index finished_jobs_dead on finished_jobs (org_id, fingerprint, job_id) include (stream_id, finished_at)
where state = 'failed';
comment on index finished_jobs_dead is 'Serves list-dead-letters, without a look at the table, and list-jobs by fingerprint.';

create table attempts (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  job_id uuid not null,
  attempt integer not null,
  outcome text not null,
  error jsonb,
  worker_id text not null,
  started_at timestamptz not null,
  finished_at timestamptz not null default now(),
  constraint attempts_outcome check (outcome in ('failed', 'lost', 'snoozed', 'cancelled', 'given_back'))
);
comment on table attempts is 'Tries that did not finish their job. The one that did stands in finished_jobs.';

create index attempts_by_job on attempts (org_id, job_id, id);
comment on index attempts_by_job is 'Serves list-attempts and executions_of.';

create function executions_of(in_orgs uuid[], of_jobs uuid[]) returns json
language sql stable
-- How often each job was executed before, by its id. A function and no subquery: it costs a claim nothing unless some job
-- is traced.
begin atomic
  select json_object_agg(job_id, executions)
  from (
    select job_id, count(*) as executions
    from attempts
    where org_id = any (in_orgs)
      and job_id = any (of_jobs)
    group by job_id
  ) earlier;
end;

create table job_event_groups (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  at timestamptz not null default now(),
  job_ids uuid[] not null,
  states job_state[] not null,
  attempts integer[] not null,
  reasons text[] not null,
  ats timestamptz[] not null,
  ran_ms double precision[] not null default '{}',
  -- Events in the order of their commits: a number is given before, and a statement that takes long commits late.
  xid xid8 default pg_current_xact_id()
);
comment on column job_event_groups.xid is 'Null: written before there was a reader that needs it.';
comment on table job_event_groups is
  'Transitions of an organisation''s jobs, written by the statement that makes them: one row for all of a statement.
An array with one value speaks for all jobs, an empty one means: no reason, or the time of the row.';
comment on column job_event_groups.ran_ms is
  'Of jobs whose start is told together with their end: how long before the end it was.';

alter table job_event_groups
  alter column job_ids set storage external,
  alter column states set storage external,
  alter column attempts set storage external,
  alter column ats set storage external,
  alter column ran_ms set storage external;

create index job_event_groups_by_time on job_event_groups using brin (at) with (pages_per_range = 16, autosummarize = on);
comment on index job_event_groups_by_time is 'Serves delete-expired-events.';

create index job_event_groups_by_commit on job_event_groups (xid, id) where xid is not null;
comment on index job_event_groups_by_commit is 'Serves find-callbacks.';

create index job_event_groups_of_org on job_event_groups (org_id, xid, id) where xid is not null;
comment on index job_event_groups_of_org is 'Serves read-stream.';

create view job_events with (security_invoker = true) as
select
  g.id, n::bigint as position, g.org_id, g.job_ids[n] as job_id, 'running'::job_state as state,
  g.attempts[least(n, cardinality(g.attempts))] as attempt, null as reason,
  g.at - g.ran_ms[n] * interval '1 millisecond' as at
from job_event_groups g
cross join lateral generate_series(1, cardinality(g.ran_ms)) as n
union all
select
  g.id, n::bigint + cardinality(g.ran_ms), g.org_id, g.job_ids[n], g.states[least(n, cardinality(g.states))],
  g.attempts[least(n, cardinality(g.attempts))], g.reasons[least(n, cardinality(g.reasons))],
  coalesce(g.ats[least(n, cardinality(g.ats))], g.at)
from job_event_groups g
cross join lateral generate_series(1, cardinality(g.job_ids)) as n;
comment on view job_events is 'One row for each transition of a job.';

create function insert_job_event() returns trigger
language plpgsql
as $$
begin
  insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
  values (
    new.org_id, array[new.job_id], array[new.state], array[new.attempt], array[new.reason], array[coalesce(new.at, now())]
  );
  return new;
end
$$;

-- For statements that move few jobs; those that move many write their group themselves.
create trigger job_events_insert instead of insert on job_events
for each row execute function insert_job_event();

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

create table job_progress (
  job_id uuid primary key,
  org_id uuid not null,
  -- 0 to 1, and what the handler says about it.
  progress real,
  note text,
  -- What the next attempt may go on from.
  checkpoint jsonb,
  updated_at timestamptz not null default now(),
  foreign key (org_id, job_id) references jobs (org_id, id) on delete cascade,
  constraint job_progress_range check (progress between 0 and 1)
)
with (fillfactor = 70);

create view queue_entries with (security_invoker = true) as
select
  j.id as job_id,
  j.org_id,
  j.stream_id,
  j.type,
  lane_of(j.rank_base + j.rank_slope * coalesce(s.mean_log + j.residual_log, ln(j.predicted_ms))) as lane,
  j.cpu_units,
  j.memory_mb,
  j.predicted_ms::real as predicted_ms,
  j.deadline - j.predicted_p90_ms * interval '1 millisecond' as start_by,
  j.run_at
from jobs j
join streams s on s.id = j.stream_id;
comment on view queue_entries is 'How a job stands in ready_jobs if it becomes ready now.';

-- Jobs that wait for other jobs.

create table job_dependencies (
  parent_id uuid not null,
  child_id uuid not null,
  org_id uuid not null,
  primary key (parent_id, child_id),
  foreign key (org_id, parent_id) references jobs (org_id, id) on delete cascade,
  foreign key (org_id, child_id) references jobs (org_id, id) on delete cascade
);
comment on table job_dependencies is 'The child may not start before the parent has completed.';

create index job_dependencies_by_child on job_dependencies (child_id, parent_id);
comment on index job_dependencies_by_child is 'Serves get-job.';

create table blocked_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  -- Parents that have not completed.
  remaining integer not null,
  on_parent_failure text not null,
  constraint blocked_jobs_remaining check (remaining > 0)
);

create index blocked_jobs_by_org on blocked_jobs (org_id, job_id);
comment on index blocked_jobs_by_org is 'Serves list-jobs by status blocked, next to organisations with many.';

create function lock_parents(in_org uuid, in_jobs uuid[]) returns table (job_id uuid, state text)
language plpgsql
as $$
-- Says where each job stands and keeps it from finishing until the caller commits, so that a new dependent is either
-- seen by the statement that finishes its parent or sees that the parent has finished. Each look is a statement with a
-- snapshot of its own: a job that moves from one table to another between two looks is found by the next round.
-- Rows are locked table by table in the order in which others lock them (ready and waiting, leases, blocked), and in each
-- by id or token.
declare
  sought uuid[] := array(select distinct w from unnest(in_jobs) w);
  found_jobs uuid[];
  locked bigint[];
  wanted uuid;
begin
  while cardinality(sought) > 0 loop
    found_jobs := '{}';
    for wanted in select w from unnest(sought) w order by w loop
      job_id := wanted;
      state := null;
      select f.state::text into state from finished_jobs f where f.org_id = in_org and f.job_id = wanted;
      if state <> 'completed' then
        -- A failed or cancelled job may be retried, and then complete, before the caller commits.
        perform from finished_jobs f where f.org_id = in_org and f.job_id = wanted for key share;
        if not found then state := null; end if;
      end if;
      if state is null then
        perform from ready_jobs r where r.job_id = wanted and r.org_id = in_org for key share;
        if found then state := 'ready'; end if;
      end if;
      if state is null then
        perform from waiting_jobs w where w.job_id = wanted and w.org_id = in_org for key share;
        if found then state := 'waiting'; end if;
      end if;
      if state is not null then
        found_jobs := found_jobs || wanted;
        return next;
      end if;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
    exit when cardinality(sought) = 0;

    locked := array(select l.token from leases l where l.job_ids && sought order by l.token for key share);
    -- A lease outlives those of its jobs that ended first. With the lease locked none can end any more.
    for job_id, state in
      select j.id, 'running'
      from jobs j
      where j.org_id = in_org
        and j.id = any (sought)
        and exists (select from leases l where l.token = any (locked) and j.id = any (l.job_ids))
        and not exists (select from finished_jobs f where f.org_id = in_org and f.job_id = j.id)
        and not exists (select from ready_jobs r where r.org_id = in_org and r.job_id = j.id)
        and not exists (select from waiting_jobs w where w.job_id = j.id)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select b.job_id, 'blocked'
      from blocked_jobs b
      where b.org_id = in_org
        and b.job_id = any (sought)
      order by b.job_id
      for key share
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select w, null::text
      from unnest(sought) w
      where not exists (select from jobs j where j.org_id = in_org and j.id = w)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
  end loop;
end
$$;

create function settle_dependents(completed uuid[], failed uuid[]) returns integer
language plpgsql
as $$
-- Called by every statement that finishes jobs. Dependents of completed jobs come one parent closer to ready; those of
-- failed and cancelled ones fail with them, all the way down, unless they are told to wait. Answers how many became
-- ready. Being a function it looks with a fresh snapshot, after the caller has locked the finished jobs: no dependent
-- that lock_parents let in can be missed.
declare
  became_ready integer := 0;
begin
  perform from job_dependencies where parent_id = any (completed || failed) limit 1;
  if not found then return 0; end if;

  with edge as (
    select child_id, count(*) as done
    from job_dependencies
    where parent_id = any (completed)
    group by child_id
  ),
  child as materialized (
    select b.job_id, b.org_id, b.remaining - edge.done as remaining
    from blocked_jobs b
    join edge on edge.child_id = b.job_id
    order by b.job_id
    for update of b
  ),
  closer as (
    update blocked_jobs b
    set remaining = child.remaining
    from child
    where b.job_id = child.job_id
      and child.remaining > 0
  ),
  released as (
    delete from blocked_jobs b
    using child
    where b.job_id = child.job_id
      and child.remaining = 0
    returning b.job_id, b.org_id
  ),
  entry as (
    select q.*
    from released
    join queue_entries q on q.org_id = released.org_id and q.job_id = released.job_id
  ),
  pending as (
    insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
    select job_id, org_id, 'pending', 0, run_at
    from entry
    where run_at > now()
    returning job_id, org_id, 'pending'::job_state as state
  ),
  ready as (
    insert into ready_jobs (job_id, org_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
    select job_id, org_id, stream_id, type, lane, 0, cpu_units, memory_mb, predicted_ms, start_by
    from entry
    where run_at is null or run_at <= now()
    returning job_id, org_id, 'ready'::job_state as state
  ),
  event as (
    insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
    select org_id, array_agg(job_id), array_agg(state), array_agg(0), array_agg(null::text), array_agg(now())
    from (select * from pending union all select * from ready) moved
    group by org_id
  )
  select count(*) into became_ready
  from ready;

  while cardinality(failed) > 0 loop
    with edge as (
      select child_id, min(parent_id::text) as parent_id
      from job_dependencies
      where parent_id = any (failed)
      group by child_id
    ),
    child as materialized (
      select b.job_id, b.org_id, edge.parent_id
      from blocked_jobs b
      join edge on edge.child_id = b.job_id
      where b.on_parent_failure = 'fail'
      order by b.job_id
      for update of b
    ),
    released as (
      delete from blocked_jobs b
      using child
      where b.job_id = child.job_id
    ),
    judged as (
      select
        child.job_id, child.org_id, j.stream_id,
        jsonb_build_object(
          'code', 'dependency_failed',
          'message', 'Job ' || child.parent_id || ', which this job depends on, has failed or was cancelled.'
        ) as error
      from child
      join jobs j on j.org_id = child.org_id and j.id = child.job_id
    ),
    finished as (
      insert into finished_jobs (org_id, job_id, stream_id, state, attempts, error, fingerprint)
      select org_id, job_id, stream_id, 'failed', 0, error, error_fingerprint(error)
      from judged
    ),
    event as (
      insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select
        org_id, array_agg(job_id), array_agg('failed'::job_state), array_agg(0), array_agg('dependency_failed'::text),
        array_agg(now())
      from judged
      group by org_id
    )
    select coalesce(array_agg(job_id), '{}') into failed
    from judged;
  end loop;
  return became_ready;
end
$$;

-- Who works, who leads, and what must not be claimed.

create table workers (
  worker_id text primary key,
  hostname text not null,
  status text not null,
  types text[] not null,
  slots integer not null,
  cpu_units real not null,
  memory_mb integer not null,
  -- As of the last heartbeat.
  running integer not null default 0,
  jobs_processed bigint not null default 0,
  started_at timestamptz not null default now(),
  last_seen timestamptz not null default now(),
  isolates boolean not null default false,
  lost_at timestamptz,
  constraint workers_status check (status in ('online', 'draining', 'offline'))
)
with (fillfactor = 50);
comment on table workers is 'The registry of worker pods. Each writes its own row every two seconds.';
comment on column workers.isolates is
  'The leader has asked it to finish its jobs and then run a suspect alone. The worker clears it.';
comment on column workers.lost_at is 'When the watchdog last took unfinished jobs away from it.';

-- Positions in the event log are valid only within one incarnation of the database.

create unlogged table incarnations (
  only_row boolean primary key default true,
  id uuid not null default gen_random_uuid(),
  constraint incarnations_only_row check (only_row)
);
comment on table incarnations is
  'One row, inserted by the first reader. Postgres truncates unlogged tables during crash recovery.';

create function database_incarnation() returns text
language plpgsql
as $$
-- Changes whenever transactions that others have seen may be lost and their ids reused: after crash recovery, even if the
-- postmaster survived (the table is empty); after a restart, failover or restore (different start time); and in a copy
-- (different database).
declare
  v_id uuid;
begin
  select id into v_id from incarnations;
  if not found then
    -- Waits for a concurrent insert. The next statement then sees its row.
    insert into incarnations default values on conflict do nothing;
    select id into strict v_id from incarnations;
  end if;
  return (
    select
      lpad(
        to_hex(hashtextextended(concat_ws(' ', v_id, extract(epoch from pg_postmaster_start_time()), oid), 0)), 16, '0'
      )
    from pg_database
    where datname = current_database()
  );
end
$$;

create table scheduler_leader (
  -- One row: the leader of the newest term, alive or not.
  only_row boolean primary key default true,
  worker_id text not null,
  term bigint not null,
  -- The server process that holds the leader's lock. A standby ends it if the leader has gone silent.
  backend_pid integer not null,
  elected_at timestamptz not null default now(),
  last_seen timestamptz not null default now(),
  incarnation text not null default database_incarnation(),
  constraint scheduler_leader_only_row check (only_row)
)
with (fillfactor = 50);
comment on column scheduler_leader.incarnation is
  'A term ends with the incarnation in which it began, because a crash may have undone what its leader has read.';

create table pauses (
  org_id uuid not null references orgs on delete cascade,
  -- Null pauses the whole queue of the organisation.
  type text,
  paused_by uuid,
  paused_at timestamptz not null default now(),
  constraint pauses_once unique nulls not distinct (org_id, type)
);
comment on table pauses is 'What claims pass over, and the leader parks.';

create table reservations (
  job_id uuid primary key,
  org_id uuid not null,
  worker_id text not null,
  cpu_units real not null,
  memory_mb integer not null,
  reserved_at timestamptz not null default now()
);
comment on table reservations is 'Capacity that a worker keeps free for a big job that smaller ones kept overtaking.';

create index reservations_by_worker on reservations (worker_id);
comment on index reservations_by_worker is 'Serves exchange-jobs.';

create function has_finished(in_org uuid, in_job uuid) returns boolean
language plpgsql
as $$
-- Being a function it looks with a fresh snapshot, after the caller has locked the job's lease: an end that was
-- committed between the caller's snapshot and its lock is seen.
begin
  return exists (select from finished_jobs f where f.org_id = in_org and f.job_id = in_job);
end
$$;

create view held_jobs with (security_invoker = true) as
select l.token, l.worker_id, l.expires_at, h.job_id, h.org_id, h.attempt, h.started_at
from leases l
cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats) as h (job_id, org_id, attempt, started_at)
where not exists (select from finished_jobs f where f.org_id = h.org_id and f.job_id = h.job_id);
comment on view held_jobs is
  'Jobs in the hands of a worker. Of those that it does not hold any more, a lease names only completed ones.';

create view job_overview with (security_invoker = true) as
select
  j.id,
  j.org_id,
  j.created_by,
  j.stream_id,
  j.type,
  j.name,
  j.payload,
  j.priority,
  j.tags,
  j.timeout_seconds,
  j.max_attempts,
  j.initial_delay_seconds,
  j.backoff_multiplier,
  j.cpu_units,
  j.memory_mb,
  j.run_at,
  j.deadline,
  j.on_parent_failure,
  j.predicted_ms,
  j.predicted_p90_ms,
  j.prediction_source,
  j.model_version,
  j.rank_base + j.rank_slope * ln(j.predicted_ms) as rank,
  j.created_at,
  case
    when f.job_id is not null then f.state
    when w.job_id is not null then w.state
    when r.job_id is not null then 'ready'::job_state
    when b.job_id is not null then 'blocked'::job_state
    when l.started_at is not null then 'running'::job_state
    when l.token is not null then 'ready'::job_state
  end as status,
  coalesce(
    f.attempts, w.attempts, r.attempts, case when l.started_at is null then l.attempt - 1 else l.attempt end, 0
  ) as attempts,
  case when f.job_id is not null then f.worker_id when w.job_id is null and r.job_id is null and l.started_at is not null then l.worker_id end as worker_id,
  case when f.job_id is not null then f.started_at when w.job_id is null and r.job_id is null then l.started_at end as started_at,
  f.finished_at,
  f.runtime_ms,
  f.result,
  coalesce(f.error, w.error) as error,
  p.progress,
  p.note as progress_note,
  j.predicted_p99_ms,
  j.promised_wait_ms,
  j.callback_url,
  j.triggered_by,
  j.traceparent
from jobs j
left join finished_jobs f on f.org_id = j.org_id and f.job_id = j.id
left join waiting_jobs w on w.job_id = j.id
left join ready_jobs r on r.org_id = j.org_id and r.job_id = j.id
left join blocked_jobs b on b.job_id = j.id
left join lateral (
  select o.token, o.worker_id, o.attempts[n] as attempt, o.started_ats[n] as started_at
  from leases o
  cross join lateral array_position(o.job_ids, j.id) as n
  where n is not null
    -- Not even looked for where the status is known without.
    and coalesce(f.job_id, w.job_id, r.job_id, b.job_id) is null
  order by o.token desc
  limit 1
) l on true
left join job_progress p on p.job_id = j.id;
comment on view job_overview is 'Each job with its status: the one place that says which table means what.';

-- What the queue learns from: every execution, what the predictor remembers of each stream, and the versions of the model.

create table org_type_estimates (
  org_id uuid not null references orgs on delete cascade,
  type text not null,
  runs bigint not null,
  mean_log double precision not null,
  deviation_log double precision not null,
  drift_log double precision not null default 0,
  -- The newest executions, packed by db/learning/stream-memory.ts.
  memory bytea,
  primary key (org_id, type)
);
comment on table org_type_estimates is
  'What a stream without executions starts from, before the estimate of its type: other jobs of its organisation. Kept by the leader.';

create table executions (
  -- The transaction and the order within it: what is read in this order, up to the oldest transaction that still runs, has no gaps.
  xid xid8 not null default pg_current_xact_id(),
  id bigint generated always as identity,
  org_id uuid not null,
  stream_id bigint not null,
  at timestamptz not null default now(),
  outcome text not null,
  job_ids uuid[] not null,
  ran_ms real[] not null,
  primary key (xid, id),
  constraint executions_outcome check (outcome in ('completed', 'failed', 'timed_out', 'cancelled'))
)
with (autovacuum_vacuum_scale_factor = 0.05);
comment on table executions is
  'Attempts that ended, of one stream and in one way, written by the statement that records them: what the learner reads.';

alter table executions
  alter column job_ids set storage external,
  alter column ran_ms set storage external;

create table stream_memories (
  stream_id bigint primary key references streams on delete cascade,
  org_id uuid not null,
  -- Packed by db/learning/stream-memory.ts: the newest executions, the errors of the experts, the state of the network.
  memory bytea not null,
  updated_at timestamptz not null default now()
)
with (fillfactor = 70);
comment on table stream_memories is 'What the predictor remembers of a stream beyond its running estimate. Kept by the learner.';

create table models (
  version integer primary key,
  -- The version that it was trained on from. Null: the first.
  parent integer,
  status text not null,
  -- Null once a version is too old to go back to.
  weights bytea,
  created_at timestamptz not null default now(),
  decided_at timestamptz,
  -- Executions it has been trained on, in all.
  trained_on bigint not null,
  -- Errors on held-out executions, beside those of the champion of that time, and the reason of the decision.
  evaluation jsonb not null default '{}',
  constraint models_status check (status in ('champion', 'retired', 'rejected', 'rolled_back'))
);
comment on table models is 'Versions of the network, with their evaluation and what was decided.';

create unique index models_champion on models (status) where status = 'champion';
comment on index models_champion is 'There is one champion. Serves get-prediction-inputs.';

create table learning_state (
  -- One row.
  only_row boolean primary key default true,
  -- Packed by db/learning/global-memory.ts: calibration, what experts are worth, drift.
  memory bytea,
  -- Up to where executions have been learned from.
  xid xid8 not null default '0',
  id bigint not null default 0,
  -- Executions learned from, and predictions of them by source.
  learned bigint not null default 0,
  by_source jsonb not null default '{}',
  -- Errors over the newest executions, for people: the points of the learning curve.
  accuracy jsonb not null default '{}',
  updated_at timestamptz not null default now(),
  constraint learning_state_only_row check (only_row)
)
with (fillfactor = 50);
insert into learning_state default values;

create table accuracy_points (
  at timestamptz primary key default now(),
  model_version integer,
  executions integer not null,
  -- Mean absolute error of ln(runtime) by predictor, share below the p90, mean absolute percentage error.
  errors jsonb not null,
  coverage double precision,
  mape double precision
);
comment on table accuracy_points is 'How good predictions were, hour by hour. Kept by the learner.';

create table prediction_faults (
  reason text primary key,
  faults bigint not null,
  last_at timestamptz not null default now()
);
comment on table prediction_faults is 'Why the functions predicted without the model: corrupt weights, no answer in time, an error.';

create function forget_streams(in_streams bigint[]) returns integer
language plpgsql
set lock_timeout = '50ms'
as $$
-- Deletes those of which no job is left. A submission looks its stream up and stores its job in one statement, and
-- refers to a stream that it saw even if that has been deleted meanwhile. So for a moment there must be none: whoever
-- inserts jobs holds a lock from before its snapshot until it commits, which this one waits for; those that come later see
-- what was deleted, and make the stream anew. Null: others did not let go of the table in time.
declare
  forgotten integer;
begin
  lock table jobs in share mode;
  with deleted as (
    delete from streams s
    where s.id = any (in_streams)
      and not exists (select from jobs j where j.stream_id = s.id)
    returning s.id
  )
  select count(*) into forgotten
  from deleted;
  return forgotten;
exception
  when lock_not_available then return null;
end
$$;

-- Quotas of organisations, and keys that make a submission idempotent.

create table quotas (
  -- Null: of all organisations without a row of their own.
  org_id uuid references orgs on delete cascade,
  -- Null: no limit.
  submissions_per_minute bigint,
  queued_jobs bigint,
  running_jobs bigint,
  payload_bytes_per_day bigint,
  constraint quotas_once unique nulls not distinct (org_id),
  constraint quotas_not_negative check (
    submissions_per_minute >= 0 and queued_jobs >= 0 and running_jobs >= 0 and payload_bytes_per_day >= 0
  )
);
comment on table quotas is
  'The first three count jobs; queued_jobs has those that run in it. All but running_jobs are enforced by the statement that submits, running_jobs by the one that claims.';

create index quotas_running on quotas (org_id) where running_jobs is not null;
comment on index quotas_running is 'Serves exchange-jobs: whether any organisation has a limit of running jobs.';

-- A runaway loop is stopped, an honest burst is not.
insert into quotas (org_id, submissions_per_minute, queued_jobs, running_jobs, payload_bytes_per_day)
values (null, 1000000, 2000000, null, 53687091200);

create function quotas_of(in_org uuid) returns setof quotas
language sql stable rows 1
-- Those of the organisation, else those of all that have none of their own.
begin atomic
  select q.*
  from quotas q
  where q.org_id = in_org
    or q.org_id is null
  order by q.org_id nulls last
  limit 1;
end;

create table quota_states (
  org_id uuid primary key references orgs on delete cascade,
  -- At least as many as are queued or running: counted, and since then only added to. Null: to be counted.
  queued_bound bigint,
  counted_at timestamptz,
  -- Two sliding logs: jobs by the second for the last 61, payload bytes by the hour for the last 25. `at` is the newest
  -- slot, in seconds or hours since 1970, and what is in it stands beside the ring; `used` is the sum of all. A slot that is
  -- partly in the window counts in full: never too much passes.
  minute_at bigint not null default 0,
  second_jobs bigint not null default 0,
  minute_used bigint not null default 0,
  day_at bigint not null default 0,
  hour_bytes bigint not null default 0,
  day_used bigint not null default 0,
  minute_slots bigint[] not null default array_fill(0::bigint, '{61}'),
  day_slots bigint[] not null default array_fill(0::bigint, '{25}')
)
-- Each submission updates it: in place (HOT), as long as the page has room.
with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
comment on table quota_states is
  'What an organisation has used. Its row lock makes submissions take turns, so that quotas and idempotency are exact.';

alter table quota_states
  alter column minute_slots set storage main,
  alter column day_slots set storage main;

create function add_quota_state() returns trigger
language plpgsql
as $$
begin
  insert into quota_states (org_id, queued_bound, counted_at) values (new.id, 0, now());
  return null;
end
$$;

create trigger orgs_quota_state after insert on orgs
for each row execute function add_quota_state();

create table idempotency_keys (
  org_id uuid not null references orgs on delete cascade,
  key text not null,
  -- SHA-256 of what was submitted under the key.
  body_hash bytea not null,
  job_ids uuid[] not null,
  created_at timestamptz not null,
  expires_at timestamptz not null default now() + interval '24 hours',
  primary key (org_id, key),
  constraint idempotency_keys_length check (char_length(key) between 1 and 255)
);
comment on table idempotency_keys is
  'What was submitted under a key: for 24 hours, or as long as whoever submits asks for. Then the key may be used anew.';

create index idempotency_keys_by_expiry on idempotency_keys (expires_at);
comment on index idempotency_keys_by_expiry is 'Serves delete-stale.';

create function count_unfinished(in_org uuid) returns bigint
language sql
return
  (select count(*) from ready_jobs where org_id = in_org)
  + (select count(*) from waiting_jobs where org_id = in_org and state = 'pending')
  + (select count(*) from waiting_jobs where org_id = in_org and state = 'retrying')
  + (select count(*) from blocked_jobs where org_id = in_org)
  + (select count(*) from held_jobs where org_id = in_org);

create function ring_used(slots bigint[], newest_at bigint, newest bigint, at bigint) returns bigint
language sql immutable parallel safe
-- What of a ring counts at a time, which is not before its newest slot.
return (
  select coalesce(sum(case slot when newest_at then newest else slots[slot % cardinality(slots) + 1] end), 0)
  from generate_series(at - cardinality(slots) + 1, newest_at) as slot
  where newest_at <= at
);

create function ring_moved(slots bigint[], newest_at bigint, newest bigint, at bigint) returns bigint[]
language sql immutable parallel safe
-- The ring at a later time: with what was newest in its place, and without what has left.
return array(
  select
    case
      when newest_at > at then 0
      when slot < newest_at then slots[slot % cardinality(slots) + 1]
      when slot = newest_at then newest
      else 0
    end
  from generate_series(at - cardinality(slots) + 1, at) as slot
  order by slot % cardinality(slots)
);

create function ring_frees_in(slots bigint[], at bigint, needed bigint) returns bigint
language sql immutable parallel safe
-- How many slots must pass until as much as is needed has left the ring. Null: there is not so much in it.
return (
  select slot + cardinality(slots) - at
  from (
    select slot, sum(slots[slot % cardinality(slots) + 1]) over (order by slot) as freed
    from generate_series(at - cardinality(slots) + 1, at) as slot
  ) log
  where freed >= needed
  order by slot
  limit 1
);

create function lock_quota_state(in_org uuid, added bigint) returns quota_states
language plpgsql
as $$
-- The state of an organisation, locked, as of now: rings moved on and whole, and the queue counted if its bound plus what is
-- to be added would pass the limit. A million jobs take a while to count: a flood of submissions above such a limit counts once a
-- second, and above a smaller one more often.
declare
  state quota_states;
  second bigint;
  hour bigint;
  queue_limit bigint;
begin
  select s.* into state from quota_states s where s.org_id = in_org for update;
  select q.queued_jobs into queue_limit from quotas_of(in_org) q;
  second := floor(extract(epoch from clock_timestamp()));
  -- Another clock may be a little ahead. One that was far ahead has left nothing that counts.
  if state.minute_at between second and second + 5 then second := state.minute_at; end if;
  hour := second / 3600;
  state.minute_slots := ring_moved(state.minute_slots, state.minute_at, state.second_jobs, second);
  state.minute_used := ring_used(state.minute_slots, second, state.minute_slots[second % 61 + 1], second);
  state.minute_at := second;
  state.day_slots := ring_moved(state.day_slots, state.day_at, state.hour_bytes, hour);
  state.day_used := ring_used(state.day_slots, hour, state.day_slots[hour % 25 + 1], hour);
  state.day_at := hour;
  if queue_limit is not null and (
    state.queued_bound is null
    or (
      state.queued_bound + added > queue_limit
      and state.counted_at < clock_timestamp() - least(interval '1 second', queue_limit * interval '1 microsecond')
    )
  ) then
    state.queued_bound := count_unfinished(in_org);
    state.counted_at := clock_timestamp();
    update quota_states s
    set queued_bound = state.queued_bound, counted_at = state.counted_at
    where s.org_id = in_org;
  end if;
  return state;
end
$$;

create function refusal_of(limits quotas, state quota_states, jobs bigint, bytes bigint) returns jsonb
language sql immutable parallel safe
-- Which quota so many jobs would pass, and when there will be room: when enough has left the window. What is more than the
-- quota itself, and what comes with others that take the rest, is told the whole window.
return case
  when state.minute_used + jobs > limits.submissions_per_minute then jsonb_build_object(
    'quota', 'submissions_per_minute', 'limit', limits.submissions_per_minute, 'used', state.minute_used, 'wanted', jobs,
    'retry_after', coalesce(
      ring_frees_in(state.minute_slots, state.minute_at, state.minute_used + jobs - limits.submissions_per_minute), 61
    )
  )
  when state.day_used + bytes > limits.payload_bytes_per_day then jsonb_build_object(
    'quota', 'payload_bytes_per_day', 'limit', limits.payload_bytes_per_day, 'used', state.day_used, 'wanted', bytes,
    'retry_after', coalesce(
      ring_frees_in(state.day_slots, state.day_at, state.day_used + bytes - limits.payload_bytes_per_day), 25
    ) * 3600 - state.minute_at % 3600
  )
  when state.queued_bound + jobs > limits.queued_jobs then jsonb_build_object(
    'quota', 'queued_jobs', 'limit', limits.queued_jobs, 'used', state.queued_bound, 'wanted', jobs, 'retry_after', 10
  )
end;

create function admit_submissions(
  orgs uuid[], kinds integer[], jobs bigint[], bytes bigint[], keys jsonb, acceptable integer[]
)
returns table (submission integer, refusal text, detail jsonb)
language plpgsql
as $$
-- Called by the statement that submits, before it stores anything. Answers the submissions that may not pass: those with
-- an idempotency key that was used before, and those over a quota. If there is one, nothing is charged for the others
-- either, and the caller stores nothing at all; it sends the others again without it. Being a function it looks with
-- fresh snapshots, after it has locked the organisation: of two submissions with one key the second sees the first.
--
-- The arrays have a value for each submission. Only those whose kind is acceptable are looked at: the others are refused
-- for other reasons. keys: [{submission, org_id, key, body_hash, job_ids, keep_seconds}], no key twice.
declare
  org record;
  limits quotas;
  state quota_states;
  used_keys jsonb;
  refused_some boolean := false;
  charged quota_states[] := '{}';
begin
  for org in
    select u.org_id, sum(u.jobs)::bigint as jobs, array_agg(u.n order by u.n) as members
    from unnest(orgs, kinds, jobs) with ordinality as u (org_id, kind, jobs, n)
    where u.kind = any (acceptable)
    group by u.org_id
    -- In one order, so that no two callers wait for each other.
    order by u.org_id
  loop
    state := lock_quota_state(org.org_id, org.jobs);
    select q.* into limits from quotas_of(org.org_id) q;
    used_keys := null;
    if keys is not null then
      select jsonb_object_agg(used.submission, used.keys) into used_keys
      from (
        select w.submission, jsonb_agg(
          jsonb_build_object('key', k.key, 'job_ids', k.job_ids, 'same', k.body_hash = decode(w.body_hash, 'hex'))
        ) as keys
        from jsonb_to_recordset(keys) as w (submission integer, org_id uuid, key text, body_hash text)
        join idempotency_keys k on k.org_id = w.org_id and k.key = w.key
        where w.org_id = org.org_id
          and k.expires_at > clock_timestamp()
        group by w.submission
      ) used;
    end if;
    foreach submission in array org.members loop
      detail := used_keys -> submission::text;
      refusal := case when detail is not null then 'used_key' else 'quota' end;
      detail := coalesce(detail, refusal_of(limits, state, jobs[submission], bytes[submission]));
      if detail is null then
        state.minute_used := state.minute_used + jobs[submission];
        state.minute_slots[state.minute_at % 61 + 1] := state.minute_slots[state.minute_at % 61 + 1] + jobs[submission];
        state.day_used := state.day_used + bytes[submission];
        state.day_slots[state.day_at % 25 + 1] := state.day_slots[state.day_at % 25 + 1] + bytes[submission];
        state.queued_bound := state.queued_bound + jobs[submission];
      else
        refused_some := true;
        return next;
      end if;
    end loop;
    charged := charged || state;
  end loop;
  if refused_some then return; end if;

  foreach state in array charged loop
    update quota_states s
    set
      queued_bound = state.queued_bound,
      minute_at = state.minute_at,
      second_jobs = state.minute_slots[state.minute_at % 61 + 1],
      minute_used = state.minute_used,
      minute_slots = state.minute_slots,
      day_at = state.day_at,
      hour_bytes = state.day_slots[state.day_at % 25 + 1],
      day_used = state.day_used,
      day_slots = state.day_slots
    where s.org_id = state.org_id;
  end loop;
  if keys is not null then
    insert into idempotency_keys as i (org_id, key, body_hash, job_ids, created_at, expires_at)
    select
      w.org_id, w.key, decode(w.body_hash, 'hex'), w.job_ids, clock_timestamp(),
      clock_timestamp() + coalesce(w.keep_seconds, 86400) * interval '1 second'
    from jsonb_to_recordset(keys)
      as w (submission integer, org_id uuid, key text, body_hash text, job_ids uuid[], keep_seconds integer)
    where kinds[w.submission] = any (acceptable)
    on conflict on constraint idempotency_keys_pkey do update
    set
      body_hash = excluded.body_hash, job_ids = excluded.job_ids, created_at = excluded.created_at,
      expires_at = excluded.expires_at;
  end if;
end
$$;

create function queue_room(in_org uuid, wanted bigint) returns bigint
language plpgsql
as $$
-- How many of so many more jobs may be queued: all, if there is no limit. They are taken for queued from then on, and nobody
-- else can queue any until the caller has committed. For retries, which add to the queue without being submissions.
declare
  state quota_states;
  queue_limit bigint;
  room bigint;
begin
  select q.queued_jobs into queue_limit from quotas_of(in_org) q;
  if queue_limit is null then return wanted; end if;
  state := lock_quota_state(in_org, wanted);
  room := least(wanted, greatest(0, queue_limit - state.queued_bound));
  update quota_states s set queued_bound = state.queued_bound + room where s.org_id = in_org;
  return room;
end
$$;

create function running_room(in_org uuid, ended uuid[]) returns bigint
language plpgsql
as $$
-- How many more jobs of an organisation may run: null if there is no limit. Called by the statement that claims. For one
-- claim at a time: another that comes meanwhile gets -1, and looks again. Being a function it looks with a fresh snapshot,
-- after it has the lock, and sees what the claim before has taken. What the same statement ends does not count any more.
declare
  allowed bigint;
begin
  select q.running_jobs into allowed from quotas_of(in_org) q;
  if allowed is null then return null; end if;
  if not pg_try_advisory_xact_lock(hashtextextended('running jobs of ' || in_org, 0)) then return -1; end if;
  return greatest(
    0, allowed - (select count(*) from held_jobs h where h.org_id = in_org and h.job_id <> all (ended))
  );
end
$$;

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

-- Under row-level security an index serves only conditions that cannot leak. Comparisons of arrays could: tags are looked up by
-- a function that checks the organisation itself, and so is the newest event of all, which is nobody's.

create function tagged_jobs(in_org uuid, in_tag text) returns setof uuid
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
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
set search_path = pg_catalog, public, pg_temp
-- Its plan lives as long as the session, and may be made while the table is small.
set enable_seqscan = off
begin atomic
  select at
  from job_event_groups
  order by id desc
  limit 1;
end;

-- The queue as a whole, for those who ask when a job will start. Behind the wall an organisation sees only its own jobs, but
-- all stand in one queue: these functions answer sums over it, and nothing of anybody's.

create unlogged table queue_snapshots (
  -- One row, or none after a crash.
  only_row boolean primary key default true,
  taken_at timestamptz not null default 'epoch',
  took_ms double precision not null default 0,
  -- Jobs that could be claimed, by lane: how many, and their predicted milliseconds.
  lanes smallint[] not null default '{}',
  lane_jobs integer[] not null default '{}',
  lane_ms double precision[] not null default '{}',
  -- Of each job that runs, the milliseconds that it will probably take yet.
  running_ms real[] not null default '{}',
  -- Jobs that a worker has claimed and not started: before all others.
  held_jobs integer not null default 0,
  held_ms double precision not null default 0,
  -- What keeps coming: how many slots the jobs of each lane have filled lately.
  flow_lanes smallint[] not null default '{}',
  flow_loads double precision[] not null default '{}',
  -- How many times as long as predicted all of that took together.
  stretch double precision not null default 1,
  constraint queue_snapshots_only_row check (only_row)
)
with (fillfactor = 10);
comment on table queue_snapshots is
  'The queue in sums, made by whoever asks and finds it too old. Not logged: it is worth a few seconds.';

create function queue_snapshot(at_leisure boolean default false) returns queue_snapshots
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
set max_parallel_workers_per_gather = 0
as $$
-- Made anew at most once a second, and so seldom that it takes no more than a twentieth of the time: with a million ready
-- jobs it takes 0.3 s. One at a time: who comes meanwhile makes do with the one before. So does who is in a hurry, if it
-- takes long, for up to a minute: others come at leisure.
declare
  known queue_snapshots;
  locked queue_snapshots;
  began constant timestamptz := clock_timestamp();
begin
  select * into known from queue_snapshots;
  if
    began - known.taken_at < greatest(interval '1 second', 20 * known.took_ms * interval '1 millisecond')
    or (not at_leisure and known.took_ms > 20 and began - known.taken_at < interval '1 minute')
  then
    return known;
  end if;
  if known.only_row is null then
    insert into queue_snapshots default values on conflict do nothing;
  end if;
  select * into locked from queue_snapshots for update skip locked;
  if locked.only_row is null then
    return known;
  elsif locked.taken_at > known.taken_at then
    return locked;
  end if;
  select coalesce(array_agg(lane), '{}'), coalesce(array_agg(jobs), '{}'), coalesce(array_agg(ms), '{}')
  into locked.lanes, locked.lane_jobs, locked.lane_ms
  from (
    select lane, count(*)::integer as jobs, sum(predicted_ms)::double precision as ms
    from ready_jobs
    where lane < 5000
    group by lane
    order by lane
  ) by_lane;
  select
    coalesce(array_agg(remaining_ms::real) filter (where started), '{}'),
    count(*) filter (where not started),
    coalesce(sum(remaining_ms) filter (where not started), 0)
  into locked.running_ms, locked.held_jobs, locked.held_ms
  from (
    select
      h.started_at is not null as started,
      -- What has run beyond its median will run on, the longer the wider its spread.
      greatest(
        j.predicted_ms - coalesce(ran.ms, 0), ran.ms * (sqrt(j.predicted_p90_ms / j.predicted_ms) - 1), 1
      ) as remaining_ms
    from leases l
    cross join lateral unnest(l.job_ids, l.org_ids, l.started_ats) as h (job_id, org_id, started_at)
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    cross join lateral (select extract(epoch from began - h.started_at)::double precision * 1000 as ms) ran
    where l.expires_at > began
      and not exists (select from finished_jobs f where f.org_id = h.org_id and f.job_id = h.job_id)
    limit 5000
  ) in_hand;
  -- By the newest rows, which stand at the right of the index, up to a minute. A row is of one stream: its first job tells the
  -- lane of all, and its first few how long they ran.
  select
    coalesce(array_agg(lane), '{}'), coalesce(array_agg(load), '{}'),
    -- Two seconds say nothing. Beyond three times it is not the sums that are wrong.
    least(3, greatest(1, (coalesce(sum(ran_ms), 0) + 2000) / (coalesce(sum(predicted_ms), 0) + 2000)))
  into locked.flow_lanes, locked.flow_loads, locked.stretch
  from (
    select
      lane_of(j.rank_base + j.rank_slope * ln(j.predicted_ms)) as lane,
      sum(e.ran_ms) / max(case when e.rows < 100 then 60000 else greatest(1000, e.span_ms) end) as load,
      sum(e.ran_ms) as ran_ms,
      sum(e.jobs * j.predicted_ms) as predicted_ms
    from (
      select
        newest.org_id, newest.job_id, newest.jobs, newest.ran_ms, count(*) over () as rows,
        extract(epoch from began - min(newest.at) over ())::double precision * 1000 as span_ms
      from (
        select
          org_id, job_ids[1] as job_id, at, cardinality(ran_ms) as jobs,
          cardinality(ran_ms) * (select avg(ms) from unnest(ran_ms[1:8]) ms) as ran_ms
        from executions
        order by xid desc, id desc
        limit 100
      ) newest
      where newest.at > began - interval '1 minute'
    ) e
    join jobs j on j.org_id = e.org_id and j.id = e.job_id
    group by 1
  ) by_lane;
  update queue_snapshots
  set
    taken_at = began,
    took_ms = extract(epoch from clock_timestamp() - began) * 1000,
    lanes = locked.lanes,
    lane_jobs = locked.lane_jobs,
    lane_ms = locked.lane_ms,
    running_ms = locked.running_ms,
    held_jobs = locked.held_jobs,
    held_ms = locked.held_ms,
    flow_lanes = locked.flow_lanes,
    flow_loads = locked.flow_loads,
    stretch = locked.stretch
  returning * into known;
  return known;
end
$$;

create function queue_ahead(in_org uuid, in_job uuid, most integer)
returns table (lane smallint, jobs integer, predicted_ms double precision, counted boolean, lane_position double precision)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
set enable_seqscan = off
-- Jobs that would be claimed before this one by their lane, `counted` if they are fewer than `most`. Else its place within
-- its lane, from 0 to 1, tells about how many: keys are given one after the other.
begin atomic
  select
    mine.lane, count(a.predicted_ms)::integer, coalesce(sum(a.predicted_ms), 0)::double precision,
    count(a.predicted_ms) < most,
    case
      when count(a.predicted_ms) < most then null
      else coalesce(
        (mine.key - (select min(r.key) from ready_jobs r where r.lane = mine.lane))::double precision
          / nullif((select max(r.key) - min(r.key) from ready_jobs r where r.lane = mine.lane), 0),
        0
      )
    end
  from ready_jobs mine
  left join lateral (
    select r.predicted_ms
    from ready_jobs r
    where (r.lane, r.key) < (mine.lane, mine.key)
    order by r.lane, r.key
    limit most
  ) a on true
  where mine.org_id = in_org
    and mine.job_id = in_job
    and (sees_all_orgs() or in_org = any (scope_orgs()))
  group by mine.lane, mine.key;
end;

create function count_slow_jobs() returns bigint
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
-- Running beyond their 99th percentile, of all organisations.
begin atomic
  select count(*)
  from leases l
  cross join lateral unnest(l.job_ids, l.org_ids, l.started_ats) as h (job_id, org_id, started_at)
  join jobs j on j.org_id = h.org_id and j.id = h.job_id
  where l.expires_at > now()
    and j.predicted_p99_ms is not null
    and h.started_at < now() - greatest(j.predicted_p99_ms, 1000) * interval '1 millisecond'
    and not exists (select from finished_jobs f where f.org_id = h.org_id and f.job_id = h.job_id);
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
create policy of_creator on orgs for select to smartqueue_functions using (created_by = (select scope_user()));
comment on policy of_creator on orgs is
  'An organisation that a user created and left still counts towards their limit.';

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
  job_types, type_estimates, workers, scheduler_leader, orgs, memberships, users, refresh_families,
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
grant update (org_id, revoked_at, expires_at, last_used_at, ip, user_agent) on refresh_families to smartqueue_functions;
grant update (replaced_at) on refresh_tokens to smartqueue_functions;
grant update (last_used_at, revoked_at) on api_keys to smartqueue_functions;
grant update (accepted_at, accepted_by, revoked_at) on invitations to smartqueue_functions;
grant update (name) on streams to smartqueue_functions;
grant delete on
  memberships, sign_in_attempts, waiting_jobs, ready_jobs, finished_jobs, blocked_jobs, pauses, reservations
to smartqueue_functions;
grant usage on sequence ready_keys to smartqueue_functions;

grant select on
  orgs, quotas, pauses, jobs, streams, queue_entries, held_jobs, job_overview, job_events
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

-- The same for what the queue learns from.

do $$
declare
  walled text;
begin
  foreach walled in array '{org_type_estimates, executions, stream_memories}'::text[] loop
    execute format(
      'create policy of_org on %I to smartqueue_functions
       using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]))', walled
    );
    execute format('create policy of_all_orgs on %I to smartqueue_workers using (true)', walled);
    execute format('alter table %I enable row level security', walled);
    execute format('alter table %I force row level security', walled);
    execute format('create policy of_owner on %I to %I using (true)', walled, current_user);
  end loop;
end
$$;

grant select on
  org_type_estimates, executions, stream_memories, models, learning_state, accuracy_points, prediction_faults
to smartqueue_functions;
grant insert, update on prediction_faults to smartqueue_functions;
-- A cancellation of a running job is an execution, too.
grant insert on executions to smartqueue_functions;
grant select, insert, update, delete on
  org_type_estimates, executions, stream_memories, models, learning_state, accuracy_points, prediction_faults
to smartqueue_workers;
-- Streams that nothing is left of are forgotten.
grant delete on streams to smartqueue_workers;

-- Webhooks that come in.

create table webhook_sources (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  name text not null,
  scheme text not null,
  -- What the scheme leaves open: which header has the signature, and the like.
  verification jsonb not null default '{}',
  secret text not null,
  -- Good beside the other until then, so that the sender can be changed over.
  previous_secret text,
  previous_expires_at timestamptz,
  filter jsonb,
  template jsonb not null,
  enabled boolean not null default true,
  -- Grows with each change: whoever goes by what it remembers finds out in the statement that stores.
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
comment on table webhook_sources is 'Who may send webhooks, how they sign, and which job an event becomes.';

create table webhook_deliveries (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  -- Outlives the source, which is deleted at once however long its journal is.
  source_id uuid not null,
  received_at timestamptz not null default now(),
  status text not null,
  reason text,
  event_id text,
  event_type text,
  -- The job that it has made, or of which it is a duplicate.
  job_id uuid,
  replay_of uuid,
  -- Both without what looks secret. A body that is not JSON is a JSON string.
  headers jsonb not null,
  body jsonb,
  primary key (org_id, id),
  constraint webhook_deliveries_status check (status in ('accepted', 'duplicate', 'filtered', 'rejected', 'quarantined')),
  constraint webhook_deliveries_job check (status not in ('accepted', 'duplicate') or job_id is not null)
);
comment on table webhook_deliveries is 'The journal of what has come in, and what became of it.';

create index webhook_deliveries_by_source on webhook_deliveries (source_id, id);
comment on index webhook_deliveries_by_source is 'Serves list-deliveries.';
create index webhook_deliveries_by_status on webhook_deliveries (source_id, status, id);
comment on index webhook_deliveries_by_status is 'Serves list-deliveries by status, and the limit of rejected ones.';
create index webhook_deliveries_by_time on webhook_deliveries (received_at);
comment on index webhook_deliveries_by_time is 'Serves delete-expired-deliveries.';

-- Schedules.

create table schedules (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  name text not null,
  cron text not null,
  timezone text not null,
  catch_up text not null,
  -- The job of each tick, with all that was left out when it was sent.
  job jsonb not null,
  paused_at timestamptz,
  -- The next tick. Null: it is paused, or there is none.
  next_at timestamptz,
  last_tick_at timestamptz,
  skipped_ticks bigint not null default 0,
  version bigint not null default 1,
  created_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  constraint schedules_name check (char_length(name) between 1 and 200),
  constraint schedules_catch_up check (catch_up in ('skip', 'one', 'all')),
  constraint schedules_paused check (paused_at is null or next_at is null)
);
comment on table schedules is 'What is to be submitted again and again, and when next.';

create index schedules_by_next on schedules (next_at) where next_at is not null;
comment on index schedules_by_next is 'Serves find-due-schedules.';

create table schedule_ticks (
  schedule_id uuid not null,
  tick_at timestamptz not null,
  org_id uuid not null,
  job_id uuid,
  outcome text not null,
  reason text,
  fired_at timestamptz not null default now(),
  -- A tick is fired once, whoever tries to.
  primary key (schedule_id, tick_at),
  foreign key (org_id, schedule_id) references schedules (org_id, id) on delete cascade,
  constraint schedule_ticks_outcome check (outcome in ('fired', 'refused', 'skipped'))
);
comment on table schedule_ticks is 'Ticks that have come, and what became of each.';

create index schedule_ticks_by_time on schedule_ticks (fired_at);
comment on index schedule_ticks_by_time is 'Serves delete-expired-ticks.';

-- Callbacks: those outside who want to know what became of jobs.

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

create function new_signing_secret() returns text
language sql volatile
-- As the Standard Webhooks specification writes it: 32 bytes, 244 bits of them random.
return 'whsec_' || encode(decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'), 'base64');

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

-- The walls around them.

create function scope_source() returns uuid
language sql stable parallel safe
-- The webhook source whose address is called: its row may be seen.
return nullif(current_setting('smartqueue.source', true), '')::uuid;

create function enter_with_source(source uuid, known_version bigint, ip text, request text) returns text
language plpgsql
as $$
-- Whoever calls the address of a source may see that source. Its organisation is open to those who have verified a
-- delivery, and name the version that they have done so with: one that has changed since is 'closed', as is one that is
-- gone or disabled.
declare
  owner uuid;
begin
  perform set_scope(ip => enter_with_source.ip, request => enter_with_source.request);
  perform set_config('smartqueue.source', source::text, true);
  select s.org_id into owner
  from webhook_sources s
  where s.id = source
    and s.enabled
    and (known_version is null or s.version = known_version);
  if owner is null then return 'closed'; end if;
  if known_version is not null then perform set_config('smartqueue.orgs', array[owner]::text, true); end if;
  return 'entered';
end
$$;

create function callbacks_of_job(in_org uuid, told_job uuid) returns setof uuid
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
-- Like tagged_jobs: under row-level security no index serves what looks into JSON.
begin atomic
  select id
  from jobs
  where org_id = in_org
    and triggered_by ->> 'job_id' = told_job::text
    and triggered_by ->> 'kind' = 'callback'
    and (sees_all_orgs() or in_org = any (scope_orgs()) or pg_has_role(session_user, 'smartqueue_workers', 'usage'));
end;

create policy of_org on webhook_sources to smartqueue_functions
  using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]));
create policy of_address on webhook_sources for select to smartqueue_functions using (id = (select scope_source()));

do $$
declare
  walled text;
begin
  foreach walled in array '{
    webhook_deliveries, schedules, schedule_ticks, callback_endpoints, callback_secrets
  }'::text[] loop
    execute format(
      'create policy of_org on %I to smartqueue_functions
       using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]))', walled
    );
    execute format('create policy of_all_orgs on %I to smartqueue_workers using (true)', walled);
  end loop;
  foreach walled in array '{
    webhook_sources, webhook_deliveries, schedules, schedule_ticks, callback_endpoints, callback_secrets
  }'::text[] loop
    execute format('alter table %I enable row level security', walled);
    execute format('alter table %I force row level security', walled);
    execute format('create policy of_owner on %I to %I using (true)', walled, current_user);
  end loop;
end
$$;

grant select, insert, update, delete on
  webhook_sources, schedules, callback_endpoints, callback_secrets
to smartqueue_functions;
grant select, insert on webhook_deliveries, schedule_ticks to smartqueue_functions;

-- The leader fires schedules and makes callbacks; what is old goes.
grant insert on jobs, streams to smartqueue_workers;
grant select, update on quota_states to smartqueue_workers;
grant select, update on schedules to smartqueue_workers;
grant select, insert, update, delete on schedule_ticks to smartqueue_workers;
grant select, insert, update, delete on callback_endpoints to smartqueue_workers;
grant select, insert on callback_secrets to smartqueue_workers;
grant select, update on callback_cursor to smartqueue_workers;
grant select (org_id, id, received_at), delete on webhook_deliveries to smartqueue_workers;

create table stream_floor (
  only_row boolean primary key default true,
  xid xid8 not null,
  constraint stream_floor_only_row check (only_row)
);
comment on table stream_floor is
  'The newest transaction of which events have expired: whoever stopped reading before it has missed some.';
insert into stream_floor (xid) values ('0');
grant select on stream_floor to smartqueue_functions;
grant select, update on stream_floor to smartqueue_workers;
grant select, insert on incarnations to smartqueue_functions, smartqueue_workers;
grant select (foreign_id) on callback_cursor to smartqueue_functions;

create function enter_stream(in_org uuid, users uuid[], sessions uuid[], keys uuid[]) returns text[]
language plpgsql
as $$
-- Opens the organisation to those who follow its stream, if there is one of them who may, and tells of each: 'entered';
-- 'ended', if it is the session or the key that is worth nothing any more; 'removed' who is no member.
declare
  answers text[] := '{}';
  answer text;
begin
  for i in 1 .. cardinality(users) loop
    answer := enter(array[in_org], array[users[i]], array[sessions[i]], array[keys[i]], 'user');
    if answer <> 'entered' then
      perform set_scope(in_user => users[i]);
      perform
      from users u
      left join memberships m on m.org_id = in_org and m.user_id = u.id
      where u.id = enter_stream.users[i]
        and (m.user_id is not null or u.is_admin and keys[i] is null);
      answer := case when found then 'ended' else 'removed' end;
    end if;
    answers := answers || answer;
  end loop;
  perform set_scope(orgs => case when 'entered' = any (answers) then array[in_org] else '{}' end);
  return answers;
end
$$;

create function events_after(in_org uuid, after_xid xid8, after_id bigint, until_xid xid8, most integer)
returns setof job_event_groups
language sql stable
-- In the order of the index, whatever the statistics say: with any other plan all rows after a place are read to find the
-- first of them.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
begin atomic
  select *
  from job_event_groups
  where org_id = in_org
    and (xid, id) >= (after_xid, after_id)
    and xid < until_xid
    -- Those that came with a dump have the numbers of another server's transactions.
    and id > (select foreign_id from callback_cursor)
  order by xid, id
  limit most;
end;

-- Analytics: what became of an organisation's jobs, in sums: analytics read these, and never the jobs themselves. The leader keeps them,
-- following the events in the order of their commits, so that nothing is added to the statements that move jobs.

create table analytics_cursors (
  reader text primary key,
  -- Of a row of job_event_groups or of executions: everything up to it has been counted.
  xid xid8 not null default '0',
  id bigint not null default 0,
  -- Rows up to this one came with a dump from another server, whose transactions had other numbers.
  foreign_id bigint not null default 0,
  constraint analytics_cursors_reader check (reader in ('rollups', 'gains'))
)
with (fillfactor = 50);
comment on table analytics_cursors is
  'How far the rollups have come. Each moves in the statement that adds to them, so that every event counts once.';
insert into analytics_cursors (reader) values ('rollups'), ('gains');

create table job_rollups (
  org_id uuid not null,
  -- Seconds: a minute or an hour. `at` is its beginning.
  span smallint not null,
  at timestamptz not null,
  submitted bigint not null default 0,
  -- Of those, the ones to be run later.
  delayed bigint not null default 0,
  completed bigint not null default 0,
  failed bigint not null default 0,
  cancelled bigint not null default 0,
  -- Of completed jobs: of how many it is known, and how long they ran.
  ran bigint not null default 0,
  runtime_ms double precision not null default 0,
  -- Of jobs that ended with their first attempt: how many, how long they had waited, and how many by log_bucket of that.
  waited bigint not null default 0,
  wait_ms double precision not null default 0,
  waits integer[] not null default '{}',
  primary key (org_id, span, at),
  constraint job_rollups_span check (span in (60, 3600))
)
with (fillfactor = 50);
comment on table job_rollups is 'What came and what ended, by the minute for a day, by the hour for as long as jobs are kept.';

create index job_rollups_by_time on job_rollups (span, at);
comment on index job_rollups_by_time is 'Serves delete-expired-rollups.';

create table prediction_rollups (
  org_id uuid not null,
  -- The empty type stands for all of them.
  type text not null,
  -- The beginning of the hour in which the jobs completed.
  at timestamptz not null,
  jobs bigint not null,
  -- Sums of ln(runtime / p50), of its absolute value, and of that by the running mean of the stream alone.
  log_error double precision not null,
  abs_log_error double precision not null,
  baseline_abs_log_error double precision not null,
  within_p50 bigint not null,
  within_p90 bigint not null,
  -- Jobs by log_bucket of |p50 − runtime| / runtime, in thousandths.
  apes integer[] not null,
  primary key (org_id, type, at)
)
with (fillfactor = 50);
comment on table prediction_rollups is 'How far predictions lay from the runtimes of completed jobs.';

create index prediction_rollups_by_time on prediction_rollups (at);
comment on index prediction_rollups_by_time is 'Serves delete-expired-rollups.';

create table depth_rollups (
  org_id uuid not null,
  span smallint not null,
  at timestamptz not null,
  -- How often the queue was looked at, and the sums of what was seen.
  samples integer not null,
  pending bigint not null,
  blocked bigint not null,
  ready bigint not null,
  running bigint not null,
  retrying bigint not null,
  predicted_seconds double precision not null,
  primary key (org_id, span, at),
  constraint depth_rollups_span check (span in (60, 3600))
)
with (fillfactor = 50);
comment on table depth_rollups is 'How deep the queue of an organisation was. There is no row for a time in which it had no jobs.';

create index depth_rollups_by_time on depth_rollups (span, at);
comment on index depth_rollups_by_time is 'Serves sample-depths and delete-expired-rollups.';

create table depth_samples (
  org_id uuid primary key,
  at timestamptz not null,
  pending bigint not null,
  blocked bigint not null,
  ready bigint not null,
  running bigint not null,
  retrying bigint not null,
  predicted_seconds double precision not null
)
with (fillfactor = 50);
comment on table depth_samples is 'The newest look at each queue: what a deep one is told by, which takes too long to count for each who asks.';

create table slot_changes (
  at timestamptz primary key default now(),
  slots integer not null
);
comment on table slot_changes is 'How many slots the live workers had from then on.';

create table scheduling_gains (
  org_id uuid not null,
  -- The beginning of the five minutes in which the jobs ended.
  at timestamptz not null,
  jobs bigint not null,
  -- How long they waited, and would have in the order in which they became ready.
  wait_ms double precision not null,
  fifo_wait_ms double precision not null,
  max_wait_ms double precision not null,
  fifo_max_wait_ms double precision not null,
  primary key (org_id, at)
)
with (fillfactor = 50);
comment on table scheduling_gains is 'What the order of the queue was worth. Kept by the leader, by simulation.';

create index scheduling_gains_by_time on scheduling_gains (at);
comment on index scheduling_gains_by_time is 'Serves delete-expired-rollups.';

create table leader_terms (
  term bigint primary key,
  worker_id text not null,
  elected_at timestamptz not null default now()
);
comment on table leader_terms is 'Who led when. scheduler_leader has only the newest.';

create function log_bucket(value double precision) returns integer
language sql immutable parallel safe
-- Quarter powers of two: 1 is all below 1, n begins at 2^((n - 2) / 4). The last begins at 2^30.
return case when value < 1 then 1 else least(2 + floor(4 * ln(value) / ln(2::double precision))::integer, 122) end;

create function histogram_of(buckets integer[], counts bigint[]) returns integer[]
language sql immutable parallel safe
-- From the buckets that have something in them to one count for each.
return array(
  select coalesce(counts[array_position(buckets, bucket)], 0)::integer
  from generate_series(1, (select max(one) from unnest(buckets) one)) bucket
  order by bucket
);

create function add_counts(a integer[], b integer[]) returns integer[]
language sql immutable parallel safe
return array(
  select coalesce(one, 0) + coalesce(other, 0)
  from unnest(a, b) with ordinality as n (one, other, bucket)
  order by bucket
);

create function remaining_ms(started_at timestamptz, predicted_ms double precision, predicted_p90_ms double precision)
returns double precision
language sql stable
-- What has run beyond its median will run on, the longer the wider its spread. Null if it has not started: all of it.
return greatest(
  predicted_ms - coalesce(extract(epoch from now() - started_at)::double precision * 1000, 0),
  extract(epoch from now() - started_at)::double precision * 1000 * (sqrt(predicted_p90_ms / predicted_ms) - 1), 1
);

-- For those who ask how deep a queue is and will be. With their own rights: of another organisation they see an empty one.

create function depth_of_queue(in_org uuid) returns jsonb
language sql stable
-- Up to five thousand of each kind are counted, in some milliseconds; of a deeper queue the leader's newest look tells.
-- The oldest is looked for among those that were submitted first.
begin atomic
  select jsonb_build_object(
    'pending', case when w.pending < 5000 then w.pending else greatest(w.pending, n.pending) end,
    'blocked', case when w.blocked < 5000 then w.blocked else greatest(w.blocked, n.blocked) end,
    'ready', h.held + case when r.jobs < 5000 then r.jobs else greatest(r.jobs, n.ready) end,
    'running', h.running,
    'retrying', case when w.retrying < 5000 then w.retrying else greatest(w.retrying, n.retrying) end,
    'predicted_ms', h.ms + case when r.jobs < 5000 then r.ms else greatest(r.ms, n.predicted_seconds * 1000 - h.ms) end,
    'oldest_ready_seconds', extract(epoch from now() - r.oldest)
  )
  from (
    select count(*) as jobs, coalesce(sum(predicted_ms), 0)::double precision as ms, min(ready_at) as oldest
    from (
      select predicted_ms, ready_at
      from ready_jobs
      where org_id = in_org
      order by job_id
      limit 5000
    ) first
  ) r
  cross join (
    select
      count(h.started_at) as running, count(*) - count(h.started_at) as held,
      coalesce(sum(remaining_ms(h.started_at, j.predicted_ms, j.predicted_p90_ms)), 0) as ms
    from held_jobs h
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    where h.org_id = in_org
  ) h
  cross join (
    select
      (
        select count(*)
        from (select from waiting_jobs where org_id = in_org and state = 'pending' limit 5000) counted
      ) as pending,
      (
        select count(*)
        from (select from waiting_jobs where org_id = in_org and state = 'retrying' limit 5000) counted
      ) as retrying,
      (select count(*) from (select from blocked_jobs where org_id = in_org limit 5000) counted) as blocked
  ) w
  left join depth_samples n on n.org_id = in_org;
end;

create function load_ahead(in_org uuid) returns jsonb
language sql stable
-- What the forecast of a depth is made from. Jobs that schedules have submitted are taken out of what came in the last hour,
-- minute by minute, as the ticks ahead are known; so are jobs that were to be run later, which wait for their time.
begin atomic
  select jsonb_build_object(
    'slots', (
      select coalesce(sum(slots), 0)
      from workers
      where status = 'online'
        and last_seen > now() - interval '10 seconds'
    ),
    'paused', exists (select from pauses where org_id = in_org and type is null),
    'minutes', (
      select jsonb_agg(greatest(0, coalesce(r.submitted - r.delayed, 0) - coalesce(t.fired, 0)) order by m.at)
      from generate_series(
        date_trunc('minute', now()) - interval '60 minutes', date_trunc('minute', now()) - interval '1 minute',
        interval '1 minute'
      ) as m (at)
      left join job_rollups r on r.org_id = in_org and r.span = 60 and r.at = m.at
      left join (
        select date_trunc('minute', t.fired_at) as at, count(*) as fired
        from schedules s
        join schedule_ticks t
          on t.schedule_id = s.id
          and t.tick_at > now() - interval '62 minutes'
          and t.outcome = 'fired'
        where s.org_id = in_org
        group by 1
      ) t on t.at = m.at
    ),
    -- Of the present hour of the day, a day and a week ago, and of the next.
    'same_hour', (
      select avg(submitted - delayed)
      from job_rollups
      where org_id = in_org
        and span = 3600
        and at in (
          date_bin('1 hour', now(), 'epoch') - interval '24 hours', date_bin('1 hour', now(), 'epoch') - interval '168 hours'
        )
    ),
    'next_hour', (
      select avg(submitted - delayed)
      from job_rollups
      where org_id = in_org
        and span = 3600
        and at in (
          date_bin('1 hour', now(), 'epoch') - interval '23 hours', date_bin('1 hour', now(), 'epoch') - interval '167 hours'
        )
    ),
    'mean_ms', (
      select sum(runtime_ms) / nullif(sum(ran), 0)
      from job_rollups
      where org_id = in_org
        and span = 3600
        and at > now() - interval '24 hours'
    ),
    'waking', (
      select coalesce(
        jsonb_agg(
          jsonb_build_object('in_seconds', extract(epoch from w.wake_at - now()), 'predicted_ms', j.predicted_ms)
        ),
        '[]'
      )
      from (
        select job_id, wake_at
        from (
          (select job_id, wake_at from waiting_jobs where org_id = in_org and state = 'pending' limit 10000)
          union all
          (select job_id, wake_at from waiting_jobs where org_id = in_org and state = 'retrying' limit 10000)
        ) one
        where wake_at < now() + interval '1 hour'
        limit 2000
      ) w
      join jobs j on j.org_id = in_org and j.id = w.job_id
    ),
    'schedules', (
      select coalesce(
        jsonb_agg(jsonb_build_object('cron', s.cron, 'timezone', s.timezone, 'predicted_ms', exp(e.mean_log))), '[]'
      )
      from (
        select cron, timezone, job
        from schedules
        where org_id = in_org
          and next_at < now() + interval '1 hour'
        order by next_at
        limit 50
      ) s
      left join streams e on e.org_id = in_org and e.type = s.job ->> 'type' and e.name = s.job ->> 'name'
    )
  );
end;

do $$
declare
  walled text;
begin
  foreach walled in array '{
    job_rollups, prediction_rollups, depth_rollups, depth_samples, scheduling_gains
  }'::text[] loop
    execute format(
      'create policy of_org on %I to smartqueue_functions
       using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]))', walled
    );
    execute format('create policy of_all_orgs on %I to smartqueue_workers using (true)', walled);
    execute format('alter table %I enable row level security', walled);
    execute format('alter table %I force row level security', walled);
    execute format('create policy of_owner on %I to %I using (true)', walled, current_user);
  end loop;
end
$$;

grant select on
  job_rollups, prediction_rollups, depth_rollups, depth_samples, scheduling_gains, slot_changes, leader_terms
to smartqueue_functions;
grant select, insert, update, delete on
  job_rollups, prediction_rollups, depth_rollups, depth_samples, scheduling_gains, slot_changes, leader_terms
to smartqueue_workers;
grant select, update on analytics_cursors to smartqueue_workers;

-- What workers are scaled by: predicted work that is queued, that keeps coming, and that is expected.

create table load_minutes (
  -- The beginning of the minute.
  at timestamptz primary key,
  jobs bigint not null,
  -- What they were predicted to take.
  work_ms double precision not null
)
with (fillfactor = 50);
comment on table load_minutes is
  'Work that came unannounced, of all organisations: without jobs that were to be run later, and without those of schedules.
Kept by the leader.';

create table load_forecasts (
  -- One row, or none before the first.
  only_row boolean primary key default true,
  made_at timestamptz not null default now(),
  -- The minutes ahead: when the first of them begins, and the work that will come in each.
  from_at timestamptz not null,
  p50_ms double precision[] not null,
  p90_ms double precision[] not null,
  -- Why it must not scale anything: too little history, or the simple forecasts are as good. Null: it may.
  unusable_because text,
  -- Errors on minutes that it had not seen, beside those of the simple forecasts.
  evaluation jsonb not null default '{}',
  -- What it is made with, and when that was trained.
  weights bytea,
  trained_at timestamptz,
  constraint load_forecasts_only_row check (only_row),
  constraint load_forecasts_minutes check (cardinality(p50_ms) = cardinality(p90_ms))
)
with (fillfactor = 50);
comment on table load_forecasts is 'How much work will come in the next minutes. Kept by the leader.';

create table autoscale_snapshots (
  -- One row, or none before the first.
  only_row boolean primary key default true,
  taken_at timestamptz not null default now(),
  term bigint not null,
  -- Predicted work: of jobs that could be claimed, and what is left of those that run. Of each no more than the drain goal.
  queued_seconds double precision not null,
  running_seconds double precision not null,
  -- Work that comes in a second.
  arriving_per_second double precision not null,
  -- Of jobs that are to be run within the lead time, and of ticks of schedules.
  scheduled_seconds double precision not null,
  -- Expected within a drain goal, by what is forecast for the lead time. Null: there is no forecast that may be used, and why.
  forecast_p50_seconds double precision,
  forecast_p90_seconds double precision,
  no_forecast_because text,
  workers integer not null,
  -- The settings of the leader.
  slots_per_worker integer not null,
  drain_goal_seconds double precision not null,
  lead_seconds double precision not null,
  min_workers integer not null,
  max_workers integer not null,
  constraint autoscale_snapshots_only_row check (only_row),
  constraint autoscale_snapshots_range check (min_workers <= max_workers)
)
with (fillfactor = 50);
comment on table autoscale_snapshots is
  'What the number of workers is decided by (db/rules/autoscale.ts). Kept by the leader, so that nobody has to look at the queue.';

grant select on load_minutes, load_forecasts, autoscale_snapshots to smartqueue_functions;
grant select, insert, update, delete on load_minutes, load_forecasts, autoscale_snapshots to smartqueue_workers;

-- What metrics count. Of the whole system: nothing of it belongs to an organisation.

create table job_totals (
  -- One row.
  only_row boolean primary key default true,
  submitted bigint not null default 0,
  completed bigint not null default 0,
  -- Attempts that failed, whatever followed.
  failed_attempts bigint not null default 0,
  -- Jobs that failed for good.
  dead bigint not null default 0,
  retried bigint not null default 0,
  cancelled bigint not null default 0,
  lost_leases bigint not null default 0,
  -- By log_bucket of milliseconds: how long completed jobs ran, and jobs that ended with their first attempt had waited.
  runtimes bigint[] not null default '{}',
  runtime_ms double precision not null default 0,
  waits bigint[] not null default '{}',
  wait_ms double precision not null default 0,
  constraint job_totals_only_row check (only_row)
)
with (fillfactor = 50);
comment on table job_totals is 'What became of jobs since the beginning. Kept by the leader, with the rollups.';
insert into job_totals default values;

create function add_counts(a bigint[], b bigint[]) returns bigint[]
language sql immutable parallel safe
return array(
  select coalesce(one, 0) + coalesce(other, 0)
  from unnest(a, b) with ordinality as n (one, other, bucket)
  order by bucket
);

create table edge_totals (
  name text not null,
  label text not null default '',
  total bigint not null,
  primary key (name, label)
)
with (fillfactor = 50);
comment on table edge_totals is 'What only the functions see, added up: repeated submissions, webhook deliveries by their outcome.';

create table queue_gauges (
  -- One row, or none before the first.
  only_row boolean primary key default true,
  taken_at timestamptz not null default now(),
  -- [{class, status, jobs}], where there are any.
  depths jsonb not null,
  -- Of those that could be claimed. Null: there was none.
  oldest_ready_at timestamptz,
  constraint queue_gauges_only_row check (only_row)
)
with (fillfactor = 50);
comment on table queue_gauges is 'How deep the queue is, by class and status. Kept by the leader.';

create function lease_gauges() returns table (in_flight bigint, expired bigint)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
-- Jobs that run, and those whose lease has run out and that nobody has taken over yet, of all organisations.
begin atomic
  select count(started_at), count(*) filter (where expires_at <= now())
  from held_jobs;
end;

grant select on job_totals, edge_totals, queue_gauges to smartqueue_functions;
grant insert, update on edge_totals to smartqueue_functions;
grant select, insert, update, delete on job_totals, edge_totals, queue_gauges to smartqueue_workers;

-- Deleting organisations and accounts.
--
-- An account has few rows and is deleted in one transaction. An organisation may have millions, so a request only records
-- its deletion, which closes it immediately; the leader then removes its rows in batches. See ADR 21.

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
comment on index org_deletions_pending is 'Serves the policies not_deleted, regardless of the number of past deletions.';

alter table org_deletions enable row level security;
alter table org_deletions force row level security;
create policy of_admin on org_deletions for select to smartqueue_functions
  using (removed_at is null or (select sees_all_orgs()));
comment on policy of_admin on org_deletions is
  'Platform admins read all rows. Everyone else needs the ids of organisations being removed, for not_deleted.';
create policy of_all_orgs on org_deletions for select to smartqueue_workers using (true);
grant select on org_deletions to smartqueue_functions, smartqueue_workers;

-- Anyone who acts in an organisation is a member, an invited user or a webhook source of it, or a platform admin, who needs
-- its row in orgs. Hiding these four closes it to sessions, API keys, tickets, invitations and webhooks.

create policy not_deleted on orgs as restrictive to smartqueue_functions
  using (id <> all (array(select d.id from org_deletions d where d.removed_at is null)));
create policy not_deleted on memberships as restrictive to smartqueue_functions
  using (org_id <> all (array(select d.id from org_deletions d where d.removed_at is null)));
create policy not_deleted on invitations as restrictive to smartqueue_functions
  using (org_id <> all (array(select d.id from org_deletions d where d.removed_at is null)));
create policy not_deleted on webhook_sources as restrictive to smartqueue_functions
  using (org_id <> all (array(select d.id from org_deletions d where d.removed_at is null)));

do $$
begin
  execute format('create policy of_owner on org_deletions to %I using (true)', current_user);
end
$$;

create function close_org(in_org uuid) returns void
language plpgsql
as $$
-- From this commit on, nobody can enter the organisation, no claim takes its jobs and none of its schedules fires. Workers
-- give back the jobs they have not started; the leader stops those that are running.
begin
  insert into org_deletions (id, requested_by) values (in_org, scope_user());
  insert into pauses (org_id, paused_by) values (in_org, scope_user()) on conflict on constraint pauses_once do nothing;
  update schedules s
  set paused_at = now(), next_at = null, version = s.version + 1
  where s.org_id = in_org
    and s.next_at is not null;
  perform pg_notify('queue_paused', in_org::text);
end
$$;

create function delete_org(in_org uuid, in_name text, in_password_hash text, in_session uuid, spare_org uuid)
returns table (outcome text, next_org_id uuid)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
-- For an org_admin of the organisation, or a platform admin, who has just confirmed their password. Its hash is compared
-- again here, in case the password was changed in the meantime. The caller's sign-in continues in their oldest other
-- organisation; a caller without one gets a new personal organisation with the id `spare_org`.
--
-- Outcomes: 'deleted'; 'unknown': no such organisation; 'wrong_name'; 'refused': not an org_admin, or wrong password.
declare
  v_user constant uuid := scope_user();
  v_name text;
begin
  -- Not `for update`: foreign keys of new rows do not have to wait, so they cannot deadlock with the locks of close_org.
  select o.name into v_name from orgs o where o.id = in_org for no key update;
  if not found or exists (select from org_deletions d where d.id = in_org) then
    return query select 'unknown', null::uuid;
    return;
  end if;
  perform
  from users u
  left join memberships m on m.org_id = in_org and m.user_id = u.id
  where u.id = v_user
    and u.password_hash = in_password_hash
    and (u.is_admin or m.role = 'org_admin')
    and scope_key() is null;
  if not found then
    return query select 'refused', null::uuid;
    return;
  end if;
  if v_name <> in_name then
    return query select 'wrong_name', null::uuid;
    return;
  end if;

  perform close_org(in_org);
  select m.org_id into next_org_id
  from memberships m
  where m.user_id = v_user
    and not exists (select from org_deletions d where d.id = m.org_id)
  order by m.created_at, m.org_id
  limit 1;
  if next_org_id is null then
    insert into orgs (id, name) select spare_org, u.username from users u where u.id = v_user;
    insert into memberships (org_id, user_id, role) values (spare_org, v_user, 'org_admin');
    next_org_id := spare_org;
  end if;
  update refresh_families f
  set org_id = next_org_id
  where f.id = in_session
    and f.user_id = v_user
    and f.org_id = in_org;
  outcome := 'deleted';
  return next;
end
$$;

create function own_orgs() returns table (id uuid, name text, role text, on_deletion text)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
-- The caller's organisations and what happens to each when their account is deleted: 'left'; 'deleted' if they are the only
-- member; 'blocks' if others would be left without an org_admin.
begin atomic
  select
    o.id, o.name, m.role,
    case
      when not exists (select from memberships n where n.org_id = m.org_id and n.user_id <> m.user_id) then 'deleted'
      when m.role = 'org_admin' and not exists (
        select
        from memberships n
        where n.org_id = m.org_id
          and n.user_id <> m.user_id
          and n.role = 'org_admin'
      ) then 'blocks'
      else 'left'
    end
  from memberships m
  join orgs o on o.id = m.org_id
  where m.user_id = scope_user()
    and not exists (select from org_deletions d where d.id = m.org_id)
  order by m.created_at, m.org_id;
end;

create function delete_account(in_password_hash text) returns table (outcome text, orgs jsonb)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
-- Deletes the caller's account with everything that refers to it, and the organisations of which they are the only member.
-- `orgs` lists these or, if the outcome is 'blocked', those that would be left without an org_admin. 'refused' means a wrong
-- password.
declare
  v_user constant uuid := scope_user();
  v_org uuid;
begin
  perform from users u where u.id = v_user and u.password_hash = in_password_hash and scope_key() is null for update;
  if not found then
    return query select 'refused', null::jsonb;
    return;
  end if;
  -- Locks in the same order as statements that change or remove memberships: if two org_admins leave at the same time, the
  -- second sees that they are the last.
  perform
  from memberships m
  where m.org_id in (select own.org_id from memberships own where own.user_id = v_user)
    and (m.role = 'org_admin' or m.user_id = v_user)
  order by m.org_id, m.user_id
  for update;
  select jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name)) into orgs from own_orgs() o where o.on_deletion = 'blocks';
  if orgs is not null then
    return query select 'blocked', delete_account.orgs;
    return;
  end if;

  select coalesce(jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name)), '[]') into orgs
  from own_orgs() o
  where o.on_deletion = 'deleted';
  insert into audit_log (org_id, action, target)
  select o.id, 'account.deleted', jsonb_build_object('user_id', v_user)
  from own_orgs() o
  where o.on_deletion = 'left';
  for v_org in select o.id from own_orgs() o where o.on_deletion = 'deleted' loop
    perform close_org(v_org);
  end loop;
  delete from sign_in_attempts a
  using users u
  where u.id = v_user
    and a.name_hash = sha256(convert_to(lower(u.username), 'UTF8'));
  -- Cascades to memberships, and through them to sign-ins and API keys, and to invitations to and from the account.
  delete from users u where u.id = v_user;
  outcome := 'deleted';
  return next;
end
$$;

create function is_deleted_user(in_user uuid) returns boolean
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
-- For the audit log: an actor who is not visible has either left the organisation or deleted their account.
begin atomic
  select not exists (select from users u where u.id = in_user);
end;

create function remove_org_rows(in_org uuid, most integer, is_settled boolean) returns integer
language plpgsql
set enable_seqscan = off
as $$
-- Deletes up to `most` rows of an organisation, table by table, referencing rows before referenced ones. It always starts
-- with the first table, so it can stop anywhere and still finds rows written in the meantime. Each condition is served by an
-- index; executions has none, to keep completions cheap, and is bounded by retention instead.
declare
  v_step text[];
  v_rows integer;
  v_removed integer := 0;
begin
  foreach v_step slice 1 in array array[
    ['ready_jobs', 'org_id = $1'],
    ['waiting_jobs', $q$ org_id = $1 and state = 'pending' $q$],
    ['waiting_jobs', $q$ org_id = $1 and state = 'retrying' $q$],
    ['blocked_jobs', 'org_id = $1'],
    ['reservations', 'org_id = $1'],
    ['schedule_ticks', 'schedule_id = any (array(select s.id from schedules s where s.org_id = $1))'],
    ['schedules', 'org_id = $1'],
    ['webhook_deliveries', 'org_id = $1'],
    ['webhook_sources', 'org_id = $1'],
    ['callback_endpoints', 'org_id = $1'],
    ['callback_secrets', 'org_id = $1'],
    ['idempotency_keys', 'org_id = $1'],
    ['api_keys', 'org_id = $1'],
    ['invitations', 'org_id = $1'],
    ['refresh_tokens', 'family_id = any (array(select f.id from refresh_families f where f.org_id = $1 order by f.user_id limit $2))'],
    ['refresh_families', 'id = any (array(select f.id from refresh_families f where f.org_id = $1 order by f.user_id limit $2))'],
    ['memberships', 'org_id = $1'],
    ['job_event_groups', 'org_id = $1 and xid is not null'],
    ['attempts', 'org_id = $1'],
    ['finished_jobs', 'org_id = $1'],
    ['job_logs', 'job_id = any (array(select j.id from jobs j where j.org_id = $1 order by j.id limit $2))'],
    ['job_dependencies', 'parent_id = any (array(select j.id from jobs j where j.org_id = $1 order by j.id limit $2))'],
    -- Progress is deleted with its job.
    ['jobs', 'org_id = $1 and id = any (array(select j.id from jobs j where j.org_id = $1 order by j.id limit $2))'],
    ['job_rollups', 'org_id = $1'],
    ['prediction_rollups', 'org_id = $1'],
    ['depth_rollups', 'org_id = $1'],
    ['depth_samples', 'org_id = $1'],
    ['scheduling_gains', 'org_id = $1'],
    -- From here on, only tables that nobody can write to any more.
    ['settled', ''],
    ['stream_memories', 'stream_id = any (array(select s.id from streams s where s.org_id = $1))'],
    ['streams', 'org_id = $1'],
    ['org_type_estimates', 'org_id = $1'],
    ['executions', 'org_id = $1'],
    -- Written before migration 17, if any are left: they have the lowest ids.
    ['job_event_groups', $q$ org_id = $1 and id < (
      select g.id from job_event_groups g where g.xid is not null order by g.id limit 1
    ) $q$],
    ['quotas', 'org_id = $1'],
    ['quota_states', 'org_id = $1'],
    ['pauses', 'org_id = $1'],
    ['audit_log', 'org_id = $1']
  ] loop
    if v_step[1] = 'settled' then
      exit when not is_settled;
      continue;
    end if;
    execute format('delete from %1$I where ctid = any (array(select ctid from %1$I where %2$s limit $2))', v_step[1], v_step[2])
    using in_org, most - v_removed;
    get diagnostics v_rows = row_count;
    v_removed := v_removed + v_rows;
    exit when v_removed >= most;
  end loop;
  return v_removed;
end
$$;

create function remove_deleted_org(in_term bigint, most integer)
returns table (deleted_org uuid, removed integer, told_workers text[], finished boolean)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
-- One batch for the leader: up to `most` rows of the first deleted organisation that has any left. Returns no row if there
-- is nothing to do now, or if the term is over. `told_workers` have lost running jobs of any deleted organisation: those stop
-- at once, however many rows of another organisation are removed first.
--
-- Removal finishes no earlier than a minute after the request. By then, transactions that had entered the organisation have
-- finished, since the functions' transactions take less than half as long, and their rows are found here.
declare
  v_deletion org_deletions;
begin
  if not exists (
    select
    from scheduler_leader l
    where l.term = in_term
      and l.incarnation = database_incarnation()
  ) then
    return;
  end if;
  with held as materialized (
    select l.token, pending.ids
    from leases l
    cross join (select array(select d.id from org_deletions d where d.removed_at is null) as ids) pending
    where l.org_ids && pending.ids
    order by l.token
    for update of l
  ),
  released as (
    update leases l
    set (job_ids, org_ids, attempts, started_ats) = (
      select
        coalesce(array_agg(h.job_id order by h.n), '{}'), coalesce(array_agg(h.org_id order by h.n), '{}'),
        coalesce(array_agg(h.attempt order by h.n), '{}'), coalesce(array_agg(h.started_at order by h.n), '{}')
      from unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats)
        with ordinality as h (job_id, org_id, attempt, started_at, n)
      where h.org_id <> all (held.ids)
    )
    from held
    where l.token = held.token
    returning l.worker_id
  )
  select coalesce(array_agg(distinct r.worker_id), '{}') into told_workers
  from released r;
  for v_deletion in
    select d.*
    from org_deletions d
    where d.removed_at is null
    order by d.requested_at
    for update skip locked
  loop
    deleted_org := v_deletion.id;
    finished := v_deletion.requested_at < now() - interval '1 minute';
    removed := remove_org_rows(deleted_org, most, finished);
    finished := finished and removed < most;
    if finished then
      delete from orgs o where o.id = deleted_org;
      update org_deletions d set removed_at = now() where d.id = deleted_org;
    end if;
    if finished or removed > 0 or told_workers <> '{}' then
      return next;
      return;
    end if;
  end loop;
end
$$;

revoke execute on function
  close_org, delete_org, own_orgs, delete_account, is_deleted_user, remove_org_rows, remove_deleted_org
from public;
grant execute on function delete_org, own_orgs, delete_account, is_deleted_user to smartqueue_functions;
grant execute on function remove_deleted_org to smartqueue_workers;
