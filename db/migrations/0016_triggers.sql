-- What makes jobs besides the API: webhooks that come in, schedules; and the callbacks that tell of jobs that have ended.

alter table jobs
  add column callback_url text,
  add column triggered_by jsonb,
  add constraint jobs_callback_url check (char_length(callback_url) <= 2048);
comment on column jobs.callback_url is 'Told when the job has ended, beside the endpoints of its organisation.';
comment on column jobs.triggered_by is
  'What has made the job, if not a person or program over the API: {kind: webhook | schedule | callback, …}.';

create index jobs_by_callback on jobs (org_id, id) where callback_url is not null;
comment on index jobs_by_callback is 'Serves find-callbacks: whether anybody has asked for one.';

create index jobs_by_told on jobs (org_id, (triggered_by ->> 'job_id'), id) where triggered_by ->> 'kind' = 'callback';
comment on index jobs_by_told is 'Serves callbacks_of_job.';

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
  j.promised_wait_ms,
  j.callback_url,
  j.triggered_by
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

-- Events in the order of their commits: a number is given before, and a statement that takes long commits late.

alter table job_event_groups add column xid xid8;
alter table job_event_groups alter column xid set default pg_current_xact_id();
comment on column job_event_groups.xid is 'Null: written before there was a reader that needs it.';

create index job_event_groups_by_commit on job_event_groups (xid, id) where xid is not null;
comment on index job_event_groups_by_commit is 'Serves find-callbacks.';

-- Keys of webhook events are kept for longer than those of requests.

alter table idempotency_keys add column expires_at timestamptz not null default now() + interval '24 hours';
comment on table idempotency_keys is
  'What was submitted under a key: for 24 hours, or as long as whoever submits asks for. Then the key may be used anew.';
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);
comment on index idempotency_keys_by_expiry is 'Serves delete-stale.';
drop index idempotency_keys_by_time;

create or replace function admit_submissions(
  orgs uuid[], kinds integer[], jobs bigint[], bytes bigint[], keys jsonb, acceptable integer[]
)
returns table (submission integer, refusal text, detail jsonb)
language plpgsql
as $$
-- Called by the statement that submits, before it stores anything. Answers the submissions that may not pass: those with
-- an idempotency key that was used before, and those over a quota. If there is one, nothing is charged for the others
-- either, and the caller stores nothing at all; it sends the others again without it. Being a function it looks with
-- fresh snapshots, after it has locked the organisation: of two submissions with one key the second sees the first.
--
-- The arrays have a value for each submission. Only those whose kind is acceptable are looked at: the others are refused
-- for other reasons. keys: [{submission, org_id, key, body_hash, job_ids, keep_seconds}], no key twice.
declare
  org record;
  limits quotas;
  state quota_states;
  used_keys jsonb;
  refused_some boolean := false;
  charged quota_states[] := '{}';
begin
  for org in
    select u.org_id, sum(u.jobs)::bigint as jobs, array_agg(u.n order by u.n) as members
    from unnest(orgs, kinds, jobs) with ordinality as u (org_id, kind, jobs, n)
    where u.kind = any (acceptable)
    group by u.org_id
    -- In one order, so that no two callers wait for each other.
    order by u.org_id
  loop
    state := lock_quota_state(org.org_id, org.jobs);
    select q.* into limits from quotas_of(org.org_id) q;
    used_keys := null;
    if keys is not null then
      select jsonb_object_agg(used.submission, used.keys) into used_keys
      from (
        select w.submission, jsonb_agg(
          jsonb_build_object('key', k.key, 'job_ids', k.job_ids, 'same', k.body_hash = decode(w.body_hash, 'hex'))
        ) as keys
        from jsonb_to_recordset(keys) as w (submission integer, org_id uuid, key text, body_hash text)
        join idempotency_keys k on k.org_id = w.org_id and k.key = w.key
        where w.org_id = org.org_id
          and k.expires_at > clock_timestamp()
        group by w.submission
      ) used;
    end if;
    foreach submission in array org.members loop
      detail := used_keys -> submission::text;
      refusal := case when detail is not null then 'used_key' else 'quota' end;
      detail := coalesce(detail, refusal_of(limits, state, jobs[submission], bytes[submission]));
      if detail is null then
        state.minute_used := state.minute_used + jobs[submission];
        state.minute_slots[state.minute_at % 61 + 1] := state.minute_slots[state.minute_at % 61 + 1] + jobs[submission];
        state.day_used := state.day_used + bytes[submission];
        state.day_slots[state.day_at % 25 + 1] := state.day_slots[state.day_at % 25 + 1] + bytes[submission];
        state.queued_bound := state.queued_bound + jobs[submission];
      else
        refused_some := true;
        return next;
      end if;
    end loop;
    charged := charged || state;
  end loop;
  if refused_some then return; end if;

  foreach state in array charged loop
    update quota_states s
    set
      queued_bound = state.queued_bound,
      minute_at = state.minute_at,
      second_jobs = state.minute_slots[state.minute_at % 61 + 1],
      minute_used = state.minute_used,
      minute_slots = state.minute_slots,
      day_at = state.day_at,
      hour_bytes = state.day_slots[state.day_at % 25 + 1],
      day_used = state.day_used,
      day_slots = state.day_slots
    where s.org_id = state.org_id;
  end loop;
  if keys is not null then
    insert into idempotency_keys as i (org_id, key, body_hash, job_ids, created_at, expires_at)
    select
      w.org_id, w.key, decode(w.body_hash, 'hex'), w.job_ids, clock_timestamp(),
      clock_timestamp() + coalesce(w.keep_seconds, 86400) * interval '1 second'
    from jsonb_to_recordset(keys)
      as w (submission integer, org_id uuid, key text, body_hash text, job_ids uuid[], keep_seconds integer)
    where kinds[w.submission] = any (acceptable)
    on conflict on constraint idempotency_keys_pkey do update
    set
      body_hash = excluded.body_hash, job_ids = excluded.job_ids, created_at = excluded.created_at,
      expires_at = excluded.expires_at;
  end if;
