-- The queue tables take their final shape: streams with their running estimates, lanes, resources, deadlines,
-- cancellation. The old tables move aside, the new ones are made and filled, the old ones go. Workers of the release
-- before must be stopped first.

create schema superseded;
alter view job_overview set schema superseded;
alter table jobs set schema superseded;
alter table waiting_jobs set schema superseded;
alter table ready_jobs set schema superseded;
alter table leases set schema superseded;
alter table finished_jobs set schema superseded;
alter table attempts set schema superseded;
alter table job_events set schema superseded;
alter table job_logs set schema superseded;

create type job_state as enum
  ('pending', 'blocked', 'ready', 'running', 'retrying', 'completed', 'failed', 'cancelled');
comment on type job_state is 'An enum and not a checked text: it is written for each transition, in a quarter of the bytes.';

-- Streams: what repeats, and so can be learned.

create table streams (
  id bigint generated always as identity primary key,
  org_id uuid not null references orgs on delete cascade,
  type text not null,
  name text not null,
  -- Completed executions; a robust running mean of ln(milliseconds), and its mean absolute deviation.
  runs bigint not null default 0,
  mean_log double precision,
  deviation_log double precision,
  -- The mean that queued jobs were last scored with, and whether the two have come a lane apart.
  scored_log double precision,
  moved boolean not null default false,
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
  deviation_log double precision not null
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

create table jobs (
  org_id uuid not null,
  id uuid not null,
  created_by uuid,
  stream_id bigint not null,
  type text not null,
  name text not null,
  payload jsonb not null,
  priority text not null,
  tags text[] not null,
  timeout_seconds integer,
  max_attempts integer not null,
  initial_delay_seconds double precision not null,
  backoff_multiplier double precision not null,
  cpu_units real not null,
  memory_mb integer not null,
  run_at timestamptz,
  deadline timestamptz,
  on_parent_failure text not null,
  -- The prediction at submission, and where it came from.
  predicted_ms double precision not null,
  predicted_p90_ms double precision not null,
  prediction_source text not null,
  model_version integer,
  -- Order in the queue, lowest first: rank_base + rank_slope × the stream's mean_log. See db/rules/priority.ts.
  rank_base double precision not null,
  rank_slope real not null,
  created_at timestamptz not null default now(),
  primary key (org_id, id),
  constraint jobs_name_length check (char_length(name) between 1 and 200),
  constraint jobs_payload_object check (jsonb_typeof(payload) = 'object'),
  constraint jobs_priority check (priority in ('critical', 'high', 'normal', 'low')),
  constraint jobs_timeout_positive check (timeout_seconds > 0),
  constraint jobs_max_attempts_positive check (max_attempts > 0),
  constraint jobs_initial_delay_not_negative check (initial_delay_seconds >= 0),
  constraint jobs_backoff_multiplier_grows check (backoff_multiplier >= 1),
  constraint jobs_cpu_units_not_negative check (cpu_units >= 0),
  constraint jobs_memory_not_negative check (memory_mb >= 0),
  constraint jobs_on_parent_failure check (on_parent_failure in ('fail', 'wait')),
  constraint jobs_prediction_source check (prediction_source in ('lstm', 'stream', 'type', 'default'))
);
comment on table jobs is 'What was submitted. Never changes.';

create index jobs_by_stream on jobs (org_id, stream_id, id);
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

create index waiting_jobs_by_org on waiting_jobs (org_id, state, job_id);
comment on index waiting_jobs_by_org is 'Serves list-jobs by status pending and retrying, next to organisations with many.';

create sequence ready_keys cache 1;

create table ready_jobs (
  org_id uuid not null,
  job_id uuid not null,
  stream_id bigint not null,
  type text not null,
  -- The rank, to a tenth. 10000 is added while the job is parked: paused, or of a type that no worker handles.
  lane smallint not null,
  -- Order of becoming ready. It only grows, which is what lets a worker remember where a lane begins.
  key bigint not null default nextval('ready_keys'),
  attempts integer not null,
  cpu_units real not null,
  memory_mb integer not null,
  predicted_ms real not null,
  -- Latest start that still makes the deadline.
  start_by timestamptz,
  -- A worker vanished with it in hand, before it said that it started it.
  suspect boolean not null default false,
  ready_at timestamptz not null default now(),
  primary key (org_id, job_id)
)
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

create index ready_jobs_order on ready_jobs (lane, key);
comment on index ready_jobs_order is 'Serves exchange-jobs: lowest lane first, in order of arrival within it.';

create index ready_jobs_age on ready_jobs (key) where lane < 5000;
comment on index ready_jobs_age is 'Serves exchange-jobs: the oldest first, whatever its lane.';

create index ready_jobs_parked on ready_jobs (key) where lane >= 5000;
comment on index ready_jobs_parked is 'Serves unpark-jobs.';

create index ready_jobs_start_by on ready_jobs (start_by) where start_by is not null and lane < 5000;
comment on index ready_jobs_start_by is 'Serves exchange-jobs: jobs that must start now to make their deadline.';

create index ready_jobs_big on ready_jobs (ready_at) where (cpu_units > 1 or memory_mb > 64) and lane < 5000;
comment on index ready_jobs_big is 'Serves reserve-capacity: jobs that smaller ones can overtake.';

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
  started_ats timestamptz[] not null
)
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table leases is
  'One for each claim, however many jobs it took: it is inserted once, renewed as one, and deleted when the last of them
