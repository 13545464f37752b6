-- A job whose worker was lost twice in a row while it ran alongside others runs alone (docs/adr/0022-suspects-run-alone.md).

alter table ready_jobs add column alone boolean not null default false;
comment on column ready_jobs.alone is
  'Its worker was lost twice in a row: it runs alone, parked where ordinary claims do not look, until it is clear whether it is the cause.';

create index ready_jobs_alone on ready_jobs (key) where alone;
comment on index ready_jobs_alone is 'Serves claim-suspect, ask-to-isolate, look-out and reclaim-expired-leases.';

alter table leases add column alone boolean not null default false;
comment on column leases.alone is 'Its only job runs alone in its worker because it is suspected of killing workers.';

alter table workers
  add column isolates boolean not null default false,
  add column lost_at timestamptz;
comment on column workers.isolates is
  'The leader has asked it to finish its jobs and then run a suspect alone. The worker clears it.';
comment on column workers.lost_at is 'When the watchdog last took unfinished jobs away from it.';
