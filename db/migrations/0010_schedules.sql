-- Schedules, and the record of their ticks.

create table schedules (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  name text not null,
  cron text not null,
  timezone text not null,
  catch_up text not null,
  -- The job of each tick, with all defaults filled in.
  job jsonb not null,
  paused_at timestamptz,
  -- The next tick. Null if the schedule is paused or has no further tick.
  next_at timestamptz,
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
comment on table schedules is 'Jobs that are submitted repeatedly, by a cron expression.';

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
  -- Each tick fires once, even if two leaders try.
  primary key (schedule_id, tick_at),
  foreign key (org_id, schedule_id) references schedules (org_id, id) on delete cascade,
  constraint schedule_ticks_outcome check (outcome in ('fired', 'refused', 'skipped'))
);
comment on table schedule_ticks is 'Past ticks and their outcomes.';

create index schedule_ticks_by_time on schedule_ticks (fired_at);
comment on index schedule_ticks_by_time is 'Serves delete_expired.';

call isolate_by_org('schedules', 'schedule_ticks');

grant select, insert, update, delete on schedules to smartqueue_functions;
grant select, insert on schedule_ticks to smartqueue_functions;
grant select, update on schedules to smartqueue_workers;
grant select, insert, update, delete on schedule_ticks to smartqueue_workers;
