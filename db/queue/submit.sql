-- Submit jobs.
--
-- One call commits many submissions independently, each with all of its jobs or none. It returns a verdict for each:
-- the jobs as they were stored, or why they were refused. A refused submission never affects the others of the call.
--
--   not_member       the credentials do not allow the member to submit to the organisation
--   unknown_parent   a job depends on a job that the organisation does not have
--   failed_parent    a job depends on a job that failed or was cancelled, and on_parent_failure is not 'wait'
--   used_key         an idempotency key was used before
--   quota            the organisation would exceed a quota
--   busy             another transaction holds the quotas of the organisation; submit again, alone
--   invalid          Postgres rejects a value
--
-- Quotas and idempotency are exact, because submissions of one organisation take turns: each holds the lock on the
-- organisation's row in quota_states until it commits. If Postgres rejects a value, the call starts again, submission
-- by submission. One that is rejected again is stored with the running estimate instead of its prediction, or refused.
--
-- Jobs that are submitted together usually differ only in their ids and payloads. The fields they share are a kind,
-- which is sent, checked, looked up and answered once. CONTRIBUTING.md explains how to add a field.
--
-- Locks, in this order: parents of new dependents (see lock_parents), rows of quota_states by organisation, the table
-- jobs against forget_series, new series by organisation, type and name. A call for several organisations skips a
-- locked row of quota_states and answers 'busy', so that one organisation does not delay the others. A call for one
-- organisation waits.
--
-- Indexes: series_identity to find the series, org_type_estimates_pkey and type_estimates_pkey for the first estimate
-- of a new series, idempotency_keys_pkey to find a key.
--
-- Measured with Postgres 18, server CPU of a single job, prepared: 465 µs, of which 61 for the call and its parameters,
-- 60 for quotas, 166 for the jobs, 38 for the wake-up, 18 for the events and 95 for the commit. Session credentials
-- take 43 µs more. A batch of 1,000 takes 11 µs per job if all are alike, and 36 µs if all predictions differ.

create or replace function submit_jobs(
  -- Members: user, session or API key, and their secret, each for one organisation. Without a user, the transaction
  -- must already have opened the organisation, or belong to a worker.
  p_orgs uuid[],
  p_users uuid[],
  p_sessions uuid[],
  p_keys uuid[],
  p_secrets text[],
  -- Submissions: the index of the member, the index of the last job, and the total bytes of the payloads.
  p_members integer[],
  p_last_jobs integer[],
  p_bytes bigint[],
  -- [{number, jobs, member, unpredicted?, …}]: the indexes of its jobs and its member, and the fields read below.
  p_kinds jsonb,
  -- Jobs, in the order of their submissions. A single traceparent applies to all jobs.
  p_job_ids uuid[],
  p_job_kinds integer[],
  p_payloads jsonb,
  p_promised_waits_ms double precision[] default null,
  p_samples jsonb default null,
  p_traceparents text[] default null,
  -- Dependencies: the index of the job, its parent, and whether the parent is in the same submission.
  p_children integer[] default null,
  p_parents uuid[] default null,
  p_inside boolean[] default null,
  -- [{submission, key, body_hash, job_ids, keep_seconds?}]
  p_idempotency jsonb default null,
  -- If false, quotas do not apply. Only workers may pass false.
  p_charged boolean default true
) returns json
language plpgsql
security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_is_worker constant boolean := pg_has_role(session_user, 'smartqueue_workers', 'usage');
  -- By member: the organisation, or null if the member may not submit to it.
  v_member_orgs uuid[];
  -- One answer for all submissions or, once Postgres has rejected a value, one for each.
  v_answers json[] := '{}';
  v_wanted_answers integer := 1;
  -- The submission being processed. Null: all of them.
  v_only integer;
  -- Why Postgres rejected the predictions of the submission, which is now stored without them.
  v_unpredicted text;
  -- By submission: the organisation, or null once it is refused.
  v_orgs uuid[];
  v_refusals jsonb;
  -- By job: whether its submission is refused, and how many parents it waits for.
  v_skipped boolean[];
  v_blocked_by integer[];
  v_keys bigint[];
  v_blocked uuid[];
  -- The kinds that are stored, and the result of each.
  v_kinds jsonb;
  v_stored json;
  v_numbers integer[];
  v_kind_orgs uuid[];
  v_types text[];
  v_states job_state[];
  v_reasons text[];
  v_announced boolean;
  v_now_ms bigint;
  -- The SQLSTATE and message if Postgres rejects a value.
  v_code text;
  v_message text;
