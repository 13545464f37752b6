-- The state of each job. A job never changes after its submission; its state is the table that holds it: waiting_jobs,
-- blocked_jobs, ready_jobs, leases or finished_jobs. Each transition moves its row in one transaction.
--
-- These tables have no foreign key to jobs. Only the transitions write to them, from rows that they have just moved,
-- and a foreign key check would lock and dirty the wide row of the job on every move.

create function lane_of(rank double precision) returns smallint
language sql immutable parallel safe
-- Ranks are logarithmic and a lane is 0.1 wide: its jobs differ by about 10 % at most, and run in order of arrival.
return floor(least(greatest(rank, -100), 100) * 10)::smallint;

create function flow_of(p_org uuid, p_fairness_key text) returns bigint
language sql stable
-- The flow of a job: all ready jobs with the same organisation and fairness key. The high 32 bits are the number of the
-- organisation, so the flows of one organisation are neighbours in an index. The low bits are 0 without a key, and
-- otherwise a hash of the key. Keys with equal hashes share a flow: among 1,000 keys, the chance is 0.02 %.
return (select o.number::bigint << 32 from orgs o where o.id = p_org)
  | case when p_fairness_key is null then 0 else 1 + (hashtextextended(p_fairness_key, 0) & 2147483647) end;

create table waiting_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  state job_state not null,
  attempts integer not null,
  wake_at timestamptz not null,
  -- Why the last attempt failed.
  error jsonb,
  constraint waiting_jobs_state check (state in ('pending', 'retrying'))
);
comment on table waiting_jobs is 'Pending and retrying jobs. They become ready at wake_at.';

create index waiting_jobs_due on waiting_jobs (wake_at);
comment on index waiting_jobs_due is 'Serves wake-due-jobs.';

create index waiting_jobs_pending on waiting_jobs (org_id, job_id) where state = 'pending';
comment on index waiting_jobs_pending is 'Serves list-jobs by status pending.';

create index waiting_jobs_retrying on waiting_jobs (org_id, job_id) where state = 'retrying';
comment on index waiting_jobs_retrying is 'Serves list-jobs by status retrying.';

create table blocked_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  -- Parents that have not completed.
  remaining integer not null,
  on_parent_failure text not null,
  constraint blocked_jobs_remaining check (remaining > 0)
);

create index blocked_jobs_by_org on blocked_jobs (org_id, job_id);
comment on index blocked_jobs_by_org is 'Serves list-jobs by status blocked.';

create sequence ready_keys cache 1;

create table ready_jobs (
  org_id uuid not null,
  job_id uuid not null,
  series_id bigint not null,
  type text not null,
  -- The workers' time is shared between flows. See flow_of.
  flow bigint not null,
  -- The rank, rounded to 0.1. 10000 is added while the job is parked: it is paused, or no worker handles its type.
  -- 20000 is added to a suspect: the job lost its worker twice in a row, and runs alone until it is clear whether it
  -- is the cause.
  lane smallint not null,
  -- The order in which jobs became ready. It only grows, so a worker can remember where a lane begins.
  key bigint not null default nextval('ready_keys'),
  attempts integer not null,
  cpu_units real not null,
  memory_mb integer not null,
  predicted_ms real not null,
  -- The latest start that still meets the deadline.
  start_by timestamptz,
  ready_at timestamptz not null default now(),
  primary key (org_id, job_id)
)
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- Keys are unique, so looking for duplicates whenever a page is full would be wasted work.
create index ready_jobs_order on ready_jobs (flow, lane, key) with (deduplicate_items = off) where lane < 5000;
comment on index ready_jobs_order is
  'Serves exchange: the flows that have jobs, and in each the lowest lane first, in order of arrival within it.';

create index ready_jobs_age on ready_jobs (flow, key) with (deduplicate_items = off) where lane < 5000;
comment on index ready_jobs_age is 'Serves exchange: oldest first within a flow, regardless of the lane.';

