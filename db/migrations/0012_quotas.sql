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
  counted_at timestamptz
)
with (fillfactor = 50);
comment on table quota_states is 'Its row lock makes the submissions of an organisation take turns, so that quotas and idempotency are exact.';

create table quota_usage (
  org_id uuid not null references orgs on delete cascade,
  quota text not null,
  -- A second of submissions, ten minutes of payload bytes.
  bucket timestamptz not null,
  used bigint not null,
  primary key (org_id, quota, bucket)
)
with (fillfactor = 70);
comment on table quota_usage is 'A sliding log in buckets. One that is partly in the window counts in full: never too much passes.';

create index quota_usage_by_time on quota_usage (bucket);
comment on index quota_usage_by_time is 'Serves delete-stale.';

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

create function quota_window(quota text) returns interval
language sql immutable parallel safe
-- With the length of a bucket added: its oldest hits leave the window last.
return case quota when 'submissions_per_minute' then interval '61 seconds' else interval '1 day 10 minutes' end;

create function quota_bucket(quota text) returns timestamptz
language sql
return date_bin(
  case quota when 'submissions_per_minute' then interval '1 second' else interval '10 minutes' end,
  clock_timestamp(), timestamptz '2000-01-01Z'
);

create function quota_used(in_org uuid, in_quota text) returns bigint
language sql
return (
  select coalesce(sum(used), 0)
  from quota_usage
  where org_id = in_org
    and quota = in_quota
    and bucket > clock_timestamp() - quota_window(in_quota)
);

create function quota_refusal(in_org uuid, quota text, allowed bigint, used bigint, wanted bigint) returns jsonb
language sql
-- Says when there will be room: when as much as is needed has left the window. What is too much for an empty window, and
-- a full queue, are told a fixed time.
return jsonb_build_object(
  'quota', quota, 'limit', allowed, 'used', used, 'retry_after',
  coalesce(
    (
      select greatest(1, ceil(extract(epoch from log.bucket + quota_window(quota_refusal.quota) - clock_timestamp())))
      from (
        select u.bucket, sum(u.used) over (order by u.bucket) as freed
        from quota_usage u
        where u.org_id = in_org
          and u.quota = quota_refusal.quota
          and u.bucket > clock_timestamp() - quota_window(quota_refusal.quota)
      ) log
      where log.freed >= quota_refusal.used + wanted - allowed
      order by log.bucket
      limit 1
    ),
    case quota when 'queued_jobs' then 10 else 60 end
  )::integer
);

create function admit_submissions(submissions jsonb, acceptable integer[])
returns table (submission integer, refusal text, detail jsonb)
language plpgsql
as $$
-- Called by the statement that submits, before it stores anything. Answers the submissions that may not pass: those with
-- an idempotency key that was used before, and those over a quota. If there is one, nothing is charged for the others
-- either, and the caller stores nothing at all; it sends the others again without it. Being a function it looks with
-- fresh snapshots, after it has locked the organisation: of two submissions with one key the second sees the first.
--
-- submissions: [{submission, kind, org_id, jobs, bytes, keys: [{key, body_hash, job_ids}]}], no key twice. Only those
-- whose kind is acceptable are looked at: the others are refused for other reasons.
declare
  org record;
  entry record;
  limits quotas;
  state quota_states;
  used_jobs bigint;
  used_bytes bigint;
  refused_some boolean := false;