begin
  if cardinality(p_members) = 0 then return '[]'; end if;

  -- 1. Members.
  v_member_orgs := p_orgs;
  for i in 1 .. cardinality(p_orgs) loop
    if not coalesce(
      case
        when p_users[i] is null then v_is_worker or is_open(p_orgs[i])
        else is_member(p_orgs[i], p_users[i], p_sessions[i], p_keys[i], p_secrets[i])
      end,
      false
    ) then
      v_member_orgs[i] := null;
    elsif p_keys[i] is not null then
      perform use_key(p_keys[i]);
    end if;
  end loop;

  while cardinality(v_answers) < v_wanted_answers loop
    if v_wanted_answers > 1 then v_only := cardinality(v_answers) + 1; end if;
    -- The subtransaction takes 2 to 3 % of the call.
    begin
      v_refusals := '[]';
      v_skipped := '{}';
      v_blocked_by := '{}';
      v_blocked := '{}';
      v_keys := '{}';
      v_kinds := p_kinds;
      if v_only is null and cardinality(v_member_orgs) = 1 then
        v_orgs := array_fill(v_member_orgs[1], array[cardinality(p_members)]);
      else
        v_orgs := array(
          select case when s = coalesce(v_only, s) then v_member_orgs[p_members[s]] end
          from generate_subscripts(p_members, 1) as s
          order by s
        );
      end if;
      if array_position(v_member_orgs, null) is not null then
        select coalesce(jsonb_agg(jsonb_build_object('submission', s, 'refusal', 'not_member')), '[]')
        into v_refusals
        from generate_subscripts(p_members, 1) as s
        where v_member_orgs[p_members[s]] is null
          and s = coalesce(v_only, s);
      end if;

      -- 2. Parents, which stay locked until the commit.
      if cardinality(p_parents) > 0 then
        select v_refusals || p.refusals, p.blocked_by
        into v_refusals, v_blocked_by
        from judge_parents(
          v_orgs, p_last_jobs, p_kinds, p_job_ids, p_job_kinds, p_children, p_parents, p_inside
        ) as p;
        v_orgs := without_refused(v_orgs, v_refusals);
      end if;

      -- 3. Idempotency keys and quotas, one organisation after the other.
      if p_charged or not v_is_worker then
        v_refusals := v_refusals || admit_submissions(v_orgs, p_last_jobs, p_bytes, p_idempotency);
      end if;
      if v_refusals <> '[]' or v_only is not null then
        v_orgs := without_refused(v_orgs, v_refusals);
        v_skipped := array(
          select v_orgs[width_bucket(n - 1, p_last_jobs) + 1] is null
          from generate_subscripts(p_job_ids, 1) as n
          order by n
        );
        v_kinds := (
          select jsonb_agg(k)
          from jsonb_array_elements(p_kinds) as k
          where (k -> 'number')::integer in (
            select p_job_kinds[n] from generate_subscripts(p_job_ids, 1) as n where not v_skipped[n]
          )
        );
      end if;
      if v_kinds is null then
        v_answers := v_answers || json_build_object('only', v_only, 'refusals', v_refusals);
        v_unpredicted := null;
        continue;
      end if;
      if p_idempotency is not null then perform keep_keys(v_orgs, p_idempotency); end if;
      if v_unpredicted is not null then v_kinds := without_predictions(v_kinds); end if;

      -- 4. The jobs. A kind is stored if its series exists. One statement looks up the series and stores the jobs. It
      -- locks the table jobs before it takes its snapshot: see forget_series.
      if jsonb_array_length(v_kinds) > 1 then
        perform add_series(v_member_orgs, v_kinds);
        -- Jobs become ready in the order in which they were submitted, whatever their kinds.
        v_keys := array(select nextval('ready_keys') from generate_subscripts(p_job_ids, 1));
      end if;
      loop
        with kind as materialized (
          select
            k.number, k.jobs, s.org_id, p_users[k.member] as created_by, s.id as series_id, k.type, k.name, k.priority,
            k.tags, k.timeout_seconds, k.max_attempts, k.initial_delay_seconds, k.backoff_multiplier, k.cpu_units,
            k.memory_mb, k.run_at, k.deadline, k.on_parent_failure,
            p.predicted_ms, p.predicted_p90_ms, exp(k.p99_log) as predicted_p99_ms,
            coalesce(k.prediction_source, case when s.mean_log is null then e.source else 'series' end)
              as prediction_source,
            k.model_version, coalesce(k.residual_log, 0) as residual_log, k.rank_base, k.rank_slope,
            k.callback_url, k.triggered_by,
            k.rank_base + k.rank_slope * ln(p.predicted_ms) as rank,
            k.deadline - p.predicted_p90_ms * interval '1 millisecond' as start_by,
            coalesce(k.run_at > now(), false) as pending
          from jsonb_to_recordset(v_kinds) as k (
            number integer, jobs integer[], member integer, type text, name text, priority text, tags text[],
            timeout_seconds integer, max_attempts integer, initial_delay_seconds double precision,
            backoff_multiplier double precision, cpu_units real, memory_mb integer, run_at timestamptz,
            deadline timestamptz, on_parent_failure text, p50_log double precision, p90_log double precision,
            p99_log double precision, prediction_source text, model_version integer, residual_log real,
            rank_base double precision, rank_slope real, callback_url text, triggered_by jsonb
          )
          -- One lookup per kind: a join planned while the table was small would later scan it.
          cross join lateral (
            select s.id, s.org_id, s.mean_log, s.deviation_log
            from series s
            where s.org_id = v_member_orgs[k.member]
              and s.type = k.type
              and s.name = k.name
            offset 0
          ) as s
          left join lateral starting_estimate(s.org_id, k.type) as e
            on s.mean_log is null and k.p50_log is null
          -- Clamped, so that exp cannot fail even if a stored estimate is corrupt.
          cross join lateral (
            select
              least(greatest(coalesce(s.mean_log, e.mean_log), -30), 30) as mean_log,
              least(greatest(coalesce(s.deviation_log, e.deviation_log), 0), 30) as deviation_log
          ) as r
          cross join lateral (
            select
              exp(coalesce(k.p50_log, r.mean_log)) as predicted_ms,
              exp(coalesce(k.p90_log, least(r.mean_log + 1.6 * r.deviation_log, 30))) as predicted_p90_ms
          ) as p
        ),
        job as (
          insert into jobs (
            org_id, id, created_by, series_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
            initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
            predicted_ms, predicted_p90_ms, predicted_p99_ms, prediction_source, model_version, residual_log,
            rank_base, rank_slope, promised_wait_ms, sample, callback_url, triggered_by, traceparent
          )
          select
            k.org_id, p_job_ids[n], k.created_by, k.series_id, k.type, k.name, p_payloads -> n - 1, k.priority,
            k.tags, k.timeout_seconds, k.max_attempts, k.initial_delay_seconds, k.backoff_multiplier, k.cpu_units,
            k.memory_mb, k.run_at, k.deadline, k.on_parent_failure, k.predicted_ms, k.predicted_p90_ms,
            k.predicted_p99_ms, k.prediction_source, k.model_version, k.residual_log, k.rank_base, k.rank_slope,
            case when v_unpredicted is null then p_promised_waits_ms[n] end,
            case when v_unpredicted is null then decode(p_samples ->> n - 1, 'base64') end,
            k.callback_url, k.triggered_by, p_traceparents[least(n, cardinality(p_traceparents))]
          from kind k
          cross join unnest(k.jobs) as n
          where v_skipped[n] is not true
        ),
        -- Jobs that return to the queue are inserted by requeue_jobs. With a shared step, a single job took 11 µs more.
        ready as (
          insert into ready_jobs (
            org_id, job_id, series_id, type, lane, key, attempts, cpu_units, memory_mb, predicted_ms, start_by
          )
          select
            k.org_id, p_job_ids[n], k.series_id, k.type, lane_of(k.rank),
            coalesce(v_keys[n], nextval('ready_keys')), 0, k.cpu_units, k.memory_mb, k.predicted_ms, k.start_by
          from kind k
          cross join unnest(k.jobs) as n
          where not k.pending
            and v_blocked_by[n] is null
            and v_skipped[n] is not true
        )
        select
          json_agg(json_build_object(
            'number', k.number, 'status', k.state, 'predicted_ms', k.predicted_ms,
            'predicted_p90_ms', k.predicted_p90_ms, 'prediction_source', k.prediction_source,
            'model_version', k.model_version, 'rank', k.rank, 'deadline_at_risk', k.reason is not null
          )),
          array_agg(k.number), array_agg(k.org_id), array_agg(k.type), array_agg(k.state), array_agg(k.reason)
        into v_stored, v_numbers, v_kind_orgs, v_types, v_states, v_reasons
        from (
          select
            *,
            case when pending then 'pending' else 'ready' end::job_state as state,
            case when start_by < greatest(now(), run_at) then 'deadline_at_risk' end as reason
          from kind
        ) k;
        exit when v_stored is not null;
        perform add_series(v_member_orgs, v_kinds);
      end loop;
      if 'pending' = any (v_states) then
        insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
        select p_job_ids[n], v_member_orgs[k.member], 'pending', 0, k.run_at
        from jsonb_to_recordset(v_kinds) as k (jobs integer[], member integer, run_at timestamptz)
        cross join unnest(k.jobs) as n
        where k.run_at > now()
          and v_blocked_by[n] is null
          and v_skipped[n] is not true;
      end if;

      -- 5. Dependencies.
      if cardinality(p_parents) > 0 then
        v_blocked := block_jobs(
          v_orgs, p_last_jobs, p_kinds, p_job_ids, p_job_kinds, p_children, p_parents, v_skipped, v_blocked_by
        );
      end if;

      -- 6. The wake-up and the events.
      -- The commit itself wakes the workers, which saves the caller a round trip, but at most one commit in 5 ms does:
      -- NOTIFY holds a server-wide lock while the commit is flushed. Otherwise the caller notifies them a moment later,
      -- unless another commit has done so by then (functions/jobs/announcer.ts). The time of the last notification is
      -- kept in a sequence, which is read and set without a row lock. The clock may have been set back a little.
      v_now_ms := date_part('epoch', clock_timestamp()) * 1000;
      v_announced := 'ready' = any (v_states)
        and (v_now_ms - pg_sequence_last_value('announced_ms') between -1000 and 4) is not true;
      if v_announced then
        perform setval('announced_ms', v_now_ms);
        for i in 1 .. cardinality(v_types) loop
          if v_states[i] = 'ready' then perform pg_notify('jobs_ready', v_types[i]); end if;
        end loop;
      end if;
      if cardinality(v_states) = 1 and v_skipped = '{}' and v_blocked_by = '{}' then
        perform record_events(v_kind_orgs, p_job_ids, v_states, '{0}', array_remove(v_reasons, null), '{}');
      else
        perform record_events(
          array_agg(k.org_id order by n), array_agg(p_job_ids[n] order by n),
          array_agg(case when v_blocked_by[n] > 0 then 'blocked' else k.state end order by n), '{0}',
          case when count(k.reason) > 0 then array_agg(k.reason order by n) else '{}' end, '{}'
        )
        from generate_subscripts(p_job_ids, 1) as n
        join unnest(v_numbers, v_kind_orgs, v_states, v_reasons) as k (number, org_id, state, reason)
          on k.number = p_job_kinds[n]
        where v_skipped[n] is not true;
      end if;
      v_answers := v_answers || json_build_object(
        'only', v_only, 'refusals', v_refusals, 'created_at', now(), 'announced', v_announced, 'kinds', v_stored,
        'blocked', v_blocked, 'unpredicted', v_unpredicted
      );
      v_unpredicted := null;
    exception when data_exception or not_null_violation or check_violation or unique_violation then
      -- Postgres has rolled back to the beginning of the block.
      get stacked diagnostics v_code = returned_sqlstate, v_message = message_text;
      if v_only is null and cardinality(p_members) > 1 then
        v_wanted_answers := cardinality(p_members);
      elsif v_unpredicted is null and jsonb_path_exists(v_kinds, '$[*].unpredicted') then
        v_unpredicted := v_message;
      else
        v_answers := v_answers || json_build_object('only', v_only, 'refusals', json_build_array(json_build_object(
          'submission', coalesce(v_only, 1), 'refusal', 'invalid',
          'detail', json_build_object('code', v_code, 'message', v_message)
        )));
        v_unpredicted := null;
      end if;
    end;
  end loop;
  return array_to_json(v_answers);