create index ready_jobs_parked on ready_jobs (flow, key) where lane >= 5000 and lane < 15000;
comment on index ready_jobs_parked is 'Serves move-held-back-jobs.';

create index ready_jobs_suspects on ready_jobs (key) where lane >= 15000;
comment on index ready_jobs_suspects is 'Serves claim_suspect and look_out: jobs that run alone.';

create index ready_jobs_start_by on ready_jobs (flow, start_by) where start_by is not null and lane < 5000;
comment on index ready_jobs_start_by is 'Serves exchange: jobs that must start now to meet their deadline.';

create index ready_jobs_big on ready_jobs (ready_at) where (cpu_units > 1 or memory_mb > 64) and lane < 5000;
comment on index ready_jobs_big is 'Serves reserve-capacity: jobs that smaller ones can overtake.';

create type claim_request as (
  max_jobs integer,
  types text[],
  -- Rank jobs by the newest estimates of their series.
  newest_rank boolean,
  -- Organisations that the worker knows, by number, and their virtual times in milliseconds. 0 is the time of an
  -- organisation that begins to wait.
  orgs integer[],
  org_times double precision[],
  -- Flows that the worker knows: the position of their organisation above, their virtual times within it, whether they
  -- had jobs when the worker last looked, how many jobs they get in one turn, and whether their oldest jobs go first.
  flows bigint[],
  flow_orgs integer[],
  flow_times double precision[],
  waiting boolean[],
  turns integer[],
  oldest_first boolean[],
  -- Where to start reading: nothing older is left in the whole flow, or in the lanes of floors first_floors[n] to
  -- last_floors[n]. Floor 1 is below all lanes and serves flows without floors.
  age_floors bigint[],
  first_floors integer[],
  last_floors integer[],
  floor_lanes smallint[],
  floor_keys bigint[],
  -- Where to look for other flows: after look_after[n] and before look_before[n]. In one turn, such a flow gets new_turn
  -- jobs, and its oldest go first if `fifo`.
  look_after bigint[],
  look_before bigint[],
  new_turn integer,
  fifo boolean,
  free_cpu_units double precision,
  free_memory_mb double precision,
  -- How many of the jobs may exceed the free capacity.
  ahead integer
);

create sequence announced_ms;
comment on sequence announced_ms is 'When a submission last notified the workers, in milliseconds. See announce().';

create sequence lease_tokens cache 1;

create table leases (
  -- Fences every write of the holder: without this token it changes nothing. Each new lease has a higher token.
  token bigint primary key,
  worker_id text not null,
  -- A claimed job counts as running from here on, although it may wait in the worker for a slot.
  claimed_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- The jobs of one claim. The other arrays have one value per job, in the same order.
  job_ids uuid[] not null,
  org_ids uuid[] not null,
  attempts integer[] not null,
  -- How many jobs the claim took. If the arrays still have as many, none was removed, and outcomes need no check.
  claimed_jobs integer not null,
  alone boolean not null default false
)
with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0
);
comment on table leases is
  'One row for each claim, however many jobs it took. It is renewed as a whole and deleted when the last job has ended.
A completed job stays in the arrays until then; its row in finished_jobs shows that it has completed.';
comment on column leases.alone is 'The only job of this lease runs alone, because it is suspected to kill its worker.';

-- Ids do not compress, but organisations and attempts repeat.
alter table leases alter column job_ids set storage external;

create table finished_jobs (
  org_id uuid not null,
  job_id uuid not null,
  series_id bigint not null,
  state job_state not null,
  attempts integer not null,
  result jsonb,
  error jsonb,
  -- Groups dead letters with the same error.
  fingerprint text,
  -- The last attempt. Null if the job was never started.
  worker_id text,
  started_at timestamptz,
  -- The runtime of the last attempt by the worker's clock. Null if it was cancelled, lost or never started.
  runtime_ms double precision,
  finished_at timestamptz not null default now(),
  primary key (org_id, job_id),
  constraint finished_jobs_state check (state in ('completed', 'failed', 'cancelled')),
  constraint finished_jobs_error check ((state = 'failed') = (error is not null and fingerprint is not null))
)
with (autovacuum_vacuum_insert_scale_factor = 0.05);
comment on table finished_jobs is
  'Completed, failed and cancelled jobs with their last attempt. The hot path only inserts into it.';

