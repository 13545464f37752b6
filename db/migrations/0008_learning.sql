-- Predictions of runtimes: the executions they are learned from, what is remembered of each series, and the models.

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
  series_id bigint not null,
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

create table series_memories (
  series_id bigint primary key references series on delete cascade,
  org_id uuid not null,
  -- Packed by db/learning/stream-memory.ts: the newest executions, the errors of the experts, the state of the network.
  memory bytea not null,
  updated_at timestamptz not null default now()
)
with (fillfactor = 70);
comment on table series_memories is 'What the predictor remembers of a stream beyond its running estimate. Kept by the learner.';

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

call isolate_by_org('org_type_estimates', 'executions', 'series_memories');

grant select on
  org_type_estimates, executions, series_memories, models, learning_state, accuracy_points, prediction_faults
to smartqueue_functions;
grant insert, update on prediction_faults to smartqueue_functions;
-- Cancelling a running job records an execution.
grant insert on executions to smartqueue_functions;
grant select, insert, update, delete on
  org_type_estimates, executions, series_memories, models, learning_state, accuracy_points, prediction_faults
to smartqueue_workers;