end
$$;

create or replace function is_member(p_org uuid, p_user uuid, p_session uuid, p_key uuid, p_secret text)
returns boolean
language plpgsql
as $$
-- Whether role_in gives the user a role and the user is a member: an admin may see other organisations but not submit
-- to them. For a session this reads three tables instead of six, which saves 15 of 57 µs.
begin
  if p_key is not null then
    return role_in(p_org, p_user, p_session, p_key, p_secret) is not null;
  end if;
  return exists (
    select
    from refresh_families f
    join active_memberships m on m.org_id = p_org and m.user_id = f.user_id
    where f.id = p_session
      and f.user_id = p_user
      and f.secret_hash = sha256(convert_to(p_secret, 'UTF8'))
      and f.revoked_at is null
  );
end
$$;

create or replace function use_key(p_key uuid) returns void
language plpgsql
as $$
begin
  update api_keys
  set last_used_at = now()
  where id = any (
    array(
      select k.id
      from api_keys k
      where k.id = p_key
        and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute')
      for update skip locked
    )
  );
end
$$;

create or replace function add_series(p_orgs uuid[], p_kinds jsonb) returns void
language plpgsql
as $$
-- Adds the missing series of these kinds, and keeps them from being deleted before the commit. The update on conflict
-- waits for a concurrent call that is creating the same series, and locks its row.
begin
  lock table jobs in row exclusive mode;
  insert into series (org_id, type, name)
  select distinct p_orgs[k.member] as org_id, k.type, k.name
  from jsonb_to_recordset(p_kinds) as k (member integer, type text, name text)
  where not exists (select from series s where s.org_id = p_orgs[k.member] and s.type = k.type and s.name = k.name)
  order by org_id, type, name
  on conflict on constraint series_identity do update
  set name = excluded.name;
