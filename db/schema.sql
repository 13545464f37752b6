-- The whole schema, for reading. The migrations make it; a test proves that both are the same.

create table orgs (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now(),
  constraint orgs_name_length check (char_length(name) between 1 and 100)
);

create table users (
  id uuid primary key,
  username text not null,
  -- scrypt, in the form that functions/auth/passwords.ts writes.
  password_hash text not null,
  -- Sees every organisation. Inside an organisation the membership decides.
  is_admin boolean not null default false,
  created_at timestamptz not null default now(),
  constraint users_username_length check (char_length(username) between 3 and 64)
);

create unique index users_username_key on users (lower(username));
comment on index users_username_key is 'Serves find-account; names that differ only in case are one name.';

create table memberships (
  org_id uuid not null references orgs on delete cascade,
  user_id uuid not null references users on delete cascade,
  role text not null,
  created_at timestamptz not null default now(),
  primary key (org_id, user_id),
  constraint memberships_role check (role in ('org_admin', 'user'))
);

create index memberships_by_user on memberships (user_id, created_at);
comment on index memberships_by_user is 'Serves find-account: the organisations of one user, oldest first.';

-- One sign-in. Its refresh tokens replace each other; presenting a replaced one revokes the family.
create table refresh_families (
  id uuid primary key,
  user_id uuid not null,
  org_id uuid not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  foreign key (org_id, user_id) references memberships on delete cascade
);

create index refresh_families_by_member on refresh_families (org_id, user_id);
comment on index refresh_families_by_member is 'Serves the cascade when a membership ends.';

create table refresh_tokens (
  -- SHA-256 of the opaque token: a leaked table signs nobody in.
  token_hash bytea primary key,
  family_id uuid not null references refresh_families on delete cascade,
  expires_at timestamptz not null,
  replaced_at timestamptz
);

create index refresh_tokens_by_family on refresh_tokens (family_id);
comment on index refresh_tokens_by_family is 'Serves the cascade when a family ends.';

-- What a job is never changes after submission; where it stands is told by the one table that holds it:
-- waiting_jobs, blocked_jobs, ready_jobs, leases or finished_jobs. Each transition moves the row in one statement.
-- The queue tables carry no foreign key to jobs: they are written only by those statements, from rows they
-- have just moved, and a key check would lock and dirty the wide row on every move.

create table job_types (
  type text primary key,
  -- JSON Schema of the payload, as the handler's own schema describes it.
  payload_schema jsonb not null,
  registered_at timestamptz not null default now(),
  constraint job_types_type_form check (type ~ '^[a-z][a-z0-9._-]{0,63}$')
);
comment on table job_types is 'Types that a worker has a handler for. Submission refuses all others.';

create type job_state as enum
  ('pending', 'blocked', 'ready', 'running', 'retrying', 'completed', 'failed', 'cancelled');
comment on type job_state is 'An enum and not a checked text: it is written for each transition, in a quarter of the bytes.';

-- Streams: what repeats, and so can be learned.

create table streams (
  id bigint generated always as identity primary key,
  org_id uuid not null references orgs on delete cascade,
  type text not null,
  name text not null,
  -- Completed executions; a robust running mean of ln(milliseconds), and its mean absolute deviation.
  runs bigint not null default 0,
  mean_log double precision,
  deviation_log double precision,
  -- The mean that queued jobs were last scored with, and whether the two have come a lane apart.
  scored_log double precision,
  moved boolean not null default false,
  constraint streams_identity unique (org_id, type, name)
)
-- Each group of completions updates its streams: in place (HOT), as long as the page has room.
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
comment on table streams is 'An organisation''s jobs of one type and name, with the running estimate of their runtime.';

create index streams_moved on streams (id) where moved;
comment on index streams_moved is 'Serves rescore-jobs: streams whose queued jobs stand in the wrong lane.';

