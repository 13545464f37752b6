-- Autoscaling: the predicted work that is queued, that keeps arriving, and that is expected.

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