begin
  for org in
    select s.org_id, sum(s.jobs) as jobs, bool_or(s.keys is not null) as keyed
    from jsonb_to_recordset(submissions) as s (kind integer, org_id uuid, jobs bigint, keys jsonb)
    where s.kind = any (acceptable)
    group by s.org_id
    -- In one order, so that no two callers wait for each other.
    order by s.org_id
  loop
    select q.* into limits from quotas q where q.org_id = org.org_id;
    if not found then
      select q.* into limits from quotas q where q.org_id is null;
    end if;
    continue when not org.keyed
      and limits.submissions_per_minute is null and limits.queued_jobs is null and limits.payload_bytes_per_day is null;

    select s.* into state from quota_states s where s.org_id = org.org_id for update;
    if not found then
      insert into quota_states (org_id) values (org.org_id) on conflict do nothing;
      select s.* into state from quota_states s where s.org_id = org.org_id for update;
    end if;
    if limits.queued_jobs is not null and (
      state.queued_bound is null
      or (
        state.queued_bound + org.jobs > limits.queued_jobs
        -- A million jobs take a while to count: a flood of submissions above the limit counts once a second.
        and state.counted_at < clock_timestamp() - interval '1 second'
      )
    ) then
      update quota_states s
      set queued_bound = count_unfinished(org.org_id), counted_at = clock_timestamp()
      where s.org_id = org.org_id
      returning s.* into state;
    end if;
    used_jobs := quota_used(org.org_id, 'submissions_per_minute');
    used_bytes := quota_used(org.org_id, 'payload_bytes_per_day');

    for entry in
      select s.submission, s.jobs, s.bytes, used.keys as used_keys
      from jsonb_to_recordset(submissions)
        as s (submission integer, kind integer, org_id uuid, jobs bigint, bytes bigint, keys jsonb)
      left join lateral (
        select jsonb_agg(
          jsonb_build_object('key', k.key, 'job_ids', k.job_ids, 'same', k.body_hash = decode(w.body_hash, 'hex'))
        ) as keys
        from jsonb_to_recordset(s.keys) as w (key text, body_hash text)
        join idempotency_keys k on k.org_id = s.org_id and k.key = w.key
        where k.created_at > clock_timestamp() - interval '24 hours'
      ) used on s.keys is not null
      where s.org_id = org.org_id
        and s.kind = any (acceptable)
      order by s.submission
    loop
      submission := entry.submission;
      refusal := 'quota';
      if entry.used_keys is not null then
        refusal := 'used_key';
        detail := entry.used_keys;
      elsif used_jobs + entry.jobs > limits.submissions_per_minute then
        detail := quota_refusal(
          org.org_id, 'submissions_per_minute', limits.submissions_per_minute, used_jobs, entry.jobs
        );
      elsif used_bytes + entry.bytes > limits.payload_bytes_per_day then
        detail := quota_refusal(
          org.org_id, 'payload_bytes_per_day', limits.payload_bytes_per_day, used_bytes, entry.bytes
        );
      elsif state.queued_bound + entry.jobs > limits.queued_jobs then
        detail := quota_refusal(org.org_id, 'queued_jobs', limits.queued_jobs, state.queued_bound, entry.jobs);
      else
        used_jobs := used_jobs + entry.jobs;
        used_bytes := used_bytes + entry.bytes;
        state.queued_bound := state.queued_bound + entry.jobs;
        continue;
      end if;
      refused_some := true;
      return next;
    end loop;
  end loop;
  if refused_some then return; end if;

  insert into quota_usage as u (org_id, quota, bucket, used)
  select s.org_id, charge.quota, quota_bucket(charge.quota), charge.used
  from (
    select s.org_id, sum(s.jobs) as jobs, sum(s.bytes) as bytes
    from jsonb_to_recordset(submissions) as s (kind integer, org_id uuid, jobs bigint, bytes bigint)
    where s.kind = any (acceptable)
    group by s.org_id
  ) s
  cross join lateral (
    select q.submissions_per_minute, q.payload_bytes_per_day
    from quotas q
    where q.org_id = s.org_id
      or q.org_id is null
    order by q.org_id nulls last
    limit 1
  ) q
  cross join lateral (
    select 'submissions_per_minute' as quota, s.jobs as used
    where q.submissions_per_minute is not null
    union all
    select 'payload_bytes_per_day', s.bytes
    where q.payload_bytes_per_day is not null
  ) charge
  order by s.org_id, charge.quota
  on conflict on constraint quota_usage_pkey do update
  set used = u.used + excluded.used;

  update quota_states q
  set queued_bound = q.queued_bound + s.jobs
  from (
    select s.org_id, sum(s.jobs) as jobs
    from jsonb_to_recordset(submissions) as s (kind integer, org_id uuid, jobs bigint)
    where s.kind = any (acceptable)
    group by s.org_id
  ) s
  where q.org_id = s.org_id
    and q.queued_bound is not null;

  insert into idempotency_keys as i (org_id, key, body_hash, job_ids, created_at)
  select s.org_id, w.key, decode(w.body_hash, 'hex'), w.job_ids, clock_timestamp()
  from jsonb_to_recordset(submissions) as s (kind integer, org_id uuid, keys jsonb)
  cross join lateral jsonb_to_recordset(s.keys) as w (key text, body_hash text, job_ids uuid[])
  where s.kind = any (acceptable)
    and s.keys is not null
  on conflict on constraint idempotency_keys_pkey do update
  set body_hash = excluded.body_hash, job_ids = excluded.job_ids, created_at = excluded.created_at;
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