create table type_estimates (
  -- The empty type stands for all of them.
  type text primary key,
  runs bigint not null,
  mean_log double precision not null,
  deviation_log double precision not null
);
comment on table type_estimates is 'What a stream without executions starts from. Kept by the leader.';

create function lane_of(rank double precision) returns smallint
language sql immutable parallel safe
-- A tenth in ln wide: jobs of one lane differ by less than 10 % in rank and run in order of arrival.
return floor(least(greatest(rank, -100), 100) * 10)::smallint;

create function error_fingerprint(error jsonb) returns text
language sql immutable parallel safe
-- Errors that differ only in ids, numbers, addresses or quoted values are the same error. A number that the message
-- begins with is a status, and tells them apart.
return md5(
  coalesce(error ->> 'code', '') || ' ' || coalesce(substring(error ->> 'message' from '^[0-9]{3}\M'), '') || ' ' ||
  regexp_replace(
    regexp_replace(left(coalesce(error ->> 'message', ''), 400), '"[^"]*"|''[^'']*''|`[^`]*`', '?', 'g'),
    '[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|[0-9a-f]{12,}|[0-9]+', '#', 'gi'
  )
);

-- Checked types and not checks of the table: what a thousand jobs have in common is then checked once, not a thousand
-- times, and a check of a table is parsed anew by each statement.
create domain job_name as text constraint job_name_length check (char_length(value) between 1 and 200);
create domain payload_object as jsonb constraint payload_object_is_one check (jsonb_typeof(value) = 'object');
create domain job_priority as text constraint job_priority_is_known check (value in ('critical', 'high', 'normal', 'low'));
create domain parent_failure_rule as text constraint parent_failure_rule_is_known check (value in ('fail', 'wait'));
create domain prediction_source as text
  constraint prediction_source_is_known check (value in ('lstm', 'stream', 'type', 'default'));
create domain positive_integer as integer constraint positive_integer_is_positive check (value > 0);
create domain unsigned_integer as integer constraint unsigned_integer_is_not_negative check (value >= 0);
create domain unsigned_real as real constraint unsigned_real_is_not_negative check (value >= 0);
create domain unsigned_double as double precision constraint unsigned_double_is_not_negative check (value >= 0);
create domain growth_factor as double precision constraint growth_factor_grows check (value >= 1);

create table jobs (
  org_id uuid not null,
  id uuid not null,
  created_by uuid,
  stream_id bigint not null,
  type text not null,
  name job_name not null,
  payload payload_object not null,
  priority job_priority not null,
  tags text[] not null,
  timeout_seconds positive_integer,
  max_attempts positive_integer not null,
  initial_delay_seconds unsigned_double not null,
  backoff_multiplier growth_factor not null,
  cpu_units unsigned_real not null,
  memory_mb unsigned_integer not null,
  run_at timestamptz,
  deadline timestamptz,
  on_parent_failure parent_failure_rule not null,
  -- The prediction at submission, and where it came from.
  predicted_ms double precision not null,
  predicted_p90_ms double precision not null,
  prediction_source prediction_source not null,
  model_version integer,
  -- Order in the queue, lowest first: rank_base + rank_slope × the stream's mean_log. See db/rules/priority.ts.
  rank_base double precision not null,
  rank_slope real not null,
  created_at timestamptz not null default now(),
  primary key (org_id, id)
);
comment on table jobs is 'What was submitted. Never changes.';

create index jobs_by_stream on jobs (stream_id, id) with (deduplicate_items = off);
comment on index jobs_by_stream is 'Serves list-jobs by type and by name.';

create index jobs_by_priority on jobs (org_id, priority, id) where priority <> 'normal';
comment on index jobs_by_priority is 'Serves list-jobs by a priority that is not the common one.';

create index jobs_by_tag on jobs using gin (tags) where tags <> '{}';
comment on index jobs_by_tag is 'Serves list-jobs by tag.';

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
comment on table waiting_jobs is 'Pending and retrying jobs: what becomes ready when its time comes.';