-- The state is a predicate instead of a column, so that completed jobs cost nothing.
create index finished_jobs_failed on finished_jobs (org_id, job_id) where state = 'failed';
comment on index finished_jobs_failed is 'Serves list-jobs by status failed.';

create index finished_jobs_cancelled on finished_jobs (org_id, job_id) where state = 'cancelled';
comment on index finished_jobs_cancelled is 'Serves list-jobs by status cancelled.';

create index finished_jobs_dead on finished_jobs (org_id, fingerprint, job_id) include (series_id, finished_at)
where state = 'failed';
comment on index finished_jobs_dead is
  'Serves list-dead-letters by an index-only scan, and list-jobs by fingerprint.';

create table attempts (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  job_id uuid not null,
  attempt integer not null,
  outcome text not null,
  error jsonb,
  worker_id text not null,
  started_at timestamptz not null,
  finished_at timestamptz not null default now(),
  constraint attempts_outcome check (outcome in ('failed', 'lost', 'snoozed', 'cancelled', 'given_back'))
);
comment on table attempts is 'Attempts that did not finish their job. The one that did is in finished_jobs.';

create index attempts_by_job on attempts (org_id, job_id, id);
comment on index attempts_by_job is 'Serves list-attempts and reclaim-expired-leases.';

create table pauses (
  org_id uuid not null references orgs on delete cascade,
  -- Null pauses all jobs of the organisation.
  type text,
  paused_at timestamptz not null default now(),
  constraint pauses_once unique nulls not distinct (org_id, type)
);
comment on table pauses is 'Claims skip paused jobs, and the leader parks them.';

create table reservations (
  job_id uuid primary key,
  org_id uuid not null,
  worker_id text not null,
  cpu_units real not null,
  memory_mb integer not null
);
comment on table reservations is 'Capacity that a worker keeps free for a big job that smaller jobs kept overtaking.';

create index reservations_by_worker on reservations (worker_id);
comment on index reservations_by_worker is 'Serves exchange.';

create view queue_entries with (security_invoker = true) as
select
  j.id as job_id, j.org_id, j.series_id, j.type,
  -- A subquery, so that every plan starts from the job, whatever the estimated number of series.
  lane_of(
    j.rank_base + j.rank_slope * coalesce(
      (select s.mean_log from series s where s.id = j.series_id) + j.residual_log, ln(j.predicted_ms)
    )
  ) as lane,
  flow_of(j.org_id, j.fairness_key) as flow,
  j.cpu_units, j.memory_mb,
  j.predicted_ms::real as predicted_ms,
  j.deadline - j.predicted_p90_ms * interval '1 millisecond' as start_by
from jobs j;
comment on view queue_entries is 'The row that a job would get in ready_jobs if it became ready now.';

create view held_jobs with (security_invoker = true) as
select l.token, l.worker_id, l.expires_at, h.job_id, h.org_id, h.attempt, l.claimed_at as started_at, l.alone
from leases l
cross join lateral unnest(l.job_ids, l.org_ids, l.attempts) as h (job_id, org_id, attempt)
where not exists (select from finished_jobs f where f.org_id = h.org_id and f.job_id = h.job_id);
comment on view held_jobs is
  'Jobs that a worker holds. The arrays of a lease may still name jobs that have completed; these are left out.';

