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

create function remaining_ms(started_at timestamptz, predicted_ms double precision, predicted_p90_ms double precision)
returns double precision
language sql stable
-- What has run beyond its median will run on, the longer the wider its spread. Null if it has not started: all of it.
return greatest(
  predicted_ms - coalesce(extract(epoch from now() - started_at)::double precision * 1000, 0),
  extract(epoch from now() - started_at)::double precision * 1000 * (sqrt(predicted_p90_ms / predicted_ms) - 1), 1
);

-- For those who ask how deep a queue is and will be. With their own rights: of another organisation they see an empty one.

create function depth_of_queue(in_org uuid) returns jsonb
language sql stable
-- Up to five thousand of each kind are counted, in some milliseconds; of a deeper queue the leader's newest look tells.
-- The oldest is looked for among those that were submitted first.
begin atomic
  select jsonb_build_object(
    'pending', case when w.pending < 5000 then w.pending else greatest(w.pending, n.pending) end,
    'blocked', case when w.blocked < 5000 then w.blocked else greatest(w.blocked, n.blocked) end,
    'ready', h.held + case when r.jobs < 5000 then r.jobs else greatest(r.jobs, n.ready) end,
    'running', h.running,
    'retrying', case when w.retrying < 5000 then w.retrying else greatest(w.retrying, n.retrying) end,
    'predicted_ms', h.ms + case when r.jobs < 5000 then r.ms else greatest(r.ms, n.predicted_seconds * 1000 - h.ms) end,
    'oldest_ready_seconds', extract(epoch from now() - r.oldest)
  )
  from (
    select count(*) as jobs, coalesce(sum(predicted_ms), 0)::double precision as ms, min(ready_at) as oldest
    from (
      select predicted_ms, ready_at
      from ready_jobs
      where org_id = in_org
      order by job_id
      limit 5000
    ) first
  ) r
  cross join (
    select
      count(h.started_at) as running, count(*) - count(h.started_at) as held,
      coalesce(sum(remaining_ms(h.started_at, j.predicted_ms, j.predicted_p90_ms)), 0) as ms
    from held_jobs h
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    where h.org_id = in_org
  ) h
  cross join (
    select
      (
        select count(*)
        from (select from waiting_jobs where org_id = in_org and state = 'pending' limit 5000) counted
      ) as pending,
      (
        select count(*)
        from (select from waiting_jobs where org_id = in_org and state = 'retrying' limit 5000) counted
      ) as retrying,
      (select count(*) from (select from blocked_jobs where org_id = in_org limit 5000) counted) as blocked
  ) w
  left join depth_samples n on n.org_id = in_org;
end;

create function load_ahead(in_org uuid) returns jsonb
language sql stable
-- What the forecast of a depth is made from. Jobs that schedules have submitted are taken out of what came in the last hour,
-- minute by minute, as the ticks ahead are known; so are jobs that were to be run later, which wait for their time.
begin atomic
  select jsonb_build_object(
    'slots', (
      select coalesce(sum(slots), 0)
      from workers
      where status = 'online'
        and last_seen > now() - interval '10 seconds'
    ),
    'paused', exists (select from pauses where org_id = in_org and type is null),
    'minutes', (
      select jsonb_agg(greatest(0, coalesce(r.submitted - r.delayed, 0) - coalesce(t.fired, 0)) order by m.at)
      from generate_series(
        date_trunc('minute', now()) - interval '60 minutes', date_trunc('minute', now()) - interval '1 minute',
        interval '1 minute'
      ) as m (at)
      left join job_rollups r on r.org_id = in_org and r.span = 60 and r.at = m.at
      left join (
        select date_trunc('minute', t.fired_at) as at, count(*) as fired
        from schedules s
        join schedule_ticks t
          on t.schedule_id = s.id
          and t.tick_at > now() - interval '62 minutes'
          and t.outcome = 'fired'
        where s.org_id = in_org
        group by 1
      ) t on t.at = m.at
    ),
    -- Of the present hour of the day, a day and a week ago, and of the next.
    'same_hour', (
      select avg(submitted - delayed)
      from job_rollups
      where org_id = in_org
        and span = 3600
        and at in (
          date_bin('1 hour', now(), 'epoch') - interval '24 hours', date_bin('1 hour', now(), 'epoch') - interval '168 hours'
        )
    ),
    'next_hour', (
      select avg(submitted - delayed)
      from job_rollups
      where org_id = in_org
        and span = 3600
        and at in (
          date_bin('1 hour', now(), 'epoch') - interval '23 hours', date_bin('1 hour', now(), 'epoch') - interval '167 hours'
        )
    ),
    'mean_ms', (
      select sum(runtime_ms) / nullif(sum(ran), 0)
      from job_rollups
      where org_id = in_org
        and span = 3600
        and at > now() - interval '24 hours'
    ),
    'waking', (
      select coalesce(
        jsonb_agg(
          jsonb_build_object('in_seconds', extract(epoch from w.wake_at - now()), 'predicted_ms', j.predicted_ms)
        ),
        '[]'
      )
      from (
        select job_id, wake_at
        from (
          (select job_id, wake_at from waiting_jobs where org_id = in_org and state = 'pending' limit 10000)
          union all
          (select job_id, wake_at from waiting_jobs where org_id = in_org and state = 'retrying' limit 10000)
        ) one
        where wake_at < now() + interval '1 hour'
        limit 2000
      ) w
      join jobs j on j.org_id = in_org and j.id = w.job_id
    ),
    'schedules', (
      select coalesce(
        jsonb_agg(jsonb_build_object('cron', s.cron, 'timezone', s.timezone, 'predicted_ms', exp(e.mean_log))), '[]'
      )
      from (
        select cron, timezone, job
        from schedules
        where org_id = in_org
          and next_at < now() + interval '1 hour'
        order by next_at
        limit 50
      ) s
      left join streams e on e.org_id = in_org and e.type = s.job ->> 'type' and e.name = s.job ->> 'name'
    )
  );
end;

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
