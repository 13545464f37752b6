-- What the queue learns from: every execution, what the predictor remembers of each stream, and the versions of the model.

alter table streams
  -- How far the last executions lay from the running mean: above nought the stream is getting slower.
  add column drift_log double precision not null default 0;

alter table type_estimates
  -- Of the newest executions of the type.
  add column median_log double precision,
  add column drift_log double precision not null default 0;

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

alter table jobs
  -- How far the prediction lies from the stream's mean at submission: while the job waits, it keeps that distance.
  add column residual_log real not null default 0,
  -- Beyond this an attempt is slow. Null: not enough is known of the stream.
  add column predicted_p99_ms double precision,
  -- How long after its submission the job was promised to start.
  add column promised_wait_ms double precision,
  -- What the predictor saw, packed by db/learning/sample.ts: what is learned from when the job has run. Of jobs that were
  -- submitted together and look alike only the first few have one.
  add column sample bytea;

create table executions (
  -- The transaction and the order within it: what is read in this order, up to the oldest transaction that still runs, has no gaps.
  xid xid8 not null default pg_current_xact_id(),
  id bigint generated always as identity,
  org_id uuid not null,
  stream_id bigint not null,
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

create table stream_memories (
  stream_id bigint primary key references streams on delete cascade,
  org_id uuid not null,
  -- Packed by db/learning/stream-memory.ts: the newest executions, the errors of the experts, the state of the network.
  memory bytea not null,
  updated_at timestamptz not null default now()
)
with (fillfactor = 70);
comment on table stream_memories is 'What the predictor remembers of a stream beyond its running estimate. Kept by the learner.';

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

create function forget_streams(in_streams bigint[]) returns integer
language plpgsql
set lock_timeout = '50ms'
as $$
-- Deletes those of which no job is left. A submission looks its stream up and stores its job in one statement, and
-- refers to a stream that it saw even if that has been deleted meanwhile. So for a moment there must be none: whoever
-- inserts jobs holds a lock from before its snapshot until it commits, which this one waits for; those that come later see
-- what was deleted, and make the stream anew. Null: others did not let go of the table in time.
declare
  forgotten integer;
begin
  lock table jobs in share mode;
  with deleted as (
    delete from streams s
    where s.id = any (in_streams)
      and not exists (select from jobs j where j.stream_id = s.id)
    returning s.id
  )
  select count(*) into forgotten
  from deleted;
  return forgotten;
exception
  when lock_not_available then return null;
end
$$;

create or replace view queue_entries with (security_invoker = true) as
select
  j.id as job_id,
  j.org_id,
  j.stream_id,
  j.type,
  lane_of(j.rank_base + j.rank_slope * coalesce(s.mean_log + j.residual_log, ln(j.predicted_ms))) as lane,
  j.cpu_units,
  j.memory_mb,
  j.predicted_ms::real as predicted_ms,
  j.deadline - j.predicted_p90_ms * interval '1 millisecond' as start_by,
  j.run_at
from jobs j
join streams s on s.id = j.stream_id;

create or replace view job_overview with (security_invoker = true) as
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
  p.note as progress_note,
  j.predicted_p99_ms,
  j.promised_wait_ms
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

-- The queue as a whole, for those who ask when a job will start. Behind the wall an organisation sees only its own jobs, but
-- all stand in one queue: these functions answer sums over it, and nothing of anybody's.

create unlogged table queue_snapshots (
  -- One row, or none after a crash.
  only_row boolean primary key default true,
  taken_at timestamptz not null default 'epoch',
  took_ms double precision not null default 0,
  -- Jobs that could be claimed, by lane: how many, and their predicted milliseconds.
  lanes smallint[] not null default '{}',
  lane_jobs integer[] not null default '{}',
  lane_ms double precision[] not null default '{}',
  -- Of each job that runs, the milliseconds that it will probably take yet.
  running_ms real[] not null default '{}',
  -- Jobs that a worker has claimed and not started: before all others.
  held_jobs integer not null default 0,
  held_ms double precision not null default 0,
  -- What keeps coming: how many slots the jobs of each lane have filled lately.
  flow_lanes smallint[] not null default '{}',
  flow_loads double precision[] not null default '{}',
  -- How many times as long as predicted all of that took together.
  stretch double precision not null default 1,
  constraint queue_snapshots_only_row check (only_row)
)
with (fillfactor = 10);
comment on table queue_snapshots is
  'The queue in sums, made by whoever asks and finds it too old. Not logged: it is worth a few seconds.';

create function queue_snapshot(at_leisure boolean default false) returns queue_snapshots
language plpgsql security definer
set search_path = pg_catalog, public
set max_parallel_workers_per_gather = 0
as $$
-- Made anew at most once a second, and so seldom that it takes no more than a twentieth of the time: with a million ready
-- jobs it takes 0.3 s. One at a time: who comes meanwhile makes do with the one before. So does who is in a hurry, if it
-- takes long, for up to a minute: others come at leisure.
declare
  known queue_snapshots;
  locked queue_snapshots;
  began constant timestamptz := clock_timestamp();
begin
  select * into known from queue_snapshots;
  if
    began - known.taken_at < greatest(interval '1 second', 20 * known.took_ms * interval '1 millisecond')
    or (not at_leisure and known.took_ms > 20 and began - known.taken_at < interval '1 minute')
  then
    return known;
  end if;
  if known.only_row is null then
    insert into queue_snapshots default values on conflict do nothing;
  end if;
  select * into locked from queue_snapshots for update skip locked;
  if locked.only_row is null then
    return known;
  elsif locked.taken_at > known.taken_at then
    return locked;
  end if;
  select coalesce(array_agg(lane), '{}'), coalesce(array_agg(jobs), '{}'), coalesce(array_agg(ms), '{}')
  into locked.lanes, locked.lane_jobs, locked.lane_ms
  from (
    select lane, count(*)::integer as jobs, sum(predicted_ms)::double precision as ms
    from ready_jobs
    where lane < 5000
    group by lane
    order by lane
  ) by_lane;
  select
    coalesce(array_agg(remaining_ms::real) filter (where started), '{}'),
    count(*) filter (where not started),
    coalesce(sum(remaining_ms) filter (where not started), 0)
  into locked.running_ms, locked.held_jobs, locked.held_ms
  from (
    select
      h.started_at is not null as started,
      -- What has run beyond its median will run on, the longer the wider its spread.
      greatest(
        j.predicted_ms - coalesce(ran.ms, 0), ran.ms * (sqrt(j.predicted_p90_ms / j.predicted_ms) - 1), 1
      ) as remaining_ms
    from leases l
    cross join lateral unnest(l.job_ids, l.org_ids, l.started_ats) as h (job_id, org_id, started_at)
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    cross join lateral (select extract(epoch from began - h.started_at)::double precision * 1000 as ms) ran
    where l.expires_at > began
      and not exists (select from finished_jobs f where f.org_id = h.org_id and f.job_id = h.job_id)
    limit 5000
  ) in_hand;
  -- By the newest rows, which stand at the right of the index, up to a minute. A row is of one stream: its first job tells the
  -- lane of all, and its first few how long they ran.
  select
    coalesce(array_agg(lane), '{}'), coalesce(array_agg(load), '{}'),
    -- Two seconds say nothing. Beyond three times it is not the sums that are wrong.
    least(3, greatest(1, (coalesce(sum(ran_ms), 0) + 2000) / (coalesce(sum(predicted_ms), 0) + 2000)))
  into locked.flow_lanes, locked.flow_loads, locked.stretch
  from (
    select
      lane_of(j.rank_base + j.rank_slope * ln(j.predicted_ms)) as lane,
      sum(e.ran_ms) / max(case when e.rows < 100 then 60000 else greatest(1000, e.span_ms) end) as load,
      sum(e.ran_ms) as ran_ms,
      sum(e.jobs * j.predicted_ms) as predicted_ms
    from (
      select
        newest.org_id, newest.job_id, newest.jobs, newest.ran_ms, count(*) over () as rows,
        extract(epoch from began - min(newest.at) over ())::double precision * 1000 as span_ms
      from (
        select
          org_id, job_ids[1] as job_id, at, cardinality(ran_ms) as jobs,
          cardinality(ran_ms) * (select avg(ms) from unnest(ran_ms[1:8]) ms) as ran_ms
        from executions
        order by xid desc, id desc
        limit 100
      ) newest
      where newest.at > began - interval '1 minute'
    ) e
    join jobs j on j.org_id = e.org_id and j.id = e.job_id
    group by 1
  ) by_lane;
  update queue_snapshots
  set
    taken_at = began,
    took_ms = extract(epoch from clock_timestamp() - began) * 1000,
    lanes = locked.lanes,
    lane_jobs = locked.lane_jobs,
    lane_ms = locked.lane_ms,
    running_ms = locked.running_ms,
    held_jobs = locked.held_jobs,
    held_ms = locked.held_ms,
    flow_lanes = locked.flow_lanes,
    flow_loads = locked.flow_loads,
    stretch = locked.stretch
  returning * into known;
  return known;
end
$$;

create function queue_ahead(in_org uuid, in_job uuid, most integer)
returns table (lane smallint, jobs integer, predicted_ms double precision, counted boolean, lane_position double precision)
language sql stable security definer
set search_path = pg_catalog, public
set enable_seqscan = off
-- Jobs that would be claimed before this one by their lane, `counted` if they are fewer than `most`. Else its place within
-- its lane, from 0 to 1, tells about how many: keys are given one after the other.
begin atomic
  select
    mine.lane, count(a.predicted_ms)::integer, coalesce(sum(a.predicted_ms), 0)::double precision,
    count(a.predicted_ms) < most,
    case
      when count(a.predicted_ms) < most then null
      else coalesce(
        (mine.key - (select min(r.key) from ready_jobs r where r.lane = mine.lane))::double precision
          / nullif((select max(r.key) - min(r.key) from ready_jobs r where r.lane = mine.lane), 0),
        0
      )
    end
  from ready_jobs mine
  left join lateral (
    select r.predicted_ms
    from ready_jobs r
    where (r.lane, r.key) < (mine.lane, mine.key)
    order by r.lane, r.key
    limit most
  ) a on true
  where mine.org_id = in_org
    and mine.job_id = in_job
    and (sees_all_orgs() or in_org = any (scope_orgs()))
  group by mine.lane, mine.key;
end;

create function count_slow_jobs() returns bigint
language sql stable security definer
set search_path = pg_catalog, public
-- Running beyond their 99th percentile, of all organisations.
begin atomic
  select count(*)
  from leases l
  cross join lateral unnest(l.job_ids, l.org_ids, l.started_ats) as h (job_id, org_id, started_at)
  join jobs j on j.org_id = h.org_id and j.id = h.job_id
  where l.expires_at > now()
    and j.predicted_p99_ms is not null
    and h.started_at < now() - greatest(j.predicted_p99_ms, 1000) * interval '1 millisecond'
    and not exists (select from finished_jobs f where f.org_id = h.org_id and f.job_id = h.job_id);
end;

do $$
declare
  walled text;
begin
  foreach walled in array '{org_type_estimates, executions, stream_memories}'::text[] loop
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
  org_type_estimates, executions, stream_memories, models, learning_state, accuracy_points, prediction_faults
to smartqueue_functions;
grant insert, update on prediction_faults to smartqueue_functions;
-- A cancellation of a running job is an execution, too.
grant insert on executions to smartqueue_functions;
grant select, insert, update, delete on
  org_type_estimates, executions, stream_memories, models, learning_state, accuracy_points, prediction_faults
to smartqueue_workers;
-- Streams that nothing is left of are forgotten.
grant delete on streams to smartqueue_workers;
