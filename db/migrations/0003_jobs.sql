-- Jobs as they were submitted, the series they belong to, their dependencies, and what handlers report about them.

create table job_types (
  type text primary key,
  -- JSON Schema of the payload, generated from the handler's own schema.
  payload_schema jsonb not null,
  constraint job_types_type_form check (type ~ '^[a-z][a-z0-9._-]{0,63}$')
);
comment on table job_types is 'Types for which some worker has a handler. Submissions of other types are refused.';

create type job_state as enum
  ('pending', 'blocked', 'ready', 'running', 'retrying', 'completed', 'failed', 'cancelled');
comment on type job_state is 'An enum, because each transition writes it: it takes 4 bytes instead of up to 10.';

-- Domains instead of table checks: a value that a thousand jobs share is checked once, and Postgres would parse table
-- checks again for each statement.
create domain job_name as text constraint job_name_length check (char_length(value) between 1 and 200);
create domain payload_object as jsonb constraint payload_object_is_one check (jsonb_typeof(value) = 'object');
create domain job_priority as text
  constraint job_priority_is_known check (value in ('critical', 'high', 'normal', 'low'));
create domain parent_failure_rule as text constraint parent_failure_rule_is_known check (value in ('fail', 'wait'));
create domain prediction_source as text
  constraint prediction_source_is_known check (value in ('lstm', 'series', 'type', 'default'));
create domain positive_integer as integer constraint positive_integer_is_positive check (value > 0);
create domain unsigned_integer as integer constraint unsigned_integer_is_not_negative check (value >= 0);
create domain unsigned_real as real constraint unsigned_real_is_not_negative check (value >= 0);
create domain unsigned_double as double precision constraint unsigned_double_is_not_negative check (value >= 0);
create domain callback_url as text constraint callback_url_length check (char_length(value) <= 2048);
create domain traceparent as text constraint traceparent_length check (char_length(value) <= 128);
create domain fairness_key as text collate "C"
  constraint fairness_key_length check (char_length(value) between 1 and 200);
create domain growth_factor as double precision constraint growth_factor_grows check (value >= 1);

create table series (
  id bigint generated always as identity primary key,
  org_id uuid not null references orgs on delete cascade,
  type text not null,
  name text not null,
  -- Executions learned from, a robust running mean of ln(milliseconds), and the mean absolute deviation from it.
  runs bigint not null default 0,
  mean_log double precision,
  deviation_log double precision,
  -- The mean that queued jobs were last scored with, and whether mean_log differs from it by a factor of 1.5 or more.
  scored_log double precision,
  moved boolean not null default false,
  -- How far the latest executions were from the running mean. Above 0, the series is getting slower.
  drift_log double precision not null default 0,
  constraint series_identity unique (org_id, type, name)
)
-- Each group of completions updates its series. With room in the page these are HOT updates.
with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0
);
comment on table series is 'An organisation''s jobs of one type and name, with the running estimate of their runtime.';

create index series_moved on series (id) where moved;
comment on index series_moved is 'Serves look-out and take-moved-series: series whose queued jobs may be misplaced.';

create table type_estimates (
  type text primary key,
  runs bigint not null,
  mean_log double precision not null,
  deviation_log double precision not null,
  median_log double precision not null
);
comment on table type_estimates is
  'The first estimate for a series whose organisation has not run the type, from all organisations. Empty unless
SMARTQUEUE_SHARED_ESTIMATES is on. Written by the learner.';

create table jobs (
  org_id uuid not null,
  id uuid not null,
  created_by uuid,
  series_id bigint not null,
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
  -- The prediction at submission and its source.
  predicted_ms double precision not null,
  predicted_p90_ms double precision not null,
  prediction_source prediction_source not null,
  model_version integer,
  -- The lowest rank runs first: rank_base + rank_slope × mean_log of the series. See db/rules/priority.ts.
  rank_base double precision not null,
  rank_slope real not null,
  created_at timestamptz not null default now(),
  -- Distance of the prediction from the mean of the series at submission. It is kept when the mean moves.
  residual_log real not null default 0,
  -- An attempt that takes longer is slow. Null if too little is known about the series.
  predicted_p99_ms double precision,
  -- The estimated wait that was shown at submission.
  promised_wait_ms double precision,
  -- The predictor's inputs, packed by functions/prediction/model/sample.ts, to learn from when the job has run. Of
  -- similar jobs submitted together, only the first few have one.
  sample bytea,
  callback_url callback_url,
  triggered_by jsonb,
  traceparent traceparent,
  fairness_key fairness_key,
  primary key (org_id, id)
);

comment on table jobs is 'Jobs as they were submitted. Rows never change.';
comment on column jobs.callback_url is
  'Notified when the job finishes, in addition to the endpoints of its organisation.';
comment on column jobs.fairness_key is
  'One of the organisation''s own tenants. Jobs with different keys share the organisation''s share of the workers.';
comment on column jobs.triggered_by is
  'Null for a job submitted through the API, else its origin: {kind: webhook | schedule | callback, …}.';
comment on column jobs.traceparent is
  'The span that submitted the job, in the format of W3C Trace Context. Null if it is not traced.';

create index jobs_by_callback on jobs (org_id, id) where callback_url is not null;
comment on index jobs_by_callback is 'Serves find-callbacks: whether any job has a callback.';

create index jobs_by_told on jobs (org_id, (triggered_by ->> 'job_id'), id)
where triggered_by ->> 'kind' = 'callback';
comment on index jobs_by_told is 'Serves callbacks_of_job.';

create index jobs_by_series on jobs (series_id, id) with (deduplicate_items = off);
comment on index jobs_by_series is 'Serves list-jobs by type and name, prediction_inputs and forget_series.';

create index jobs_by_priority on jobs (org_id, priority, id) where priority <> 'normal';
comment on index jobs_by_priority is 'Serves list-jobs by a priority other than normal.';

create table job_dependencies (
  parent_id uuid not null,
  child_id uuid not null,
  org_id uuid not null,
  primary key (parent_id, child_id),
  foreign key (org_id, parent_id) references jobs (org_id, id) on delete cascade,
  foreign key (org_id, child_id) references jobs (org_id, id) on delete cascade
);
comment on table job_dependencies is 'The child starts only after the parent has completed.';

create index job_dependencies_by_child on job_dependencies (child_id, parent_id);
comment on index job_dependencies_by_child is 'Serves get-job and retry-jobs.';

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
  -- Where the next attempt can continue.
  checkpoint jsonb,
  foreign key (org_id, job_id) references jobs (org_id, id) on delete cascade,
  constraint job_progress_range check (progress between 0 and 1)
)
with (fillfactor = 70);

call isolate_by_org('series', 'jobs', 'job_dependencies', 'job_logs', 'job_progress');

grant select on
  job_types, series, type_estimates, jobs, job_dependencies, job_logs, job_progress
to smartqueue_functions;

grant select, insert, update, delete on
  job_types, type_estimates, series, job_dependencies, job_logs, job_progress
to smartqueue_workers;
-- The leader deletes old jobs.
grant select, delete on jobs to smartqueue_workers;