create index waiting_jobs_due on waiting_jobs (wake_at);
comment on index waiting_jobs_due is 'Serves wake-due-jobs.';

create index waiting_jobs_by_org on waiting_jobs (org_id, state, job_id);
comment on index waiting_jobs_by_org is 'Serves list-jobs by status pending and retrying, next to organisations with many.';

create sequence ready_keys cache 1;

create table ready_jobs (
  org_id uuid not null,
  job_id uuid not null,
  stream_id bigint not null,
  type text not null,
  -- The rank, to a tenth. 10000 is added while the job is parked: paused, or of a type that no worker handles.
  lane smallint not null,
  -- Order of becoming ready. It only grows, which is what lets a worker remember where a lane begins.
  key bigint not null default nextval('ready_keys'),
  attempts integer not null,
  cpu_units real not null,
  memory_mb integer not null,
  predicted_ms real not null,
  -- Latest start that still makes the deadline.
  start_by timestamptz,
  -- A worker vanished with it in hand, before it said that it started it.
  suspect boolean not null default false,
  ready_at timestamptz not null default now(),
  primary key (org_id, job_id)
)
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- Keys are never equal: to look for equal entries whenever a page is full would be for nothing.
create index ready_jobs_order on ready_jobs (lane, key) with (deduplicate_items = off);
comment on index ready_jobs_order is 'Serves exchange-jobs: lowest lane first, in order of arrival within it.';

create index ready_jobs_age on ready_jobs (key) with (deduplicate_items = off) where lane < 5000;
comment on index ready_jobs_age is 'Serves exchange-jobs: the oldest first, whatever its lane.';

create index ready_jobs_parked on ready_jobs (key) where lane >= 5000;
comment on index ready_jobs_parked is 'Serves unpark-jobs.';

create index ready_jobs_start_by on ready_jobs (start_by) where start_by is not null and lane < 5000;
comment on index ready_jobs_start_by is 'Serves exchange-jobs: jobs that must start now to make their deadline.';

create index ready_jobs_big on ready_jobs (ready_at) where (cpu_units > 1 or memory_mb > 64) and lane < 5000;
comment on index ready_jobs_big is 'Serves reserve-capacity: jobs that smaller ones can overtake.';

create sequence lease_tokens cache 1;

create table leases (
  -- Fences every write of the holder: whoever no longer owns this token changes nothing. Grows from lease to lease.
  token bigint primary key,
  worker_id text not null,
  expires_at timestamptz not null,
  -- The jobs of one claim, in its order; the other arrays have a value for each.
  job_ids uuid[] not null,
  org_ids uuid[] not null,
  attempts integer[] not null,
  -- Null while the worker holds the job and has not started it.
  started_ats timestamptz[] not null
)
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
comment on table leases is
  'One for each claim, however many jobs it took: it is inserted once, renewed as one, and deleted when the last of them
has ended. A job that ended before the others stays in it until then; where else it stands says so.';

-- Compressing ids gains nothing.
alter table leases
  alter column job_ids set storage external,
  alter column org_ids set storage external,
  alter column attempts set storage external,
  alter column started_ats set storage external;

create table finished_jobs (
  org_id uuid not null,
  job_id uuid not null,
  stream_id bigint not null,
  state job_state not null,
  attempts integer not null,
  result jsonb,
  error jsonb,
  -- Groups dead letters.
  fingerprint text,
  -- The last attempt. Null if the job never started.
  worker_id text,
  started_at timestamptz,
  -- What a completed execution teaches: its runtime, by the worker's clock.
  runtime_ms double precision,
  finished_at timestamptz not null default now(),
  primary key (org_id, job_id),
  constraint finished_jobs_state check (state in ('completed', 'failed', 'cancelled')),
  constraint finished_jobs_error check ((state = 'failed') = (error is not null and fingerprint is not null))
)
with (autovacuum_vacuum_insert_scale_factor = 0.05);
comment on table finished_jobs is 'Completed, failed and cancelled jobs with their last attempt. Off the hot path: only inserted into.';