has ended. A job that ended before the others stays in it until then; where else it stands says so.';

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

create index finished_jobs_unsuccessful on finished_jobs (org_id, state, job_id) where state <> 'completed';
comment on index finished_jobs_unsuccessful is 'Serves list-jobs by status failed and cancelled.';

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
  constraint attempts_outcome check (outcome in ('failed', 'lost', 'snoozed'))
);
comment on table attempts is 'Tries that did not finish their job. The one that did stands in finished_jobs.';

create index attempts_by_job on attempts (org_id, job_id, id);
comment on index attempts_by_job is 'Serves list-attempts.';

create table job_event_groups (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  at timestamptz not null default now(),
  job_ids uuid[] not null,
  states job_state[] not null,
  attempts integer[] not null,
  reasons text[] not null,
  ats timestamptz[] not null
);
comment on table job_event_groups is
  'Transitions of an organisation''s jobs, written by the statement that makes them: one row for all of a statement.';

alter table job_event_groups
  alter column job_ids set storage external,
  alter column states set storage external,
  alter column attempts set storage external,
  alter column ats set storage external;

create index job_event_groups_by_time on job_event_groups using brin (at) with (pages_per_range = 16, autosummarize = on);
comment on index job_event_groups_by_time is 'Serves delete-expired-events.';

create view job_events as
select g.id, e.position, g.org_id, e.job_id, e.state, e.attempt, e.reason, e.at
from job_event_groups g
cross join lateral unnest(g.job_ids, g.states, g.attempts, g.reasons, g.ats)
  with ordinality as e (job_id, state, attempt, reason, at, position);
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

create view queue_entries as
select
  j.id as job_id,
  j.org_id,
  j.stream_id,
  j.type,
  lane_of(j.rank_base + j.rank_slope * coalesce(s.mean_log, ln(j.predicted_ms))) as lane,
  j.cpu_units,
  j.memory_mb,
  j.predicted_ms::real as predicted_ms,
  j.deadline - j.predicted_p90_ms * interval '1 millisecond' as start_by,
  j.run_at
from jobs j
join streams s on s.id = j.stream_id;
comment on view queue_entries is 'How a job stands in ready_jobs if it becomes ready now.';

-- Data of the release before. Predictions start from the default: there were none.

insert into streams (org_id, type, name)
select distinct org_id, type, name
from superseded.jobs;

insert into jobs (
  org_id, id, created_by, stream_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
  initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, on_parent_failure, predicted_ms,
  predicted_p90_ms, prediction_source, rank_base, rank_slope, created_at
)
select
  j.org_id, j.id, j.created_by, s.id, j.type, j.name, j.payload, j.priority, j.tags, j.timeout_seconds, j.max_attempts,
  j.initial_delay_seconds, j.backoff_multiplier, 1, 64, j.run_at, 'fail', 1000, 10000, 'default', j.rank, 1, j.created_at
from superseded.jobs j
join streams s on s.org_id = j.org_id and s.type = j.type and s.name = j.name;

insert into waiting_jobs (job_id, org_id, state, attempts, wake_at, error)
select job_id, org_id, state::job_state, attempts, wake_at, error
from superseded.waiting_jobs;

insert into ready_jobs (job_id, org_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
select q.job_id, q.org_id, q.stream_id, q.type, q.lane, r.attempts, q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by
from superseded.ready_jobs r
join queue_entries q on q.org_id = r.org_id and q.job_id = r.job_id
order by r.job_id;

-- A job in the hands of a stopped worker: the watchdog takes it when its lease runs out.
insert into leases (token, worker_id, expires_at, job_ids, org_ids, attempts, started_ats)
select nextval('lease_tokens'), worker_id, expires_at, array[job_id], array[org_id], array[attempt], array[started_at]
from superseded.leases;

insert into finished_jobs (
  org_id, job_id, stream_id, state, attempts, result, error, fingerprint, worker_id, started_at, finished_at
)
select
  f.org_id, f.job_id, j.stream_id, f.state::job_state, f.attempts, f.result, f.error,
  case f.state when 'failed' then error_fingerprint(f.error) end, f.worker_id, f.started_at, f.finished_at
from superseded.finished_jobs f
join jobs j on j.org_id = f.org_id and j.id = f.job_id;

insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at, finished_at)
select a.org_id, a.job_id, a.attempt, a.outcome, a.error, a.worker_id, a.started_at, a.finished_at
from superseded.attempts a
left join finished_jobs f on f.org_id = a.org_id and f.job_id = a.job_id and f.attempts = a.attempt
where f.job_id is null
order by a.started_at;

insert into job_event_groups (org_id, at, job_ids, states, attempts, reasons, ats)
select org_id, at, array[job_id], array[state::job_state], array[attempt], array[reason], array[at]
from superseded.job_events
order by id;

insert into job_logs (org_id, job_id, attempt, at, level, message)
select org_id, job_id, attempt, at, level, message
from superseded.job_logs
order by id;

drop schema superseded cascade;