create view job_overview with (security_invoker = true) as
select
  j.id, j.org_id, j.created_by, j.series_id, j.type, j.name, j.payload, j.priority, j.tags, j.timeout_seconds,
  j.max_attempts, j.initial_delay_seconds, j.backoff_multiplier, j.cpu_units, j.memory_mb, j.run_at, j.deadline,
  j.on_parent_failure, j.predicted_ms, j.predicted_p90_ms, j.prediction_source, j.model_version,
  j.rank_base + j.rank_slope * ln(j.predicted_ms) as rank,
  j.created_at,
  case
    when f.job_id is not null then f.state
    when w.job_id is not null then w.state
    when r.job_id is not null then 'ready'::job_state
    when b.job_id is not null then 'blocked'::job_state
    when l.token is not null then 'running'::job_state
  end as status,
  coalesce(f.attempts, w.attempts, r.attempts, l.attempt, 0) as attempts,
  case when f.job_id is not null then f.worker_id else l.worker_id end as worker_id,
  case when f.job_id is not null then f.started_at else l.claimed_at end as started_at,
  f.finished_at, f.runtime_ms, f.result,
  coalesce(f.error, w.error) as error,
  p.progress, p.note as progress_note, j.predicted_p99_ms, j.promised_wait_ms, j.callback_url, j.triggered_by,
  j.traceparent, j.fairness_key
from jobs j
left join finished_jobs f on f.org_id = j.org_id and f.job_id = j.id
left join waiting_jobs w on w.job_id = j.id
left join ready_jobs r on r.org_id = j.org_id and r.job_id = j.id
left join blocked_jobs b on b.job_id = j.id
left join lateral (
  select o.token, o.worker_id, o.claimed_at, o.attempts[n] as attempt
  from leases o
  cross join lateral array_position(o.job_ids, j.id) as n
  where n is not null
    -- Skips the lookup if another table already determines the status.
    and coalesce(f.job_id, w.job_id, r.job_id, b.job_id) is null
  order by o.token desc
  limit 1
) l on true
left join job_progress p on p.job_id = j.id;
comment on view job_overview is 'Each job with its status. Only this view defines which table means which status.';

create view job_summaries with (security_invoker = true) as
select
  id, org_id, created_by, triggered_by, callback_url, fairness_key, type, name, status, priority, rank, predicted_ms,
  predicted_p90_ms, prediction_source, model_version, cpu_units, memory_mb, tags, timeout_seconds, max_attempts,
  initial_delay_seconds, backoff_multiplier, run_at, deadline,
  -- Judged as at submission, by the 90th percentile, until the job has finished.
  coalesce(
    case
      when finished_at is not null then finished_at
      when started_at is not null then greatest(now(), started_at + predicted_p90_ms * interval '1 millisecond')
      else greatest(now(), run_at) + predicted_p90_ms * interval '1 millisecond'
    end > deadline,
    false
  ) as deadline_at_risk,
  coalesce(
    status = 'running' and started_at + greatest(predicted_p99_ms, 1000) * interval '1 millisecond' < now()
      and predicted_p99_ms is not null,
    false
  ) as slow,
  on_parent_failure, attempts, worker_id, progress, progress_note, error, created_at, started_at, finished_at
from job_overview;
comment on view job_summaries is 'Jobs as lists show them, without payloads and results.';

call isolate_by_org(
  'waiting_jobs', 'blocked_jobs', 'ready_jobs', 'finished_jobs', 'attempts', 'pauses', 'reservations'
);
call enable_row_security('leases');

create policy of_scope on leases to smartqueue_functions
  using (org_ids && (select scope_orgs())::uuid[] or (select sees_all_orgs()));
comment on policy of_scope on leases is
  'A lease may hold jobs of several organisations. It has only their ids; row-level security protects the jobs.';
create policy of_all_orgs on leases to smartqueue_workers using (true);

grant execute on function lane_of to smartqueue_functions, smartqueue_workers;
grant select on
  waiting_jobs, blocked_jobs, ready_jobs, leases, finished_jobs, attempts, pauses, reservations, queue_entries,
  held_jobs, job_overview, job_summaries
to smartqueue_functions, smartqueue_workers;
grant insert, delete on pauses to smartqueue_functions;
-- Retention. Everything else is written by the functions in db/queue.
grant delete on finished_jobs, attempts to smartqueue_workers;
-- Locking a row requires the right to update one of its columns.
grant update (finished_at) on finished_jobs to smartqueue_workers;
