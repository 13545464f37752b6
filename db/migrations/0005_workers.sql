-- Who works, who leads, and what must not be claimed.

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
  constraint workers_status check (status in ('online', 'draining', 'offline'))
)
with (fillfactor = 50);
comment on table workers is 'The registry of worker pods. Each writes its own row every two seconds.';

create table scheduler_leader (
  -- One row: the leader of the newest term, alive or not.
  only_row boolean primary key default true,
  worker_id text not null,
  term bigint not null,
  -- The server process that holds the leader's lock. A standby ends it if the leader has gone silent.
  backend_pid integer not null,
  elected_at timestamptz not null default now(),
  last_seen timestamptz not null default now(),
  constraint scheduler_leader_only_row check (only_row)
)
with (fillfactor = 50);

create table pauses (
  org_id uuid not null references orgs on delete cascade,
  -- Null pauses the whole queue of the organisation.
  type text,
  paused_by uuid,
  paused_at timestamptz not null default now(),
  constraint pauses_once unique nulls not distinct (org_id, type)
);
comment on table pauses is 'What claims pass over, and the leader parks.';

create table reservations (
  job_id uuid primary key,
  org_id uuid not null,
  worker_id text not null,
  cpu_units real not null,
  memory_mb integer not null,
  reserved_at timestamptz not null default now()
);
comment on table reservations is 'Capacity that a worker keeps free for a big job that smaller ones kept overtaking.';

create index reservations_by_worker on reservations (worker_id);
comment on index reservations_by_worker is 'Serves exchange-jobs.';

create function has_finished(in_org uuid, in_job uuid) returns boolean
language plpgsql
as $$
-- Being a function it looks with a fresh snapshot, after the caller has locked the job's lease: an end that was
-- committed between the caller's snapshot and its lock is seen.
begin
  return exists (select from finished_jobs f where f.org_id = in_org and f.job_id = in_job);
end
$$;

create view held_jobs as
select l.token, l.worker_id, l.expires_at, h.job_id, h.org_id, h.attempt, h.started_at
from leases l
cross join lateral unnest(l.job_ids, l.org_ids, l.attempts, l.started_ats) as h (job_id, org_id, attempt, started_at)
where not exists (select from finished_jobs f where f.org_id = h.org_id and f.job_id = h.job_id);
comment on view held_jobs is
  'Jobs in the hands of a worker. Of those that it does not hold any more, a lease names only completed ones.';

create view job_overview as
select
  j.id,
  j.org_id,
  j.created_by,
  j.stream_id,
  j.type,
  j.name,
  j.payload,
  j.priority,
  j.tags,
  j.timeout_seconds,
  j.max_attempts,
  j.initial_delay_seconds,
  j.backoff_multiplier,
  j.cpu_units,
  j.memory_mb,
  j.run_at,
  j.deadline,
  j.on_parent_failure,
  j.predicted_ms,
  j.predicted_p90_ms,
  j.prediction_source,
  j.model_version,
  j.rank_base + j.rank_slope * ln(j.predicted_ms) as rank,
  j.created_at,
  case
    when f.job_id is not null then f.state
    when w.job_id is not null then w.state
    when r.job_id is not null then 'ready'::job_state
    when b.job_id is not null then 'blocked'::job_state
    when l.started_at is not null then 'running'::job_state
    when l.token is not null then 'ready'::job_state
  end as status,
  coalesce(
    f.attempts, w.attempts, r.attempts, case when l.started_at is null then l.attempt - 1 else l.attempt end, 0
  ) as attempts,
  case when f.job_id is not null then f.worker_id when w.job_id is null and r.job_id is null and l.started_at is not null then l.worker_id end as worker_id,
  case when f.job_id is not null then f.started_at when w.job_id is null and r.job_id is null then l.started_at end as started_at,
  f.finished_at,
  f.runtime_ms,
  f.result,
  coalesce(f.error, w.error) as error,
  p.progress,
  p.note as progress_note
from jobs j
left join finished_jobs f on f.org_id = j.org_id and f.job_id = j.id
left join waiting_jobs w on w.job_id = j.id
left join ready_jobs r on r.org_id = j.org_id and r.job_id = j.id
left join blocked_jobs b on b.job_id = j.id
left join lateral (
  select o.token, o.worker_id, o.attempts[n] as attempt, o.started_ats[n] as started_at
  from leases o
  cross join lateral array_position(o.job_ids, j.id) as n
  where n is not null
    -- Not even looked for where the status is known without.
    and coalesce(f.job_id, w.job_id, r.job_id, b.job_id) is null
  order by o.token desc
  limit 1
) l on true
left join job_progress p on p.job_id = j.id;
comment on view job_overview is 'Each job with its status: the one place that says which table means what.';
