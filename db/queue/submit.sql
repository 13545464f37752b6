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
-- organisation's row in quota_states until it commits.
--
-- Jobs that are submitted together usually differ only in their ids and payloads. The fields they share are a kind,
-- which is sent, checked, looked up and answered once. CONTRIBUTING.md explains how to add a field.
--
-- Most calls have one member, one kind, no parents and nothing to refuse: a single job, a batch, or what several
-- clients submit at the same time. They are stored here. All other calls go to submit_mixed (submit-mixed.sql),
-- including calls in which a submission must be refused; anything stored here is rolled back first. Only a repeated
-- request, a single submission whose key was used before, is also answered here.
--
-- Locks, in this order: parents of new dependents (see lock_parents), rows of quota_states by organisation, the table
-- jobs against forget_series, new series by organisation, type and name. A call for several organisations skips a
-- locked row of quota_states and answers 'busy', so that one organisation does not delay the others. A call for one
-- organisation waits.
--
-- Indexes: series_identity to find the series, org_type_estimates_pkey and type_estimates_pkey for the first estimate
-- of a new series, idempotency_keys_pkey to find a key.
--
-- Measured with Postgres 18, server CPU per job: 304 µs alone, 14 µs in a group of 50 submissions, and 8 µs in a batch
-- of 450. submit_mixed takes 1.25, 1.15 and 1.08 times as much for the same calls, which is why the fast path has its
-- own statements.

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
  v_charged constant boolean := p_charged or not v_is_worker;
  v_submissions constant integer := cardinality(p_members);
  -- By member: the organisation, or null if the member may not submit to it.
  v_member_orgs uuid[] := p_orgs;
  v_org constant uuid := p_orgs[1];
  v_orgs uuid[];
  v_refusals jsonb;
  v_job jobs;
  v_mean_log double precision;
  v_deviation_log double precision;
  v_rank double precision;
  v_flow bigint;
  v_lane smallint;
  v_start_by timestamptz;
  v_state job_state;
  v_reasons text[];
  v_announced boolean := false;
begin
  if v_submissions = 0 then return '[]'; end if;

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

  -- The block is a subtransaction, which adds 2 % to the time of a single job.
  <<fast_path>>
  begin
    exit fast_path when cardinality(v_member_orgs) > 1 or v_member_orgs[1] is null or jsonb_array_length(p_kinds) > 1
      or cardinality(p_parents) > 0;

    -- 2. Idempotency keys and quotas.
    if p_idempotency is not null then
      v_orgs := array_fill(v_org, array[v_submissions]);
      if v_charged then v_refusals := admit_submissions(v_orgs, p_last_jobs, p_last_bytes, p_idempotency); end if;
      if v_refusals <> '[]' then
        -- If the only submission is refused, as when a request is repeated, nothing was charged.
        if v_submissions = 1 then return json_build_array(json_build_object('refusals', v_refusals)); end if;
        raise data_exception using message = 'A submission is refused';
      end if;
      perform keep_keys(v_orgs, p_idempotency);
    elsif v_charged then
      v_refusals := charge_quotas(v_org, p_last_jobs[v_submissions], p_last_bytes[v_submissions]);
      exit fast_path when v_refusals is not null;
    end if;

    -- 3. The series. The lock keeps it until its jobs are stored: see forget_series.
    lock table jobs in row exclusive mode;
    v_job := jsonb_populate_record(null::jobs, p_kinds -> 0);
    v_job.org_id := v_org;
    loop
      select s.id, s.mean_log, s.deviation_log
      into v_job.series_id, v_mean_log, v_deviation_log
      from series s
      where s.org_id = v_org
        and s.type = v_job.type
        and s.name = v_job.name;
      exit when found;
      perform add_series(v_member_orgs, p_kinds);
    end loop;

    -- 4. The jobs.
    if v_job.prediction_source is null then
      v_job := with_running_estimate(v_job, v_mean_log, v_deviation_log);
    end if;
    insert into jobs (
      org_id, id, created_by, series_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
      initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
      predicted_ms, predicted_p90_ms, predicted_p99_ms, prediction_source, model_version, residual_log, rank_base,
      rank_slope, promised_wait_ms, sample, callback_url, triggered_by, traceparent, fairness_key
    )
    select
      v_org, p_job_ids[n], p_users[1], v_job.series_id, v_job.type, v_job.name, p_payloads -> n - 1, v_job.priority,
      v_job.tags, v_job.timeout_seconds, v_job.max_attempts, v_job.initial_delay_seconds, v_job.backoff_multiplier,
      v_job.cpu_units, v_job.memory_mb, v_job.run_at, v_job.deadline, v_job.on_parent_failure, v_job.predicted_ms,
      v_job.predicted_p90_ms, v_job.predicted_p99_ms, v_job.prediction_source, v_job.model_version, v_job.residual_log,
      v_job.rank_base, v_job.rank_slope, p_promised_waits_ms[n], decode(p_samples ->> n - 1, 'base64'),
      v_job.callback_url, v_job.triggered_by, p_traceparents[least(n, cardinality(p_traceparents))], v_job.fairness_key
    from generate_subscripts(p_job_ids, 1) as n;

    v_rank := v_job.rank_base + v_job.rank_slope * ln(v_job.predicted_ms);
    v_start_by := v_job.deadline - v_job.predicted_p90_ms * interval '1 millisecond';
    v_reasons := case when v_start_by < greatest(now(), v_job.run_at) then '{deadline_at_risk}' else '{}' end;
    if v_job.run_at > now() then
      v_state := 'pending';
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
      select id, v_org, 'pending', 0, v_job.run_at
      from unnest(p_job_ids) as id;
    else
      v_state := 'ready';
      v_flow := flow_of(v_org, v_job.fairness_key);
      v_lane := lane_of(v_rank);
      insert into ready_jobs (
        org_id, job_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by
      )
      select
        v_org, id, v_job.series_id, v_job.type, v_flow, v_lane, 0, v_job.cpu_units, v_job.memory_mb, v_job.predicted_ms,
        v_start_by
      from unnest(p_job_ids) as id;
      v_announced := announce(array[v_job.type]);
    end if;

    -- 5. The events. Inserted directly, because calling record_events adds 2 % to the time of a single job.
    insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
    values (v_org, p_job_ids, array[v_state], '{0}', v_reasons, '{}');
    return json_build_array(json_build_object(
      'created_at', now(), 'announced', v_announced, 'kinds', json_build_array(json_build_object(
        'number', 1, 'status', v_state, 'predicted_ms', v_job.predicted_ms,
        'predicted_p90_ms', v_job.predicted_p90_ms, 'prediction_source', v_job.prediction_source,
        'model_version', v_job.model_version, 'rank', v_rank, 'deadline_at_risk', v_reasons <> '{}'
      ))
    ));
  exception when data_exception or not_null_violation or check_violation or unique_violation then
    -- Postgres has rolled the block back. submit_mixed starts again and finds the submission to refuse.
  end;
  return submit_mixed(
    v_member_orgs, p_users, p_members, p_last_jobs, p_last_bytes, p_kinds, p_job_ids, p_job_kinds, p_payloads,
    p_promised_waits_ms, p_samples, p_traceparents, p_children, p_parents, p_inside, p_idempotency, v_charged
  );
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
-- The kind as it would have been sent without a prediction.
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