create index finished_jobs_unsuccessful on finished_jobs (org_id, state, job_id) where state <> 'completed';
comment on index finished_jobs_unsuccessful is 'Serves list-jobs by status failed and cancelled.';

create index finished_jobs_dead on finished_jobs (org_id, fingerprint, job_id) include (stream_id, finished_at)
where state = 'failed';
comment on index finished_jobs_dead is 'Serves list-dead-letters, without a look at the table, and list-jobs by fingerprint.';

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
comment on table attempts is 'Tries that did not finish their job. The one that did stands in finished_jobs.';

create index attempts_by_job on attempts (org_id, job_id, id);
comment on index attempts_by_job is 'Serves list-attempts.';

create table job_event_groups (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  at timestamptz not null default now(),
  job_ids uuid[] not null,
  states job_state[] not null,
  attempts integer[] not null,
  reasons text[] not null,
  ats timestamptz[] not null,
  ran_ms double precision[] not null default '{}'
);
comment on table job_event_groups is
  'Transitions of an organisation''s jobs, written by the statement that makes them: one row for all of a statement.
An array with one value speaks for all jobs, an empty one means: no reason, or the time of the row.';
comment on column job_event_groups.ran_ms is
  'Of jobs whose start is told together with their end: how long before the end it was.';

alter table job_event_groups
  alter column job_ids set storage external,
  alter column states set storage external,
  alter column attempts set storage external,
  alter column ats set storage external,
  alter column ran_ms set storage external;

create index job_event_groups_by_time on job_event_groups using brin (at) with (pages_per_range = 16, autosummarize = on);
comment on index job_event_groups_by_time is 'Serves delete-expired-events.';

create view job_events as
select
  g.id, n::bigint as position, g.org_id, g.job_ids[n] as job_id, 'running'::job_state as state,
  g.attempts[least(n, cardinality(g.attempts))] as attempt, null as reason,
  g.at - g.ran_ms[n] * interval '1 millisecond' as at
from job_event_groups g
cross join lateral generate_series(1, cardinality(g.ran_ms)) as n
union all
select
  g.id, n::bigint + cardinality(g.ran_ms), g.org_id, g.job_ids[n], g.states[least(n, cardinality(g.states))],
  g.attempts[least(n, cardinality(g.attempts))], g.reasons[least(n, cardinality(g.reasons))],
  coalesce(g.ats[least(n, cardinality(g.ats))], g.at)
from job_event_groups g
cross join lateral generate_series(1, cardinality(g.job_ids)) as n;
comment on view job_events is 'One row for each transition of a job.';

create function insert_job_event() returns trigger
language plpgsql
as $$
begin
  insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
  values (
    new.org_id, array[new.job_id], array[new.state], array[new.attempt], array[new.reason], array[coalesce(new.at, now())]
  );
  return new;
end
$$;

-- For statements that move few jobs; those that move many write their group themselves.
create trigger job_events_insert instead of insert on job_events
for each row execute function insert_job_event();

create table job_logs (
  id bigint generated always as identity primary key,
  org_id uuid not null,
  job_id uuid not null,
  attempt integer not null,
  at timestamptz not null,
  level text not null,
  message text not null,
  foreign key (org_id, job_id) references jobs (org_id, id) on delete cascade,
  constraint job_logs_level check (level in ('debug', 'info', 'warn', 'error'))
);

create index job_logs_by_job on job_logs (job_id, id);
comment on index job_logs_by_job is 'Serves list-job-logs.';

create table job_progress (
  job_id uuid primary key,
  org_id uuid not null,
  -- 0 to 1, and what the handler says about it.
  progress real,
  note text,
  -- What the next attempt may go on from.
  checkpoint jsonb,
  updated_at timestamptz not null default now(),
  foreign key (org_id, job_id) references jobs (org_id, id) on delete cascade,
  constraint job_progress_range check (progress between 0 and 1)
)
with (fillfactor = 70);

