-- Analytics and metrics: rollups of job events. The leader maintains them by reading the events in commit order, so
-- that transitions do no extra work.

create table job_rollups (
  org_id uuid not null,
  -- Length in seconds: a minute or an hour, starting at `at`.
  span smallint not null,
  at timestamptz not null,
  submitted bigint not null default 0,
  -- Submitted jobs with a later run_at.
  delayed bigint not null default 0,
  completed bigint not null default 0,
  failed bigint not null default 0,
  cancelled bigint not null default 0,
  -- Completed jobs with a known runtime, and the sum of their runtimes.
  ran bigint not null default 0,
  runtime_ms double precision not null default 0,
  -- Jobs that ended with their first attempt, the sum of their waits, and a histogram of the waits by log_bucket.
  waited bigint not null default 0,
  wait_ms double precision not null default 0,
  waits bigint[] not null default '{}',
  -- Number of samples of the queue, and the sums over them. None if the queue was empty all the time.
  samples integer not null default 0,
  pending bigint not null default 0,
  blocked bigint not null default 0,
  ready bigint not null default 0,
  running bigint not null default 0,
  retrying bigint not null default 0,
  predicted_seconds double precision not null default 0,
  -- The newest sample. It answers for deep queues, which take too long to count for each request.
  newest_sample jsonb not null default '{}',
  primary key (org_id, span, at),
  constraint job_rollups_span check (span in (60, 3600))
)
with (fillfactor = 50);
comment on table job_rollups is
  'Submitted, ended and queued jobs: by the minute for a day, by the hour for as long as jobs are kept.';

create index job_rollups_by_time on job_rollups (span, at);
comment on index job_rollups_by_time is 'Serves sample-depths and delete_expired.';

create table prediction_rollups (
  org_id uuid not null,
  -- The empty string is the sum over all types.
  type text not null,
  -- Start of the hour in which the jobs completed.
  at timestamptz not null,
  jobs bigint not null,
  -- Sums of ln(runtime / p50), of its absolute value, and of the absolute value for the running mean of the series.
  log_error double precision not null,
  abs_log_error double precision not null,
  baseline_abs_log_error double precision not null,
  within_p50 bigint not null,
  within_p90 bigint not null,
  -- Histogram of |p50 − runtime| / runtime in thousandths, by log_bucket.
  apes bigint[] not null,
  primary key (org_id, type, at)
)
with (fillfactor = 50);
comment on table prediction_rollups is 'Prediction errors of completed jobs.';

create index prediction_rollups_by_time on prediction_rollups (at);
comment on index prediction_rollups_by_time is 'Serves delete_expired.';

create table slot_changes (
  at timestamptz primary key default now(),
  slots integer not null
);
comment on table slot_changes is 'The number of slots of all live workers, from `at` on.';

create table scheduling_gains (
  org_id uuid not null,
  -- Start of the five minutes in which the jobs ended.
  at timestamptz not null,
  jobs bigint not null,
  -- Sums and maxima of their waits, and of their waits if they had run in the order in which they became ready.
  wait_ms double precision not null,
  fifo_wait_ms double precision not null,
  max_wait_ms double precision not null,
  fifo_max_wait_ms double precision not null,
  primary key (org_id, at)
)
with (fillfactor = 50);
comment on table scheduling_gains is
  'The gain of ranking jobs over first in, first out, by simulation. Written by the leader.';

create index scheduling_gains_by_time on scheduling_gains (at);
comment on index scheduling_gains_by_time is 'Serves delete_expired.';

-- Metrics cover the whole system, and nothing in them belongs to an organisation.

create table job_totals (
  only_row only_row primary key,
  submitted bigint not null default 0,
  completed bigint not null default 0,
  -- Failed attempts, retried or not.
  failed_attempts bigint not null default 0,
  -- Jobs that failed permanently.
  dead bigint not null default 0,
  retried bigint not null default 0,
  cancelled bigint not null default 0,
  lost_leases bigint not null default 0,
  -- Histograms by log_bucket of milliseconds: runtimes of completed jobs, waits of jobs that ended with their first
  -- attempt.
  runtimes bigint[] not null default '{}',
  runtime_ms double precision not null default 0,
  waits bigint[] not null default '{}',
  wait_ms double precision not null default 0
)
with (fillfactor = 50);
comment on table job_totals is 'Totals since the beginning. Written by the leader, with the rollups.';

