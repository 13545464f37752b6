-- What became of an organisation's jobs, in sums: analytics read these, and never the jobs themselves. The leader keeps them,
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
insert into leader_terms (term, worker_id, elected_at) select term, worker_id, elected_at from scheduler_leader;

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
