-- Analytics and metrics: sums of what happened to jobs. The leader keeps them by reading the events in the order of their
-- commits, so that the statements that move jobs do no extra work.

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

-- Metrics cover the whole system, and nothing in them belongs to an organisation.

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

-- The queue as a whole, from which the start of a job is estimated. An organisation sees only its own jobs, but all
-- organisations share one queue: definer functions answer with sums over it.

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

call isolate_by_org('job_rollups', 'prediction_rollups', 'depth_rollups', 'depth_samples', 'scheduling_gains');

grant select on
  job_rollups, prediction_rollups, depth_rollups, depth_samples, scheduling_gains, slot_changes, job_totals, edge_totals,
  queue_gauges
to smartqueue_functions;
grant insert, update on edge_totals to smartqueue_functions;
grant select, insert, update, delete on
  job_rollups, prediction_rollups, depth_rollups, depth_samples, scheduling_gains, slot_changes, job_totals, edge_totals,
  queue_gauges
to smartqueue_workers;
grant select, update on analytics_cursors to smartqueue_workers;