insert into job_totals default values;

create table edge_totals (
  name text not null,
  label text not null default '',
  total bigint not null,
  primary key (name, label)
)
with (fillfactor = 50);
comment on table edge_totals is
  'Totals that only the API can count: repeated submissions, webhook deliveries by outcome.';

create table queue_gauges (
  -- One row, or none before the first run.
  only_row only_row primary key,
  taken_at timestamptz not null default now(),
  -- [{class, status, jobs}] without zero counts.
  depths jsonb not null,
  -- The oldest claimable job. Null if there is none.
  oldest_ready_at timestamptz
)
with (fillfactor = 50);
comment on table queue_gauges is 'Queue depth by class and status. Written by the leader.';

-- The state of the queue, from which the start time of a job is estimated. An organisation sees only its own jobs, but
-- all organisations share the workers: definer functions return sums over the others.

create unlogged table queue_snapshots (
  -- At most one row: none after a crash.
  only_row only_row primary key,
  taken_at timestamptz not null default 'epoch',
  took_ms double precision not null default 0,
  -- Claimable jobs by lane: their number and predicted milliseconds.
  lanes smallint[] not null default '{}',
  lane_jobs integer[] not null default '{}',
  lane_ms double precision[] not null default '{}',
  -- For each running job, the predicted milliseconds that remain.
  running_ms real[] not null default '{}',
  -- Actual divided by predicted runtime of recent jobs.
  stretch double precision not null default 1,
  -- Sums over org_queues: the weights of those with ready or running jobs, and the time that all used.
  weights double precision not null default 0,
  used_ms double precision not null default 0,
  waiting_orgs integer not null default 0,
  -- Since when some organisation has had less than half of its share.
  short_since timestamptz,
  -- Sums over the organisations by share_level: those with about the same waiting work for their weight. `load` is how
  -- many slots their jobs have kept busy recently.
  levels smallint[] not null default '{}',
  level_orgs integer[] not null default '{}',
  level_jobs integer[] not null default '{}',
  level_ms double precision[] not null default '{}',
  level_weights double precision[] not null default '{}',
  level_loads double precision[] not null default '{}'
)
with (fillfactor = 10);
comment on table queue_snapshots is
  'Sums over the queue, renewed by a reader that finds them too old. Unlogged: they are only valid for seconds.';

create unlogged table org_queues (
  org_id uuid primary key,
  weight real not null,
  -- Claimable jobs by lane: their number and predicted milliseconds.
  lanes smallint[] not null,
  lane_jobs integer[] not null,
  lane_ms double precision[] not null,
  -- The sums over the lanes.
  waiting_jobs integer not null,
  waiting_ms double precision not null,
  -- For each running job, the predicted milliseconds that remain.
  running_ms real[] not null,
  -- The time of the workers' slots that its attempts took in the last minute.
  used_ms double precision not null,
  -- The recent load by lane: how many slots its jobs kept busy.
  recent_lanes smallint[] not null,
  recent_loads double precision[] not null,
  -- Actual and predicted runtime of these jobs.
  ran_ms double precision not null,
  expected_ms double precision not null,
  -- Since when it has been waiting and has had less than half of its share. Null if it gets its share.
  short_since timestamptz
)
with (fillfactor = 50);
comment on table org_queues is
  'The queue of each organisation that has ready or running jobs or has used the workers in the last minute. Renewed
together with queue_snapshots.';

call isolate_by_org('job_rollups', 'prediction_rollups', 'scheduling_gains', 'org_queues');

grant select on
  job_rollups, prediction_rollups, scheduling_gains, slot_changes, job_totals, edge_totals, queue_gauges, org_queues
to smartqueue_functions;
grant insert, update on edge_totals to smartqueue_functions;
grant select, insert, update, delete on
  job_rollups, prediction_rollups, scheduling_gains, slot_changes, job_totals, edge_totals, queue_gauges
to smartqueue_workers;
grant select on org_queues to smartqueue_workers;
