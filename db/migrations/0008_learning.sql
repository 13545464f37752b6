-- Runtime predictions: the executions they are learned from, the memory of each series, and the models.

create table org_type_estimates (
  org_id uuid not null references orgs on delete cascade,
  type text not null,
  runs bigint not null,
  mean_log double precision not null,
  deviation_log double precision not null,
  -- The approximate median of the last thousand.
  median_log double precision not null,
  drift_log double precision not null default 0,
  -- The newest executions, packed by functions/prediction/model/series-memory.ts.
  memory bytea,
  primary key (org_id, type)
);
comment on table org_type_estimates is
  'The first estimate for a series without executions, if its organisation has run other jobs of the type. Written by
the learner.';

create table executions (
  -- Readers follow xid and id up to the oldest running transaction, so they miss no rows.
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
  'Ended attempts of one series with the same outcome, written by the transaction that records them. The learner reads
them.';

alter table executions
  alter column job_ids set storage external,
  alter column ran_ms set storage external;

create table series_memories (
  series_id bigint primary key references series on delete cascade,
  org_id uuid not null,
  -- Packed by functions/prediction/model/series-memory.ts: newest executions, experts' errors, state of the network.
  memory bytea not null,
  updated_at timestamptz not null default now()
)
with (fillfactor = 70);
comment on table series_memories is
  'The predictor''s memory of a series, in addition to its running estimate. Written by the learner.';

create table org_memories (
  org_id uuid primary key references orgs on delete cascade,
  -- Packed by functions/prediction/model/org-memory.ts: calibration and the experts' errors.
  memory bytea not null
)
with (fillfactor = 50);
comment on table org_memories is
  'The predictor''s memory of all series of an organisation together. Written by the learner.';

create table models (
  version integer primary key,
  -- The version that its training started from. Null for the first.
  parent integer,
  status text not null,
  -- Null once the version is too old to roll back to.
  weights bytea,
  created_at timestamptz not null default now(),
  decided_at timestamptz,
  -- Total number of executions it has been trained on.
  trained_on bigint not null,
  -- The organisation whose runs alone it was trained on. Null: several, or none yet.
  only_org uuid,
  -- Errors on held-out executions, those of the champion at that time, and the reason for the decision.
  evaluation jsonb not null default '{}',
  constraint models_status check (status in ('champion', 'retired', 'rejected', 'rolled_back'))
);
comment on table models is 'Versions of the network with their evaluation and status.';

create unique index models_champion on models (status) where status = 'champion';
comment on index models_champion is 'Only one champion exists. Serves prediction_inputs.';

create table learning_state (
  -- One row.
  only_row boolean primary key default true,
  -- The last execution that was learned from.
  xid xid8 not null default '0',
  id bigint not null default 0,
  -- Number of executions learned from, and of their predictions by source.
  learned bigint not null default 0,
  by_source jsonb not null default '{}',
  -- Errors over the newest executions, shown as points of the learning curve.
  accuracy jsonb not null default '{}',
  updated_at timestamptz not null default now(),
  constraint learning_state_only_row check (only_row)
)
with (fillfactor = 50);

insert into learning_state default values;

create table accuracy_points (
  at timestamptz primary key default now(),
  model_version integer,
  -- As in learning_state: AccuracyValues in db/queries/learning.ts.
  accuracy jsonb not null
);
comment on table accuracy_points is 'Accuracy of predictions by the hour. Written by the learner.';

create table prediction_faults (
  reason text primary key,
  faults bigint not null,
  last_at timestamptz not null default now()
);
comment on table prediction_faults is
  'Why the API predicted without the model: corrupt weights, a timeout or an error.';

call isolate_by_org('org_type_estimates', 'executions', 'series_memories', 'org_memories');

grant select on
  org_type_estimates, executions, series_memories, org_memories, models, learning_state, accuracy_points,
  prediction_faults
to smartqueue_functions;
grant insert, update on prediction_faults to smartqueue_functions;
grant select, insert, update, delete on
  org_type_estimates, executions, series_memories, org_memories, models, learning_state, accuracy_points,
  prediction_faults
to smartqueue_workers;
