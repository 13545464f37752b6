-- Quotas of organisations, and keys that make a submission idempotent.

create table quotas (
  -- Null: of all organisations without a row of their own.
  org_id uuid references orgs on delete cascade,
  -- Null: no limit.
  submissions_per_minute bigint,
  queued_jobs bigint,
  running_jobs bigint,
  payload_bytes_per_day bigint,
  constraint quotas_once unique nulls not distinct (org_id),
  constraint quotas_not_negative check (
    submissions_per_minute >= 0 and queued_jobs >= 0 and running_jobs >= 0 and payload_bytes_per_day >= 0
  )
);
comment on table quotas is
  'The first three count jobs. All but running_jobs are enforced by the statement that submits, running_jobs by the one that claims.';

create index quotas_running on quotas (org_id) where running_jobs is not null;
comment on index quotas_running is 'Serves exchange-jobs: whether any organisation has a limit of running jobs.';

-- A runaway loop is stopped, an honest burst is not.
insert into quotas (org_id, submissions_per_minute, queued_jobs, running_jobs, payload_bytes_per_day)
values (null, 1000000, 2000000, null, 53687091200);

create table quota_states (
  org_id uuid primary key references orgs on delete cascade,
  -- At least as many as are queued or running: counted, and since then only added to. Null: to be counted.
  queued_bound bigint,
  counted_at timestamptz,
  -- Sliding logs: a ring of seconds for submitted jobs, one of hours for payload bytes. `at` is the newest slot in use, in
  -- seconds or hours since 1970; `used` is the sum of the ring. A slot that is partly in the window counts in full: never
  -- too much passes.
  minute_at bigint not null default 0,
  minute_slots integer[] not null default array_fill(0, '{61}'),
  minute_used bigint not null default 0,
  day_at bigint not null default 0,
  day_slots bigint[] not null default array_fill(0::bigint, '{25}'),
  day_used bigint not null default 0
)
-- Each submission updates it: in place (HOT), as long as the page has room.
with (fillfactor = 20);
comment on table quota_states is 'Its row lock makes the submissions of an organisation take turns, so that quotas and idempotency are exact.';

alter table quota_states
  alter column minute_slots set storage main,
  alter column day_slots set storage main;

create table idempotency_keys (
  org_id uuid not null references orgs on delete cascade,
  key text not null,
  -- SHA-256 of what was submitted under the key.
  body_hash bytea not null,
  job_ids uuid[] not null,
  created_at timestamptz not null,
  primary key (org_id, key),
  constraint idempotency_keys_length check (char_length(key) between 1 and 255)
);
comment on table idempotency_keys is 'Good for 24 hours; then the key may be used anew.';

create index idempotency_keys_by_time on idempotency_keys (created_at);
comment on index idempotency_keys_by_time is 'Serves delete-stale.';

create function count_unfinished(in_org uuid) returns bigint
language sql
return
  (select count(*) from ready_jobs where org_id = in_org)
  + (select count(*) from waiting_jobs where org_id = in_org)
  + (select count(*) from blocked_jobs where org_id = in_org)
  + (select count(*) from held_jobs where org_id = in_org);

create function ring_used(slots bigint[], newest bigint, at bigint) returns bigint
language sql immutable parallel safe
-- What of a ring still counts at a time.
return (
  select coalesce(sum(slots[slot % cardinality(slots) + 1]), 0)
  from generate_series(greatest(newest, at) - cardinality(slots) + 1, newest) as slot
);

create function ring_frees_in(slots bigint[], at bigint, needed bigint) returns bigint
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

