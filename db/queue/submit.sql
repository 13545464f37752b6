-- Submit jobs. A single job without parents is stored by submit_job (submit-job.sql).
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
-- Measured with Postgres 18, server CPU per job of a batch of 450: 31 µs if all are alike, 112 µs if all predictions
-- differ, and 133 µs for 50 submissions of one job each whose predictions differ.

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
  p_last_bytes bigint[],
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
  v_member_orgs uuid[] := p_orgs;
  -- One answer for all submissions or, once Postgres has rejected a value, one for each.
  v_answers json[] := '{}';
  v_wanted_answers integer := 1;
  -- The submission being processed. Null: all of them.
  v_only integer;
  -- Why Postgres rejected the predictions of the submission, which is now stored without them.
  v_unpredicted text;
  -- The SQLSTATE and message if Postgres rejects a value.
  v_code text;
  v_message text;
begin
  if cardinality(p_members) = 0 then return '[]'; end if;

  -- 1. Members.
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
    -- A subtransaction, which takes 1 % of the time of a small call.
    declare
      -- By submission: the organisation, or null once it is refused.
      v_orgs uuid[];
      v_refusals jsonb := '[]';
      -- By job: whether its submission is refused, and how many parents it waits for. Null: none of the jobs.
      v_skipped boolean[];
      v_blocked_by integer[];
      v_blocked uuid[];
      -- The kinds that are stored. For each of them, what its jobs have in common, and the answer.
      v_kinds jsonb := p_kinds;
      v_kind jsonb;
      v_job jobs;
      v_series series;
      v_rank double precision;
      v_jobs jobs[];
      v_lanes smallint[];
      v_starts_by timestamptz[];
      v_states job_state[];
      v_ready_types text[];
      v_reasons text[];
      v_stored json[];
      v_announced boolean;
    begin
      -- Usually there is a single member. Together with the short way through admit_submissions, doing without these
      -- queries saves 13 % of a call for 50 alike jobs.
      if v_only is null and cardinality(v_member_orgs) = 1 and v_member_orgs[1] is not null then
        v_orgs := array_fill(v_member_orgs[1], array[cardinality(p_members)]);
      else
        v_orgs := array(
          select case when s = coalesce(v_only, s) then v_member_orgs[p_members[s]] end
          from generate_subscripts(p_members, 1) as s
          order by s
        );
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
        v_refusals := v_refusals || admit_submissions(v_orgs, p_last_jobs, p_last_bytes, p_idempotency);
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

      -- 4. What the jobs of each kind have in common. The lock keeps the series until their jobs are stored: see
      -- forget_series.
      lock table jobs in row exclusive mode;
      for i in 1 .. jsonb_array_length(v_kinds) loop
        v_kind := v_kinds -> i - 1;
        if v_unpredicted is not null then v_kind := without_prediction(v_kind); end if;
        v_job := jsonb_populate_record(null::jobs, v_kind);
        v_job.org_id := v_member_orgs[(v_kind -> 'member')::integer];
        v_job.created_by := p_users[(v_kind -> 'member')::integer];
        -- Kinds of one series often follow each other.
        while (v_series.org_id, v_series.type, v_series.name) is distinct from (v_job.org_id, v_job.type, v_job.name)
        loop
          select s.* into v_series
          from series s
          where s.org_id = v_job.org_id
            and s.type = v_job.type
            and s.name = v_job.name;
          if not found then perform add_series(v_member_orgs, v_kinds); end if;
        end loop;
        v_job.series_id := v_series.id;

        if v_job.prediction_source is null then
          v_job := with_running_estimate(v_job, v_series.mean_log, v_series.deviation_log);
        end if;

        v_rank := v_job.rank_base + v_job.rank_slope * ln(v_job.predicted_ms);
        v_jobs[i] := v_job;
        v_lanes[i] := lane_of(v_rank);
        v_starts_by[i] := v_job.deadline - v_job.predicted_p90_ms * interval '1 millisecond';
        v_states[i] := case when v_job.run_at > now() then 'pending' else 'ready' end;
        v_ready_types[i] := case v_states[i] when 'ready' then v_job.type end;
        v_reasons[i] := case when v_starts_by[i] < greatest(now(), v_job.run_at) then 'deadline_at_risk' end;
        v_stored[i] := json_build_object(
          'number', v_kind -> 'number', 'status', v_states[i], 'predicted_ms', v_job.predicted_ms,
          'predicted_p90_ms', v_job.predicted_p90_ms, 'prediction_source', v_job.prediction_source,
          'model_version', v_job.model_version, 'rank', v_rank, 'deadline_at_risk', v_reasons[i] is not null
        );
      end loop;

      -- 5. The jobs.
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
      from unnest(v_jobs) with ordinality as k
      cross join lateral unnest((v_kinds -> k.ordinality::integer - 1 ->> 'jobs')::integer[]) as n
      where v_skipped[n] is not true;
      insert into ready_jobs (
        org_id, job_id, series_id, type, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by
      )
      select
        k.org_id, p_job_ids[n], k.series_id, k.type, v_lanes[k.ordinality], 0, k.cpu_units, k.memory_mb,
        k.predicted_ms, v_starts_by[k.ordinality]
      from unnest(v_jobs) with ordinality as k
      cross join lateral unnest((v_kinds -> k.ordinality::integer - 1 ->> 'jobs')::integer[]) as n
      where v_states[k.ordinality] = 'ready'
        and v_blocked_by[n] is null
        and v_skipped[n] is not true
      order by n;
      if 'pending' = any (v_states) then
        insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
        select p_job_ids[n], k.org_id, 'pending', 0, k.run_at
        from unnest(v_jobs) with ordinality as k
        cross join lateral unnest((v_kinds -> k.ordinality::integer - 1 ->> 'jobs')::integer[]) as n
        where v_states[k.ordinality] = 'pending'
          and v_blocked_by[n] is null
          and v_skipped[n] is not true;
      end if;

      -- 6. Dependencies.
      if cardinality(p_parents) > 0 then
        v_blocked := block_jobs(
          v_orgs, p_last_jobs, p_kinds, p_job_ids, p_job_kinds, p_children, p_parents, v_skipped, v_blocked_by
        );
      end if;

      -- 7. The wake-up and the events.
      v_announced := announce(array_remove(v_ready_types, null));
      if cardinality(v_jobs) = 1 and v_skipped is null and v_blocked_by is null then
        perform record_events(
          array[v_job.org_id], p_job_ids, v_states, '{0}', array_remove(v_reasons, null), '{}'
        );
      else
        perform record_events(
          array_agg(k.org_id order by n), array_agg(p_job_ids[n] order by n),
          array_agg(case when v_blocked_by[n] > 0 then 'blocked' else v_states[k.ordinality] end order by n), '{0}',
          case when cardinality(array_remove(v_reasons, null)) > 0
            then array_agg(v_reasons[k.ordinality] order by n) else '{}' end,
          '{}'
        )
        from unnest(v_jobs) with ordinality as k
        cross join lateral unnest((v_kinds -> k.ordinality::integer - 1 ->> 'jobs')::integer[]) as n
        where v_skipped[n] is not true;
      end if;
      v_answers := v_answers || json_build_object(
        'only', v_only, 'refusals', v_refusals, 'created_at', now(), 'announced', v_announced,
        'kinds', array_to_json(v_stored), 'blocked', v_blocked, 'unpredicted', v_unpredicted
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

create or replace function without_prediction(p_columns jsonb) returns jsonb
language sql immutable
-- What would have been sent of a kind, or of a single job, without a prediction.
return p_columns
  - '{predicted_ms,predicted_p90_ms,predicted_p99_ms,prediction_source,model_version,residual_log}'::text[]
  - '{promised_wait_ms,unpredicted}'::text[]
  || coalesce(p_columns -> 'unpredicted', '{}');

create or replace function with_running_estimate(
  p_job jobs, p_mean_log double precision, p_deviation_log double precision
) returns jobs
language plpgsql
as $$
-- The job with the running estimate of its series instead of a prediction.
declare
  v_log double precision := p_mean_log;
  v_deviation double precision := p_deviation_log;
begin
  p_job.prediction_source := 'series';
  if v_log is null then
    select e.source, e.mean_log, e.deviation_log
    into p_job.prediction_source, v_log, v_deviation
    from starting_estimate(p_job.org_id, p_job.type) as e;
  end if;
  -- Clamped, so that exp cannot fail even if a stored estimate is corrupt.
  v_log := least(greatest(v_log, -30), 30);
  p_job.predicted_ms := exp(v_log);
  p_job.predicted_p90_ms := exp(least(v_log + 1.6 * greatest(v_deviation, 0), 30));
  p_job.residual_log := 0;
  return p_job;
end
$$;

create or replace function announce(p_types text[]) returns boolean
language plpgsql
as $$
-- Wakes the workers for new jobs of these types when the transaction commits, which saves the caller a round trip. At
-- most one commit in 5 ms does so: NOTIFY holds a server-wide lock while the commit is flushed. If this returns false,
-- the caller notifies them a moment later, unless another commit has done so by then (functions/jobs/announcer.ts).
-- The time of the last notification is kept in a sequence, which is read and set without a row lock.
declare
  v_now_ms constant bigint := date_part('epoch', clock_timestamp()) * 1000;
begin
  -- The clock may have been set back a little.
  if cardinality(p_types) = 0 or v_now_ms - pg_sequence_last_value('announced_ms') between -1000 and 4 then
    return false;
  end if;
  perform setval('announced_ms', v_now_ms);
  for i in 1 .. cardinality(p_types) loop
    perform pg_notify('jobs_ready', p_types[i]);
  end loop;
  return true;
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