end
$$;

-- Webhooks that come in.

create table webhook_sources (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  name text not null,
  scheme text not null,
  -- What the scheme leaves open: which header has the signature, and the like.
  verification jsonb not null default '{}',
  secret text not null,
  -- Good beside the other until then, so that the sender can be changed over.
  previous_secret text,
  previous_expires_at timestamptz,
  filter jsonb,
  template jsonb not null,
  enabled boolean not null default true,
  -- Grows with each change: whoever goes by what it remembers finds out in the statement that stores.
  version bigint not null default 1,
  created_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  constraint webhook_sources_id unique (id),
  constraint webhook_sources_name check (char_length(name) between 1 and 200),
  constraint webhook_sources_scheme check (scheme in ('github', 'stripe', 'standard-webhooks', 'hmac')),
  constraint webhook_sources_previous check ((previous_secret is null) = (previous_expires_at is null))
);
comment on table webhook_sources is 'Who may send webhooks, how they sign, and which job an event becomes.';

create table webhook_deliveries (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  -- Outlives the source, which is deleted at once however long its journal is.
  source_id uuid not null,
  received_at timestamptz not null default now(),
  status text not null,
  reason text,
  event_id text,
  event_type text,
  -- The job that it has made, or of which it is a duplicate.
  job_id uuid,
  replay_of uuid,
  -- Both without what looks secret. A body that is not JSON is a JSON string.
  headers jsonb not null,
  body jsonb,
  primary key (org_id, id),
  constraint webhook_deliveries_status check (status in ('accepted', 'duplicate', 'filtered', 'rejected', 'quarantined')),
  constraint webhook_deliveries_job check (status not in ('accepted', 'duplicate') or job_id is not null)
);
comment on table webhook_deliveries is 'The journal of what has come in, and what became of it.';

create index webhook_deliveries_by_source on webhook_deliveries (source_id, id);
comment on index webhook_deliveries_by_source is 'Serves list-deliveries.';
create index webhook_deliveries_by_status on webhook_deliveries (source_id, status, id);
comment on index webhook_deliveries_by_status is 'Serves list-deliveries by status, and the limit of rejected ones.';
create index webhook_deliveries_by_time on webhook_deliveries (received_at);
comment on index webhook_deliveries_by_time is 'Serves delete-expired-deliveries.';

-- Schedules.

create table schedules (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  name text not null,
  cron text not null,
  timezone text not null,
  catch_up text not null,
  -- The job of each tick, with all that was left out when it was sent.
  job jsonb not null,
  paused_at timestamptz,
  -- The next tick. Null: it is paused, or there is none.
  next_at timestamptz,
  last_tick_at timestamptz,
  skipped_ticks bigint not null default 0,
  version bigint not null default 1,
  created_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  constraint schedules_name check (char_length(name) between 1 and 200),
  constraint schedules_catch_up check (catch_up in ('skip', 'one', 'all')),
  constraint schedules_paused check (paused_at is null or next_at is null)
);
comment on table schedules is 'What is to be submitted again and again, and when next.';

create index schedules_by_next on schedules (next_at) where next_at is not null;
comment on index schedules_by_next is 'Serves find-due-schedules.';

create table schedule_ticks (
  schedule_id uuid not null,
  tick_at timestamptz not null,
  org_id uuid not null,
  job_id uuid,
  outcome text not null,
  reason text,
  fired_at timestamptz not null default now(),
  -- A tick is fired once, whoever tries to.
  primary key (schedule_id, tick_at),
  foreign key (org_id, schedule_id) references schedules (org_id, id) on delete cascade,
  constraint schedule_ticks_outcome check (outcome in ('fired', 'refused', 'skipped'))
);
comment on table schedule_ticks is 'Ticks that have come, and what became of each.';

create index schedule_ticks_by_time on schedule_ticks (fired_at);
comment on index schedule_ticks_by_time is 'Serves delete-expired-ticks.';

-- Callbacks: those outside who want to know what became of jobs.