create view queue_entries as
select
  j.id as job_id,
  j.org_id,
  j.stream_id,
  j.type,
  lane_of(j.rank_base + j.rank_slope * coalesce(s.mean_log, ln(j.predicted_ms))) as lane,
  j.cpu_units,
  j.memory_mb,
  j.predicted_ms::real as predicted_ms,
  j.deadline - j.predicted_p90_ms * interval '1 millisecond' as start_by,
  j.run_at
from jobs j
join streams s on s.id = j.stream_id;
comment on view queue_entries is 'How a job stands in ready_jobs if it becomes ready now.';

-- Jobs that wait for other jobs.

create table job_dependencies (
  parent_id uuid not null,
  child_id uuid not null,
  org_id uuid not null,
  primary key (parent_id, child_id),
  foreign key (org_id, parent_id) references jobs (org_id, id) on delete cascade,
  foreign key (org_id, child_id) references jobs (org_id, id) on delete cascade
);
comment on table job_dependencies is 'The child may not start before the parent has completed.';

create index job_dependencies_by_child on job_dependencies (child_id, parent_id);
comment on index job_dependencies_by_child is 'Serves get-job.';

create table blocked_jobs (
  job_id uuid primary key,
  org_id uuid not null,
  -- Parents that have not completed.
  remaining integer not null,
  on_parent_failure text not null,
  constraint blocked_jobs_remaining check (remaining > 0)
);

create index blocked_jobs_by_org on blocked_jobs (org_id, job_id);
comment on index blocked_jobs_by_org is 'Serves list-jobs by status blocked, next to organisations with many.';

create function lock_parents(in_org uuid, in_jobs uuid[]) returns table (job_id uuid, state text)
language plpgsql
as $$
-- Says where each job stands and keeps it from finishing until the caller commits, so that a new dependent is either
-- seen by the statement that finishes its parent or sees that the parent has finished. Each look is a statement with a
-- snapshot of its own: a job that moves from one table to another between two looks is found by the next round.
-- Rows are locked table by table in the order in which others lock them (ready and waiting, leases, blocked), and in each
-- by id or token.
declare
  sought uuid[] := array(select distinct w from unnest(in_jobs) w);
  found_jobs uuid[];
  locked bigint[];
  wanted uuid;
begin
  while cardinality(sought) > 0 loop
    found_jobs := '{}';
    for wanted in select w from unnest(sought) w order by w loop
      job_id := wanted;
      state := null;
      select f.state::text into state from finished_jobs f where f.org_id = in_org and f.job_id = wanted;
      if state <> 'completed' then
        -- A failed or cancelled job may be retried, and then complete, before the caller commits.
        perform from finished_jobs f where f.org_id = in_org and f.job_id = wanted for key share;
        if not found then state := null; end if;
      end if;
      if state is null then
        perform from ready_jobs r where r.job_id = wanted and r.org_id = in_org for key share;
        if found then state := 'ready'; end if;
      end if;
      if state is null then
        perform from waiting_jobs w where w.job_id = wanted and w.org_id = in_org for key share;
        if found then state := 'waiting'; end if;
      end if;
      if state is not null then
        found_jobs := found_jobs || wanted;
        return next;
      end if;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
    exit when cardinality(sought) = 0;

    locked := array(select l.token from leases l where l.job_ids && sought order by l.token for key share);
    -- A lease outlives those of its jobs that ended first. With the lease locked none can end any more.
    for job_id, state in
      select j.id, 'running'
      from jobs j
      where j.org_id = in_org
        and j.id = any (sought)
        and exists (select from leases l where l.token = any (locked) and j.id = any (l.job_ids))
        and not exists (select from finished_jobs f where f.org_id = in_org and f.job_id = j.id)
        and not exists (select from ready_jobs r where r.org_id = in_org and r.job_id = j.id)
        and not exists (select from waiting_jobs w where w.job_id = j.id)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select b.job_id, 'blocked'
      from blocked_jobs b
      where b.org_id = in_org
        and b.job_id = any (sought)
      order by b.job_id
      for key share
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select w, null::text
      from unnest(sought) w
      where not exists (select from jobs j where j.org_id = in_org and j.id = w)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
  end loop;
