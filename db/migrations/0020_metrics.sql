-- What metrics count. Of the whole system: nothing of it belongs to an organisation.

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

create function add_counts(a bigint[], b bigint[]) returns bigint[]
language sql immutable parallel safe
return array(
  select coalesce(one, 0) + coalesce(other, 0)
  from unnest(a, b) with ordinality as n (one, other, bucket)
  order by bucket
);

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

create function lease_gauges() returns table (in_flight bigint, expired bigint)
language sql stable security definer
set search_path = pg_catalog, public
-- Jobs that run, and those whose lease has run out and that nobody has taken over yet, of all organisations.
begin atomic
  select count(started_at), count(*) filter (where expires_at <= now())
  from held_jobs;
end;

grant select on job_totals, edge_totals, queue_gauges to smartqueue_functions;
grant insert, update on edge_totals to smartqueue_functions;
grant select, insert, update, delete on job_totals, edge_totals, queue_gauges to smartqueue_workers;
