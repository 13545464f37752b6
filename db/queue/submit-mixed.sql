-- Submit jobs on the slow path: submissions of several members or kinds, with parents, or with something to refuse. The
-- guarantees and locks are those of submit_jobs (submit.sql), which has checked the members.
--
-- If Postgres rejects a value, the call starts again, submission by submission. One that is rejected again is stored
-- with the running estimate instead of its prediction, or refused.
--
-- Measured with Postgres 18, server CPU per job if all predictions differ: 33 µs in a batch of 450, and 39 µs in a
-- group of 50 submissions.

create or replace function submit_mixed(
  -- By member: the organisation, or null if the member may not submit to it. The other parameters are those of
  -- submit_jobs.
  p_member_orgs uuid[],
  p_users uuid[],
  p_members integer[],
  p_last_jobs integer[],
  p_last_bytes bigint[],
  p_kinds jsonb,
  p_job_ids uuid[],
  p_job_kinds integer[],
  p_payloads jsonb,
  p_promised_waits_ms double precision[],
  p_samples jsonb,
  p_traceparents text[],
  p_children integer[],
  p_parents uuid[],
  p_inside boolean[],
  p_idempotency jsonb,
  p_charged boolean
) returns json
language plpgsql
as $$
declare
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
  while cardinality(v_answers) < v_wanted_answers loop
    if v_wanted_answers > 1 then v_only := cardinality(v_answers) + 1; end if;
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
      v_flows bigint[];
      v_lanes smallint[];
      v_starts_by timestamptz[];
      v_states job_state[];
      v_ready_types text[];
      v_reasons text[];
      v_stored json[];
      v_announced boolean;
    begin
      -- Usually there is a single member. Doing without these queries saves 4 % of a call for two jobs.
      if v_only is null and cardinality(p_member_orgs) = 1 and p_member_orgs[1] is not null then
        v_orgs := array_fill(p_member_orgs[1], array[cardinality(p_members)]);
      else
        v_orgs := array(
          select case when s = coalesce(v_only, s) then p_member_orgs[p_members[s]] end
          from generate_subscripts(p_members, 1) as s
          order by s
        );
        select coalesce(jsonb_agg(jsonb_build_object('submission', s, 'refusal', 'not_member')), '[]')
        into v_refusals
        from generate_subscripts(p_members, 1) as s
        where p_member_orgs[p_members[s]] is null
          and s = coalesce(v_only, s);
      end if;

      -- 1. Parents, which stay locked until the commit.
      if cardinality(p_parents) > 0 then
        select v_refusals || p.refusals, p.blocked_by
        into v_refusals, v_blocked_by
        from judge_parents(
          v_orgs, p_last_jobs, p_kinds, p_job_ids, p_job_kinds, p_children, p_parents, p_inside
        ) as p;
        v_orgs := without_refused(v_orgs, v_refusals);
      end if;

      -- 2. Idempotency keys and quotas, one organisation after the other.
      if p_charged then
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

      -- 3. What the jobs of each kind have in common. The lock keeps the series until their jobs are stored: see
      -- forget_series.
      lock table jobs in row exclusive mode;
      for i in 1 .. jsonb_array_length(v_kinds) loop
        v_kind := v_kinds -> i - 1;
        if v_unpredicted is not null then v_kind := without_prediction(v_kind); end if;
        v_job := jsonb_populate_record(null::jobs, v_kind);
        v_job.org_id := p_member_orgs[(v_kind -> 'member')::integer];
        v_job.created_by := p_users[(v_kind -> 'member')::integer];
        -- Kinds of one series often follow each other.
        while (v_series.org_id, v_series.type, v_series.name) is distinct from (v_job.org_id, v_job.type, v_job.name)
        loop
          select s.* into v_series
          from series s
          where s.org_id = v_job.org_id
            and s.type = v_job.type
            and s.name = v_job.name;
          if not found then perform add_series(p_member_orgs, v_kinds); end if;
        end loop;
        v_job.series_id := v_series.id;

        if v_job.prediction_source is null then
          v_job := with_running_estimate(v_job, v_series.mean_log, v_series.deviation_log);
        end if;

        v_rank := v_job.rank_base + v_job.rank_slope * ln(v_job.predicted_ms);
        v_jobs[i] := v_job;
        v_flows[i] := flow_of(v_job.org_id, v_job.fairness_key);
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

      -- 4. The jobs.
      insert into jobs (
        org_id, id, created_by, series_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
        predicted_ms, predicted_p90_ms, predicted_p99_ms, prediction_source, model_version, residual_log,
        rank_base, rank_slope, promised_wait_ms, sample, callback_url, triggered_by, traceparent, fairness_key
      )
      select
        k.org_id, p_job_ids[n], k.created_by, k.series_id, k.type, k.name, p_payloads -> n - 1, k.priority,
        k.tags, k.timeout_seconds, k.max_attempts, k.initial_delay_seconds, k.backoff_multiplier, k.cpu_units,
        k.memory_mb, k.run_at, k.deadline, k.on_parent_failure, k.predicted_ms, k.predicted_p90_ms,
        k.predicted_p99_ms, k.prediction_source, k.model_version, k.residual_log, k.rank_base, k.rank_slope,
        case when v_unpredicted is null then p_promised_waits_ms[n] end,
        case when v_unpredicted is null then decode(p_samples ->> n - 1, 'base64') end,
        k.callback_url, k.triggered_by, p_traceparents[least(n, cardinality(p_traceparents))], k.fairness_key
      from unnest(v_jobs) with ordinality as k
      cross join lateral unnest((v_kinds -> k.ordinality::integer - 1 ->> 'jobs')::integer[]) as n
      where v_skipped[n] is not true;
      insert into ready_jobs (
        org_id, job_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by
      )
      select
        k.org_id, p_job_ids[n], k.series_id, k.type, v_flows[k.ordinality], v_lanes[k.ordinality], 0, k.cpu_units,
        k.memory_mb, k.predicted_ms, v_starts_by[k.ordinality]
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

      -- 5. Dependencies.
      if cardinality(p_parents) > 0 then
        v_blocked := block_jobs(
          v_orgs, p_last_jobs, p_kinds, p_job_ids, p_job_kinds, p_children, p_parents, v_skipped, v_blocked_by
        );
      end if;

      -- 6. The wake-up and the events.
      v_announced := announce(array_remove(v_ready_types, null));
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