end
$$;

create function settle_dependents(completed uuid[], failed uuid[]) returns integer
language plpgsql
as $$
-- Called by every statement that finishes jobs. Dependents of completed jobs come one parent closer to ready; those of
-- failed and cancelled ones fail with them, all the way down, unless they are told to wait. Answers how many became
-- ready. Being a function it looks with a fresh snapshot, after the caller has locked the finished jobs: no dependent
-- that lock_parents let in can be missed.
declare
  became_ready integer := 0;
begin
  perform from job_dependencies where parent_id = any (completed || failed) limit 1;
  if not found then return 0; end if;

  with edge as (
    select child_id, count(*) as done
    from job_dependencies
    where parent_id = any (completed)
    group by child_id
  ),
  child as materialized (
    select b.job_id, b.org_id, b.remaining - edge.done as remaining
    from blocked_jobs b
    join edge on edge.child_id = b.job_id
    order by b.job_id
    for update of b
  ),
  closer as (
    update blocked_jobs b
    set remaining = child.remaining
    from child
    where b.job_id = child.job_id
      and child.remaining > 0
  ),
  released as (
    delete from blocked_jobs b
    using child
    where b.job_id = child.job_id
      and child.remaining = 0
    returning b.job_id, b.org_id
  ),
  entry as (
    select q.*
    from released
    join queue_entries q on q.org_id = released.org_id and q.job_id = released.job_id
  ),
  pending as (
    insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
    select job_id, org_id, 'pending', 0, run_at
    from entry
    where run_at > now()
    returning job_id, org_id, 'pending'::job_state as state
  ),
  ready as (
    insert into ready_jobs (job_id, org_id, stream_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by)
    select job_id, org_id, stream_id, type, lane, 0, cpu_units, memory_mb, predicted_ms, start_by
    from entry
    where run_at is null or run_at <= now()
    returning job_id, org_id, 'ready'::job_state as state
  ),
  event as (
    insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
    select org_id, array_agg(job_id), array_agg(state), array_agg(0), array_agg(null::text), array_agg(now())
    from (select * from pending union all select * from ready) moved
    group by org_id
  )
  select count(*) into became_ready
  from ready;

  while cardinality(failed) > 0 loop
    with edge as (
      select child_id, min(parent_id::text) as parent_id
      from job_dependencies
      where parent_id = any (failed)
      group by child_id
    ),
    child as materialized (
      select b.job_id, b.org_id, edge.parent_id
      from blocked_jobs b
      join edge on edge.child_id = b.job_id
      where b.on_parent_failure = 'fail'
      order by b.job_id
      for update of b
    ),
    released as (
      delete from blocked_jobs b
      using child
      where b.job_id = child.job_id
    ),
    judged as (
      select
        child.job_id, child.org_id, j.stream_id,
        jsonb_build_object(
          'code', 'dependency_failed',
          'message', 'Job ' || child.parent_id || ', which this job depends on, has failed or was cancelled.'
        ) as error
      from child
      join jobs j on j.org_id = child.org_id and j.id = child.job_id
    ),
    finished as (
      insert into finished_jobs (org_id, job_id, stream_id, state, attempts, error, fingerprint)
      select org_id, job_id, stream_id, 'failed', 0, error, error_fingerprint(error)
      from judged
    ),
    event as (
      insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
      select
        org_id, array_agg(job_id), array_agg('failed'::job_state), array_agg(0), array_agg('dependency_failed'::text),
        array_agg(now())
      from judged
      group by org_id
    )
    select coalesce(array_agg(job_id), '{}') into failed
    from judged;
  end loop;
  return became_ready;
end
$$;

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