end
$$;

create or replace function without_predictions(p_kinds jsonb) returns jsonb
language plpgsql
as $$
-- The kinds as they would have been sent without predictions.
begin
  return (
    select jsonb_agg(
      k - '{p50_log,p90_log,p99_log,prediction_source,model_version,residual_log,unpredicted}'::text[]
        || coalesce(k -> 'unpredicted', '{}')
      order by position
    )
    from jsonb_array_elements(p_kinds) with ordinality as kind (k, position)
  );
end
$$;

create or replace function starting_estimate(p_org uuid, p_type text)
returns table (source prediction_source, mean_log double precision, deviation_log double precision)
language sql stable rows 1
-- The first estimate of a series without executions: from the organisation's jobs of the type, from all jobs of the
-- type, or a median of 1 s and a p90 of 10 s (DEFAULT_ESTIMATE in functions/prediction/estimate.ts).
begin atomic
  select
    case when coalesce(o.type, t.type) is null then 'default' else 'type' end,
    coalesce(o.mean_log, t.median_log, ln(1000)),
    coalesce(o.deviation_log, t.deviation_log, 1.44)
  from (select p_org as org_id, p_type as type) wanted
  left join org_type_estimates o on o.org_id = wanted.org_id and o.type = wanted.type
  left join type_estimates t on t.type = wanted.type
  where p_type is not null;
end;

create or replace function without_refused(p_orgs uuid[], p_refusals jsonb) returns uuid[]
language plpgsql
as $$
-- The organisation of each submission, or null if it is refused.
declare
  v_refused constant integer[] := array(
    select (r ->> 'submission')::integer from jsonb_array_elements(p_refusals) as r
  );
begin
  return array(
    select case when s <> all (v_refused) then p_orgs[s] end
    from generate_subscripts(p_orgs, 1) as s
    order by s
  );
end
$$;

grant execute on function submit_jobs to smartqueue_functions, smartqueue_workers;
grant execute on function starting_estimate to smartqueue_workers;
