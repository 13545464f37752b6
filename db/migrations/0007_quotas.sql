-- Quotas of organisations, and keys that make submissions idempotent.

create table quotas (
  -- Null for the defaults, which apply to organisations without a row.
  org_id uuid references orgs on delete cascade,
  -- Null means no limit.
  submissions_per_minute bigint,
  queued_jobs bigint,
  running_jobs bigint,
  payload_bytes_per_day bigint,
  -- The organisation's part of the workers' time, relative to the weights of the others that have work.
  weight real not null default 1,
  constraint quotas_once unique nulls not distinct (org_id),
  constraint quotas_not_negative check (
    submissions_per_minute >= 0 and queued_jobs >= 0 and running_jobs >= 0 and payload_bytes_per_day >= 0
  ),
  -- As a real, 0.01 is a little less than 0.01.
  constraint quotas_weight check (weight between 0.01::real and 100)
);
comment on table quotas is
  'queued_jobs includes running jobs. Claims enforce running_jobs, submissions all other quotas.';

create index quotas_running on quotas (org_id) where running_jobs is not null;
comment on index quotas_running is 'Serves exchange: whether any organisation has a limit on running jobs.';

create index quotas_weighted on quotas (org_id) where weight <> 1;
comment on index quotas_weighted is 'Serves exchange: whether any organisation has a weight of its own.';

-- High enough for an honest burst, low enough to stop a runaway loop.
insert into quotas (org_id, submissions_per_minute, queued_jobs, running_jobs, payload_bytes_per_day)
values (null, 1000000, 2000000, null, 53687091200);

create table quota_states (
  org_id uuid primary key references orgs on delete cascade,
  -- An upper bound of queued and running jobs: a count, plus all jobs added since. Null if it must be counted.
  queued_bound bigint,
  counted_at timestamptz,
  -- Two ring buffers: jobs per second for the last 61 seconds, payload bytes per hour for the last 25 hours. `at` is
  -- the newest slot, in seconds or hours since 1970, whose value is kept beside the ring; `used` is the sum of all
  -- slots. A slot that is only partly in the window counts in full, so the quota is never exceeded.
  minute_at bigint not null default 0,
  second_jobs bigint not null default 0,
  minute_used bigint not null default 0,
  day_at bigint not null default 0,
  hour_bytes bigint not null default 0,
  day_used bigint not null default 0,
  minute_slots bigint[] not null default array_fill(0::bigint, '{61}'),
  day_slots bigint[] not null default array_fill(0::bigint, '{25}')
)
-- Each submission updates it. With room in the page these are HOT updates.
with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
comment on table quota_states is
  'Usage of each organisation. The row lock makes submissions take turns, so that quotas and idempotency are exact.';

alter table quota_states
  alter column minute_slots set storage main,
  alter column day_slots set storage main;

create table idempotency_keys (
  org_id uuid not null references orgs on delete cascade,
  key text not null,
  -- SHA-256 of the request body.
  body_hash bytea not null,
  job_ids uuid[] not null,
  created_at timestamptz not null,
  expires_at timestamptz not null default now() + interval '24 hours',
  primary key (org_id, key),
  constraint idempotency_keys_length check (char_length(key) between 1 and 255)
);
comment on table idempotency_keys is
  'Idempotency keys and their jobs. A key can be reused after 24 hours, or the time that its submission asked for.';

create index idempotency_keys_by_expiry on idempotency_keys (expires_at);
comment on index idempotency_keys_by_expiry is 'Serves delete_stale.';

create policy of_org on quotas for select to smartqueue_functions
  using (
    org_id is null or org_id = any ((select scope_orgs())::uuid[]) or (select sees_all_orgs())
  );
create policy of_admin on quotas to smartqueue_functions using ((select sees_all_orgs()));

call enable_row_security('quotas');
call isolate_by_org('quota_states', 'idempotency_keys');

grant select, insert, update on quotas, idempotency_keys to smartqueue_functions;
grant select, update on quota_states to smartqueue_functions;
grant select, delete on idempotency_keys to smartqueue_workers;
