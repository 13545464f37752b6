-- Quotas: what a submission, a retry or a claim may add.

create or replace function quotas_of(in_org uuid) returns setof quotas
language sql stable rows 1
-- Those of the organisation, else those of all that have none of their own.
begin atomic
  select q.*
  from quotas q
  where q.org_id = in_org
    or q.org_id is null
  order by q.org_id nulls last
  limit 1;
end;

create or replace function count_unfinished(in_org uuid) returns bigint
language sql
return
  (select count(*) from ready_jobs where org_id = in_org)
  + (select count(*) from waiting_jobs where org_id = in_org and state = 'pending')
  + (select count(*) from waiting_jobs where org_id = in_org and state = 'retrying')
  + (select count(*) from blocked_jobs where org_id = in_org)
  + (select count(*) from held_jobs where org_id = in_org);

create or replace function ring_used(slots bigint[], newest_at bigint, newest bigint, at bigint) returns bigint
language sql immutable parallel safe
-- What of a ring counts at a time, which is not before its newest slot.
return (
  select coalesce(sum(case slot when newest_at then newest else slots[slot % cardinality(slots) + 1] end), 0)
  from generate_series(at - cardinality(slots) + 1, newest_at) as slot
  where newest_at <= at
);

create or replace function ring_moved(slots bigint[], newest_at bigint, newest bigint, at bigint) returns bigint[]
language sql immutable parallel safe
-- The ring at a later time: with what was newest in its place, and without what has left.
return array(
  select
    case
      when newest_at > at then 0
      when slot < newest_at then slots[slot % cardinality(slots) + 1]
      when slot = newest_at then newest
      else 0
    end
  from generate_series(at - cardinality(slots) + 1, at) as slot
  order by slot % cardinality(slots)
);

create or replace function ring_frees_in(slots bigint[], at bigint, needed bigint) returns bigint
language sql immutable parallel safe
-- How many slots must pass until as much as is needed has left the ring. Null: there is not so much in it.
return (
  select slot + cardinality(slots) - at
  from (
    select slot, sum(slots[slot % cardinality(slots) + 1]) over (order by slot) as freed
    from generate_series(at - cardinality(slots) + 1, at) as slot
  ) log
  where freed >= needed
  order by slot
  limit 1
);

create or replace function lock_quota_state(in_org uuid, added bigint) returns quota_states
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The state of an organisation, locked, as of now: rings moved on and whole, and the queue counted if its bound plus
-- what is to be added would pass the limit. A million jobs take a while to count: a flood of submissions above such a
-- limit counts once a second, and above a smaller one more often.
declare
  state quota_states;
  second bigint;
  hour bigint;
  queue_limit bigint;
begin
  select s.* into state from quota_states s where s.org_id = in_org for update;
  select q.queued_jobs into queue_limit from quotas_of(in_org) q;
  second := floor(extract(epoch from clock_timestamp()));
  -- Another clock may be a little ahead. One that was far ahead has left nothing that counts.
  if state.minute_at between second and second + 5 then second := state.minute_at; end if;
  hour := second / 3600;
  state.minute_slots := ring_moved(state.minute_slots, state.minute_at, state.second_jobs, second);
  state.minute_used := ring_used(state.minute_slots, second, state.minute_slots[second % 61 + 1], second);
  state.minute_at := second;
  state.day_slots := ring_moved(state.day_slots, state.day_at, state.hour_bytes, hour);
  state.day_used := ring_used(state.day_slots, hour, state.day_slots[hour % 25 + 1], hour);
  state.day_at := hour;
  if queue_limit is not null and (
    state.queued_bound is null
    or (
      state.queued_bound + added > queue_limit
      and state.counted_at < clock_timestamp() - least(interval '1 second', queue_limit * interval '1 microsecond')
    )
  ) then
    state.queued_bound := count_unfinished(in_org);
    state.counted_at := clock_timestamp();
    update quota_states s
    set queued_bound = state.queued_bound, counted_at = state.counted_at
    where s.org_id = in_org;
  end if;
  return state;