create function admit_submissions(
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
-- for other reasons. keys: [{submission, org_id, key, body_hash, job_ids}], no key twice.
declare
  org record;
  limits quotas;
  state quota_states;
  second bigint;
  hour bigint;
  used_keys jsonb;
  wanted_jobs bigint;
  wanted_bytes bigint;
  refused_some boolean := false;
  charged quota_states[] := '{}';
begin
  for org in
    select u.org_id, sum(u.jobs)::bigint as jobs, sum(u.bytes)::bigint as bytes, array_agg(u.n order by u.n) as members
    from unnest(orgs, kinds, jobs, bytes) with ordinality as u (org_id, kind, jobs, bytes, n)
    where u.kind = any (acceptable)
    group by u.org_id
    -- In one order, so that no two callers wait for each other.
    order by u.org_id
  loop
    select q.* into limits from quotas q where q.org_id = org.org_id;
    if not found then
      select q.* into limits from quotas q where q.org_id is null;
    end if;
    continue when keys is null
      and limits.submissions_per_minute is null and limits.queued_jobs is null and limits.payload_bytes_per_day is null;

    select s.* into state from quota_states s where s.org_id = org.org_id for update;
    if not found then
      insert into quota_states (org_id) values (org.org_id) on conflict do nothing;
      select s.* into state from quota_states s where s.org_id = org.org_id for update;
    end if;
    second := floor(extract(epoch from clock_timestamp()));
    hour := second / 3600;
    for slot in greatest(state.minute_at + 1, second - 60) .. second loop
      state.minute_used := state.minute_used - state.minute_slots[slot % 61 + 1];
      state.minute_slots[slot % 61 + 1] := 0;
    end loop;
    for slot in greatest(state.day_at + 1, hour - 24) .. hour loop
      state.day_used := state.day_used - state.day_slots[slot % 25 + 1];
      state.day_slots[slot % 25 + 1] := 0;
    end loop;
    state.minute_at := second;
    state.day_at := hour;
    if limits.queued_jobs is not null and (
      state.queued_bound is null
      or (
        state.queued_bound + org.jobs > limits.queued_jobs
        -- A million jobs take a while to count: a flood of submissions above the limit counts once a second.
        and state.counted_at < clock_timestamp() - interval '1 second'
      )
    ) then
      state.queued_bound := count_unfinished(org.org_id);
      state.counted_at := clock_timestamp();
      update quota_states s
      set queued_bound = state.queued_bound, counted_at = state.counted_at
      where s.org_id = org.org_id;
    end if;

    if keys is not null
      or state.minute_used + org.jobs > limits.submissions_per_minute
      or state.day_used + org.bytes > limits.payload_bytes_per_day
      or state.queued_bound + org.jobs > limits.queued_jobs
    then
      -- Not all of them fit, or some may have been here before: each is looked at.
      wanted_jobs := 0;
      wanted_bytes := 0;
      foreach submission in array org.members loop
        refusal := null;
        select jsonb_agg(
          jsonb_build_object('key', k.key, 'job_ids', k.job_ids, 'same', k.body_hash = decode(w.body_hash, 'hex'))
        ) into used_keys
        from jsonb_to_recordset(keys) as w (submission integer, key text, body_hash text)
        join idempotency_keys k on k.org_id = org.org_id and k.key = w.key
        where w.submission = admit_submissions.submission
          and k.created_at > clock_timestamp() - interval '24 hours';
        if used_keys is not null then
          refusal := 'used_key';
          detail := used_keys;
        elsif state.minute_used + wanted_jobs + jobs[submission] > limits.submissions_per_minute then
          refusal := 'quota';
          detail := jsonb_build_object(
            'quota', 'submissions_per_minute', 'limit', limits.submissions_per_minute,
            'used', state.minute_used + wanted_jobs, 'retry_after', coalesce(
              ring_frees_in(
                state.minute_slots, second,
                state.minute_used + wanted_jobs + jobs[submission] - limits.submissions_per_minute
              ),
              61
            )
          );
        elsif state.day_used + wanted_bytes + bytes[submission] > limits.payload_bytes_per_day then
          refusal := 'quota';
          detail := jsonb_build_object(
            'quota', 'payload_bytes_per_day', 'limit', limits.payload_bytes_per_day,
            'used', state.day_used + wanted_bytes, 'retry_after', coalesce(
              ring_frees_in(
                state.day_slots, hour,
                state.day_used + wanted_bytes + bytes[submission] - limits.payload_bytes_per_day
              ) * 3600 - second % 3600,
              25 * 3600
            )
          );
        elsif state.queued_bound + wanted_jobs + jobs[submission] > limits.queued_jobs then
          refusal := 'quota';
          detail := jsonb_build_object(
            'quota', 'queued_jobs', 'limit', limits.queued_jobs, 'used', state.queued_bound + wanted_jobs,
            'retry_after', 10
          );
        end if;
        if refusal is null then
          wanted_jobs := wanted_jobs + jobs[submission];
          wanted_bytes := wanted_bytes + bytes[submission];
        else
          refused_some := true;
          return next;
        end if;
      end loop;
    end if;

    state.minute_slots[second % 61 + 1] := state.minute_slots[second % 61 + 1] + org.jobs;
    state.minute_used := state.minute_used + org.jobs;
    state.day_slots[hour % 25 + 1] := state.day_slots[hour % 25 + 1] + org.bytes;
    state.day_used := state.day_used + org.bytes;
    state.queued_bound := state.queued_bound + org.jobs;
    charged := charged || state;
  end loop;
  if refused_some then return; end if;

  foreach state in array charged loop
    update quota_states s
    set
      queued_bound = state.queued_bound,
      minute_at = state.minute_at,
      minute_slots = state.minute_slots,
      minute_used = state.minute_used,
      day_at = state.day_at,
      day_slots = state.day_slots,
      day_used = state.day_used
    where s.org_id = state.org_id;
  end loop;
  if keys is not null then
    insert into idempotency_keys as i (org_id, key, body_hash, job_ids, created_at)
    select w.org_id, w.key, decode(w.body_hash, 'hex'), w.job_ids, clock_timestamp()
    from jsonb_to_recordset(keys) as w (submission integer, org_id uuid, key text, body_hash text, job_ids uuid[])
    where kinds[w.submission] = any (acceptable)
    on conflict on constraint idempotency_keys_pkey do update
    set body_hash = excluded.body_hash, job_ids = excluded.job_ids, created_at = excluded.created_at;
  end if;
end
$$;

create function running_room(in_org uuid, ended uuid[]) returns bigint
language plpgsql
as $$
-- How many more jobs of an organisation may run: null if there is no limit. Called by the statement that claims. For one
-- claim at a time: another that comes meanwhile gets none and passes the organisation over. Being a function it looks
-- with a fresh snapshot, after it has the lock, and sees what the claim before has taken. What the same statement ends
-- does not count any more.
declare
  allowed bigint;
begin
  select q.running_jobs into allowed
  from quotas q
  where q.org_id = in_org
    or q.org_id is null
  order by q.org_id nulls last
  limit 1;
  if allowed is null then return null; end if;
  if not pg_try_advisory_xact_lock(hashtextextended('running jobs of ' || in_org, 0)) then return 0; end if;
  return greatest(
    0, allowed - (select count(*) from held_jobs h where h.org_id = in_org and h.job_id <> all (ended))
  );
end
$$;
