-- Worker pods and their leader.

create table workers (
  worker_id text primary key,
  hostname text not null,
  status text not null,
  types text[] not null,
  slots integer not null,
  cpu_units real not null,
  memory_mb integer not null,
  -- As of the last heartbeat.
  running integer not null default 0,
  jobs_processed bigint not null default 0,
  started_at timestamptz not null default now(),
  last_seen timestamptz not null default now(),
  isolates boolean not null default false,
  lost_at timestamptz,
  constraint workers_status check (status in ('online', 'draining', 'offline'))
)
with (fillfactor = 50);
comment on table workers is 'Worker pods. Each updates its own row every two seconds.';
comment on column workers.isolates is
  'The leader has asked the worker to finish its jobs and then run a suspect alone. The worker resets it.';
comment on column workers.lost_at is 'When the watchdog last took unfinished jobs from the worker.';

create table scheduler_leader (
  -- One row: the leader of the newest term, whether it is alive or not.
  only_row only_row primary key,
  worker_id text not null,
  term bigint not null,
  -- The server process that holds the leader's lock. A standby terminates it if the leader stops responding.
  backend_pid integer not null,
  elected_at timestamptz not null default now(),
  last_seen timestamptz not null default now(),
  incarnation text not null default database_incarnation(),
  -- Earlier terms, newest first.
  earlier_terms jsonb not null default '[]'
)
with (fillfactor = 50);
comment on column scheduler_leader.incarnation is
  'A term ends with the incarnation in which it began, because a crash may have undone what its leader read.';

grant select on workers, scheduler_leader to smartqueue_functions;
grant select, insert, update, delete on workers, scheduler_leader to smartqueue_workers;