end
$$;

create or replace function refusal_of(limits quotas, state quota_states, jobs bigint, bytes bigint) returns jsonb
language sql immutable parallel safe
-- Which quota so many jobs would pass, and when there will be room: when enough has left the window. What is more than
-- the quota itself, and what comes with others that take the rest, is told the whole window.
return case
  when state.minute_used + jobs > limits.submissions_per_minute then jsonb_build_object(
    'quota', 'submissions_per_minute', 'limit', limits.submissions_per_minute, 'used', state.minute_used, 'wanted', jobs,
    'retry_after', coalesce(
      ring_frees_in(state.minute_slots, state.minute_at, state.minute_used + jobs - limits.submissions_per_minute), 61
    )
  )
  when state.day_used + bytes > limits.payload_bytes_per_day then jsonb_build_object(
    'quota', 'payload_bytes_per_day', 'limit', limits.payload_bytes_per_day, 'used', state.day_used, 'wanted', bytes,
    'retry_after', coalesce(
      ring_frees_in(state.day_slots, state.day_at, state.day_used + bytes - limits.payload_bytes_per_day), 25
    ) * 3600 - state.minute_at % 3600
  )
  when state.queued_bound + jobs > limits.queued_jobs then jsonb_build_object(
    'quota', 'queued_jobs', 'limit', limits.queued_jobs, 'used', state.queued_bound, 'wanted', jobs, 'retry_after', 10
  )
end;

create or replace function admit_submissions(
  orgs uuid[], kinds integer[], jobs bigint[], bytes bigint[], keys jsonb, acceptable integer[]
)
returns table (submission integer, refusal text, detail jsonb)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Called by the statement that submits, before it stores anything. Answers the submissions that may not pass: those
-- with an idempotency key that was used before, and those over a quota. If there is one, nothing is charged for the
-- others either, and the caller stores nothing at all; it sends the others again without it. Being a function it looks
-- with fresh snapshots, after it has locked the organisation: of two submissions with one key the second sees the
-- first.
--
-- The arrays have a value for each submission. Only those whose kind is acceptable are looked at: the others are
-- refused for other reasons. keys: [{submission, org_id, key, body_hash, job_ids, keep_seconds}], no key twice.
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

create or replace function queue_room(in_org uuid, wanted bigint) returns bigint
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- How many of so many more jobs may be queued: all, if there is no limit. They are taken for queued from then on, and
-- nobody else can queue any until the caller has committed. For retries, which add to the queue without being
-- submissions.
declare
  state quota_states;
  queue_limit bigint;
  room bigint;
begin
  select q.queued_jobs into queue_limit from quotas_of(in_org) q;
  if queue_limit is null then return wanted; end if;
  state := lock_quota_state(in_org, wanted);
  room := least(wanted, greatest(0, queue_limit - state.queued_bound));
  update quota_states s set queued_bound = state.queued_bound + room where s.org_id = in_org;
  return room;
end
$$;

create or replace function running_room(in_org uuid, ended uuid[]) returns bigint
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- How many more jobs of an organisation may run: null if there is no limit. Called by the statement that claims. For
-- one claim at a time: another that comes meanwhile gets -1, and looks again. Being a function it looks with a fresh
-- snapshot, after it has the lock, and sees what the claim before has taken. What the same statement ends does not
-- count any more.
declare
  allowed bigint;
begin
  select q.running_jobs into allowed from quotas_of(in_org) q;
  if allowed is null then return null; end if;
  if not pg_try_advisory_xact_lock(hashtextextended('running jobs of ' || in_org, 0)) then return -1; end if;
  return greatest(
    0, allowed - (select count(*) from held_jobs h where h.org_id = in_org and h.job_id <> all (ended))
  );
end
$$;

grant execute on function
  quotas_of, count_unfinished, ring_used, ring_moved, ring_frees_in, lock_quota_state, refusal_of,
  admit_submissions, queue_room, running_room
to smartqueue_functions, smartqueue_workers;
