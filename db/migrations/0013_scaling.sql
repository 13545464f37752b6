-- Autoscaling: the predicted work that is queued, arriving and forecast.

create table load_minutes (
  -- Start of the minute.
  at timestamptz primary key,
  jobs bigint not null,
  -- Their predicted runtime.
  work_ms double precision not null
)
with (fillfactor = 50);
comment on table load_minutes is
  'Arriving work of all organisations, without delayed jobs and jobs of schedules, which are known in advance. Written
by the leader.';

create table load_forecasts (
  -- One row, or none before the first run.
  only_row only_row primary key,
  made_at timestamptz not null default now(),
  -- The start of the first minute, and the work that will arrive in each minute from then on.
  from_at timestamptz not null default now(),
  p50_ms double precision[] not null default '{}',
  p90_ms double precision[] not null default '{}',
  -- Why autoscaling must not use it: too little history, or a simple forecast is as good. Null if it may.
  unusable_because text,
  -- Errors on held-out minutes, and those of simple forecasts.
  evaluation jsonb not null default '{}',
  -- The weights of the network.
  weights bytea,
  constraint load_forecasts_minutes check (cardinality(p50_ms) = cardinality(p90_ms))
)
with (fillfactor = 50);
comment on table load_forecasts is 'The work that will arrive in the next minutes. Written by the leader.';

create table autoscale_snapshots (
  -- One row, or none before the first run.
  only_row only_row primary key,
  taken_at timestamptz not null default now(),
  -- Predicted work of claimable jobs, and what remains of running ones. Each job counts at most the drain goal.
  queued_seconds double precision not null,
  running_seconds double precision not null,
  -- Work that arrives per second.
  arriving_per_second double precision not null,
  -- Work of delayed jobs and schedules that are due within the lead time.
  scheduled_seconds double precision not null,
  -- Forecast work within a drain goal. Null if no forecast is usable, with the reason.
  forecast_p50_seconds double precision,
  forecast_p90_seconds double precision,
  no_forecast_because text,
  workers integer not null,
  -- The leader's settings.
  slots_per_worker integer not null,
  drain_goal_seconds double precision not null,
  lead_seconds double precision not null,
  min_workers integer not null,
  max_workers integer not null,
  constraint autoscale_snapshots_range check (min_workers <= max_workers)
)
with (fillfactor = 50);
comment on table autoscale_snapshots is
  'The inputs from which db/rules/autoscale.ts decides the number of workers. Written by the leader, so that no reader
has to query the queue.';

grant select on load_minutes, load_forecasts, autoscale_snapshots to smartqueue_functions;
grant select, insert, update, delete on load_minutes, load_forecasts, autoscale_snapshots to smartqueue_workers;