create table callback_endpoints (
  org_id uuid not null references orgs on delete cascade,
  id uuid not null,
  url text not null,
  -- Of all jobs of the organisation. None: it is the callback_url of some jobs, kept here because it is disabled.
  events text[] not null,
  disabled_at timestamptz,
  disabled_reason text,
  created_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  constraint callback_endpoints_url unique (org_id, url),
  constraint callback_endpoints_url_length check (char_length(url) <= 2048),
  constraint callback_endpoints_events check (events <@ '{job.completed,job.failed,job.cancelled}'::text[])
);
create index callback_endpoints_by_org on callback_endpoints (org_id) where disabled_at is null and events <> '{}';
comment on index callback_endpoints_by_org is 'Serves find-callbacks, past the URLs that are kept because they are disabled.';
comment on table callback_endpoints is 'Where an organisation is told of its jobs, and where it does not want to be told any more.';

create table callback_secrets (
  org_id uuid primary key references orgs on delete cascade,
  secret text not null,
  -- Signs beside the other until then, so that receivers can be changed over.
  previous_secret text,
  previous_expires_at timestamptz,
  created_at timestamptz not null default now(),
  constraint callback_secrets_previous check ((previous_secret is null) = (previous_expires_at is null))
);
comment on table callback_secrets is 'What callbacks of an organisation are signed with.';

create function new_signing_secret() returns text
language sql volatile
-- As the Standard Webhooks specification writes it: 32 bytes, 244 bits of them random.
return 'whsec_' || encode(decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'), 'base64');

create table callback_cursor (
  only_row boolean primary key default true,
  -- Of a row of job_event_groups, and of its jobs: with one statement thousands may have ended.
  xid xid8 not null,
  id bigint not null,
  position integer not null default 0,
  -- Rows up to this one came with a dump from another server, whose transactions had other numbers.
  foreign_id bigint not null default 0,
  constraint callback_cursor_only_row check (only_row)
);
comment on table callback_cursor is 'Up to which event callbacks have been made.';
insert into callback_cursor (xid, id) values ('0', 0);

-- The walls around them.

create function scope_source() returns uuid
language sql stable parallel safe
-- The webhook source whose address is called: its row may be seen.
return nullif(current_setting('smartqueue.source', true), '')::uuid;

create function enter_with_source(source uuid, known_version bigint, ip text, request text) returns text
language plpgsql
as $$
-- Whoever calls the address of a source may see that source. Its organisation is open to those who have verified a
-- delivery, and name the version that they have done so with: one that has changed since is 'closed', as is one that is
-- gone or disabled.
declare
  owner uuid;
begin
  perform set_scope(ip => enter_with_source.ip, request => enter_with_source.request);
  perform set_config('smartqueue.source', source::text, true);
  select s.org_id into owner
  from webhook_sources s
  where s.id = source
    and s.enabled
    and (known_version is null or s.version = known_version);
  if owner is null then return 'closed'; end if;
  if known_version is not null then perform set_config('smartqueue.orgs', array[owner]::text, true); end if;
  return 'entered';
end
$$;

create function callbacks_of_job(in_org uuid, told_job uuid) returns setof uuid
language sql stable security definer
set search_path = pg_catalog, public
-- Like tagged_jobs: under row-level security no index serves what looks into JSON.
begin atomic
  select id
  from jobs
  where org_id = in_org
    and triggered_by ->> 'job_id' = told_job::text
    and triggered_by ->> 'kind' = 'callback'
    and (sees_all_orgs() or in_org = any (scope_orgs()) or pg_has_role(session_user, 'smartqueue_workers', 'usage'));
end;

create policy of_org on webhook_sources to smartqueue_functions
  using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]));
create policy of_address on webhook_sources for select to smartqueue_functions using (id = (select scope_source()));

do $$
declare
  walled text;
begin
  foreach walled in array '{
    webhook_deliveries, schedules, schedule_ticks, callback_endpoints, callback_secrets
  }'::text[] loop
    execute format(
      'create policy of_org on %I to smartqueue_functions
       using ((select sees_all_orgs()) or org_id = any ((select scope_orgs())::uuid[]))', walled
    );
    execute format('create policy of_all_orgs on %I to smartqueue_workers using (true)', walled);
  end loop;
  foreach walled in array '{
    webhook_sources, webhook_deliveries, schedules, schedule_ticks, callback_endpoints, callback_secrets
  }'::text[] loop
    execute format('alter table %I enable row level security', walled);
    execute format('alter table %I force row level security', walled);
    execute format('create policy of_owner on %I to %I using (true)', walled, current_user);
  end loop;
end
$$;

grant select, insert, update, delete on
  webhook_sources, schedules, callback_endpoints, callback_secrets
to smartqueue_functions;
grant select, insert on webhook_deliveries, schedule_ticks to smartqueue_functions;

-- The leader fires schedules and makes callbacks; what is old goes.
grant insert on jobs, streams to smartqueue_workers;
grant select, update on quota_states to smartqueue_workers;
grant select, update on schedules to smartqueue_workers;
grant select, insert, update, delete on schedule_ticks to smartqueue_workers;
grant select, insert, update, delete on callback_endpoints to smartqueue_workers;
grant select, insert on callback_secrets to smartqueue_workers;
grant select, update on callback_cursor to smartqueue_workers;
grant select (org_id, id, received_at), delete on webhook_deliveries to smartqueue_workers;
