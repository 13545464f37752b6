-- Submit jobs.
--
-- One call commits many submissions, each for itself: all of its jobs or none. It answers a verdict for each: the jobs
-- as
-- they were stored, or why they were refused. A refused submission never affects the others of the call.
--
--   not_member       the credentials do not allow the member to submit to the organisation
--   unknown_parent   a job depends on a job that the organisation does not have
--   failed_parent    a job depends on a job that has failed or was cancelled, and is not told to wait
--   used_key         an idempotency key was used before
--   quota            the organisation would exceed a quota
--   busy             another transaction holds the quotas of the organisation; submit again, alone
--   invalid          Postgres rejects a value
--
-- Quotas and idempotency are exact, because submissions of one organisation take turns: each holds the organisation's
-- row in
-- quota_states until it commits. A job whose prediction Postgres rejects is stored with the running estimate instead.
--
-- Jobs that are submitted together are mostly alike except for their ids and payloads. What they have in common is a
-- kind:
-- it is sent, checked, looked up and answered once. Adding a field to a job means adding it to jobs_of_kinds below; see
-- CONTRIBUTING.md.
--
-- Locks, in this order: parents of new dependents (see lock_parents), rows of quota_states by organisation, new series.
-- A
-- call for several organisations skips a row that is locked and answers 'busy', so that one organisation does not delay
-- the others. A call for one organisation waits.
--
-- Indexes: series_identity finds the series, org_type_estimates_pkey and type_estimates_pkey what a new series starts
-- from, idempotency_keys_pkey a key, job_event_groups_pkey the newest event.

create or replace function submit_jobs(
  -- Members: user, session or API key, and their secret, for one organisation each. Without a user, the transaction
  -- must
  -- have opened the organisation before, or belong to a worker.
  p_orgs uuid[],
  p_users uuid[],
  p_sessions uuid[],
  p_keys uuid[],
  p_secrets text[],
  -- Submissions: the number of the member, the number of the last job, and the bytes of all payloads.
  p_members integer[],
  p_last_jobs integer[],
  p_bytes bigint[],
  -- [{number, member, and the fields in jobs_of_kinds}]
  p_kinds jsonb,
  -- Jobs, in the order of their submissions. A single trace speaks for all jobs.
  p_job_ids uuid[],
  p_job_kinds integer[],
  p_payloads jsonb,
  p_promised_waits_ms double precision[] default '{}',
  p_samples jsonb default null,
  p_traceparents text[] default '{}',
  -- Dependencies: the number of the job, its parent, and whether the parent is a job of the same submission.
  p_children integer[] default '{}',
  p_parents uuid[] default '{}',
  p_inside boolean[] default '{}',
  -- [{submission, key, body_hash, job_ids, keep_seconds?}]
  p_idempotency jsonb default null,
  -- False: quotas do not apply. Only workers may ask for that.
  p_charged boolean default true
) returns json
language plpgsql
security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_jobs constant integer := cardinality(p_job_ids);
  -- By member: the organisation, or null if they may not submit to it.
  v_member_orgs uuid[] := p_orgs;
  v_role text;
  v_may boolean;
  -- By submission: the organisation, or null once it is refused.
  v_orgs uuid[];
  v_refusals jsonb := '[]';
  -- By job: whether its submission is refused, and for how many parents it waits.
  v_skipped boolean[] := '{}';
  v_blocked_by integer[] := '{}';
  v_keys bigint[] := '{}';
  -- By kind.
  v_kind_orgs uuid[] := '{}';
  v_types text[] := '{}';
  v_states job_state[] := '{}';
  v_reasons text[] := '{}';
  v_kinds json[] := '{}';
  -- Of one kind.
  v_numbers integer[];
  v_fields jsonb;
  v_member integer;
  v_kind jobs;
  v_mean_log double precision;
  v_deviation_log double precision;
  v_rank double precision;
  v_lane smallint;
  v_start_by timestamptz;
  v_at_risk boolean;
  v_announced boolean;
  v_answer jsonb;
  -- What Postgres rejects.
  v_code text;
  v_message text;
begin
  if p_members is null then return '[]'; end if;
  begin
    -- 1. Members. An admin may submit only where they are a member.
    for i in 1 .. cardinality(p_orgs) loop
      if p_users[i] is null then
        v_may := is_open(p_orgs[i]);
      else
        v_role := role_in(p_orgs[i], p_users[i], p_sessions[i], p_keys[i], p_secrets[i]);
        v_may := v_role in ('user', 'org_admin')
          or (v_role = 'admin' and exists (select from memberships where org_id = p_orgs[i] and user_id = p_users[i]));
      end if;
      if v_may is not true then
        v_member_orgs[i] := null;
      elsif p_keys[i] is not null then
        update api_keys
        set last_used_at = now()
        where id = any (
          array(
            select k.id
            from api_keys k
            where k.id = p_keys[i]
              and (k.last_used_at is null or k.last_used_at < now() - interval '1 minute')
            for update skip locked
          )
        );
      end if;
    end loop;
    if cardinality(p_orgs) = 1 then
      v_orgs := array_fill(v_member_orgs[1], array[cardinality(p_members)]);
    else
      v_orgs := array(select v_member_orgs[m] from unnest(p_members) with ordinality as s (m, i) order by i);
    end if;
    if array_position(v_orgs, null) is not null then
      select jsonb_agg(jsonb_build_object('submission', i, 'refusal', 'not_member'))
      into v_refusals
      from generate_subscripts(v_orgs, 1) as i
      where v_orgs[i] is null;
    end if;

    -- 2. Parents, which stay as they are until the commit.
    if cardinality(p_parents) > 0 then
      select v_refusals || p.refusals, p.blocked_by
      into v_refusals, v_blocked_by
      from judge_parents(
        v_orgs, p_last_jobs, p_kinds, p_job_ids, p_job_kinds, p_children, p_parents, p_inside
      ) as p;
      v_orgs := without_refused(v_orgs, v_refusals);
    end if;

    -- 3. Idempotency keys and quotas, one organisation after the other.
    if p_charged or not pg_has_role(session_user, 'smartqueue_workers', 'usage') then
      v_refusals := v_refusals || admit_submissions(v_orgs, p_last_jobs, p_bytes, p_idempotency);
    end if;
    if v_refusals <> '[]' then
      v_orgs := without_refused(v_orgs, v_refusals);
      v_skipped := array(
        select v_orgs[width_bucket(n - 1, p_last_jobs) + 1] is null
        from generate_series(1, v_jobs) as n
        order by n
      );
      if true = all (v_skipped) then
        return json_build_array(json_build_object('refusals', v_refusals));
      end if;
    end if;
    if p_idempotency is not null then perform keep_keys(v_orgs, p_idempotency); end if;

    -- 4. The jobs, kind by kind. Plain statements with the values of a kind in a variable take 370 µs for one job, and
    -- one
    -- statement for all kinds, with each table filled from a common table expression, 980.
    -- Waits for forget_series, and keeps a series that is found from being forgotten before the commit.
    lock table jobs in row exclusive mode;
    if jsonb_array_length(p_kinds) > 1 then
      -- Jobs become ready in the order in which they were submitted, whatever their kinds.
      v_keys := array(select nextval('ready_keys') from generate_series(1, v_jobs));
    end if;
    for v_position in 1 .. jsonb_array_length(p_kinds) loop
      v_numbers := array_positions(p_job_kinds, v_position);
      if v_skipped <> '{}' then
        v_numbers := array(select n from unnest(v_numbers) as n where not v_skipped[n]);
      end if;
      continue when v_numbers = '{}';
      v_fields := p_kinds -> v_position - 1;
      v_member := v_fields ->> 'member';
      v_kind := jsonb_populate_record(null::jobs, v_fields);
      v_kind.org_id := v_member_orgs[v_member];
      v_kind.created_by := p_users[v_member];

      select s.id, s.mean_log, s.deviation_log
      into v_kind.series_id, v_mean_log, v_deviation_log
      from series s
      where s.org_id = v_kind.org_id
        and s.type = v_kind.type
        and s.name = v_kind.name;
      if not found then
        -- On conflict an update and not nothing: only then is the row returned that another call has just created.
        insert into series as s (org_id, type, name)
        values (v_kind.org_id, v_kind.type, v_kind.name)
        on conflict on constraint series_identity do update
        set name = excluded.name
        returning s.id into v_kind.series_id;
      end if;

      if v_fields ? 'p50_log' then
        v_kind.predicted_ms := exp((v_fields ->> 'p50_log')::double precision);
        v_kind.predicted_p90_ms := exp((v_fields ->> 'p90_log')::double precision);
        v_kind.predicted_p99_ms := exp((v_fields ->> 'p99_log')::double precision);
      else
        v_kind.residual_log := 0;
        v_kind.prediction_source := 'series';
        if v_mean_log is null then
          select e.source, e.mean_log, e.deviation_log
          into v_kind.prediction_source, v_mean_log, v_deviation_log
          from starting_estimate(v_kind.org_id, v_kind.type) as e;
        end if;
        -- Clamped, so that exp cannot fail even if a stored estimate is corrupt.
        v_mean_log := least(greatest(v_mean_log, -30), 30);
        v_kind.predicted_ms := exp(v_mean_log);
        v_kind.predicted_p90_ms := exp(least(v_mean_log + 1.6 * least(greatest(v_deviation_log, 0), 30), 30));
      end if;
      v_rank := v_kind.rank_base + v_kind.rank_slope * ln(v_kind.predicted_ms);
      v_start_by := v_kind.deadline - v_kind.predicted_p90_ms * interval '1 millisecond';

      insert into jobs (
        org_id, id, created_by, series_id, type, name, payload, priority, tags, timeout_seconds, max_attempts,
        initial_delay_seconds, backoff_multiplier, cpu_units, memory_mb, run_at, deadline, on_parent_failure,
        predicted_ms, predicted_p90_ms, predicted_p99_ms, prediction_source, model_version, residual_log, rank_base,
        rank_slope, promised_wait_ms, sample, callback_url, triggered_by, traceparent
      )
      select
        k.org_id, p_job_ids[n], k.created_by, k.series_id, k.type, k.name, p_payloads -> n - 1,
        k.priority, k.tags, k.timeout_seconds, k.max_attempts, k.initial_delay_seconds,
        k.backoff_multiplier, k.cpu_units, k.memory_mb, k.run_at, k.deadline,
        k.on_parent_failure, k.predicted_ms, k.predicted_p90_ms, k.predicted_p99_ms,
        k.prediction_source, k.model_version, k.residual_log, k.rank_base, k.rank_slope,
        p_promised_waits_ms[n], decode(p_samples ->> n - 1, 'base64'), k.callback_url, k.triggered_by,
        p_traceparents[least(n, cardinality(p_traceparents))]
      from (select v_kind.* offset 0) as k
      cross join unnest(v_numbers) as n;

      if v_kind.run_at > now() then
        v_states[v_position] := 'pending';
        insert into waiting_jobs (job_id, org_id, state, attempts, wake_at)
        select p_job_ids[n], v_kind.org_id, 'pending', 0, v_kind.run_at
        from unnest(v_numbers) as n
        where v_blocked_by[n] is null;
      else
        v_states[v_position] := 'ready';
        v_lane := lane_of(v_rank);
        insert into ready_jobs (
          org_id, job_id, series_id, type, lane, key, attempts, cpu_units, memory_mb, predicted_ms, start_by
        )
        select
          v_kind.org_id, p_job_ids[n], v_kind.series_id, v_kind.type, v_lane,
          coalesce(v_keys[n], nextval('ready_keys')), 0, v_kind.cpu_units,
          v_kind.memory_mb, v_kind.predicted_ms, v_start_by
        from unnest(v_numbers) as n
        where v_blocked_by[n] is null;
      end if;

      v_kind_orgs[v_position] := v_kind.org_id;
      v_types[v_position] := v_kind.type;
      v_at_risk := coalesce(v_start_by < greatest(now(), v_kind.run_at), false);
      v_reasons[v_position] := case when v_at_risk then 'deadline_at_risk' end;
      v_kinds := v_kinds || json_build_object(
        'number', v_fields -> 'number', 'status', v_states[v_position], 'predicted_ms', v_kind.predicted_ms,
        'predicted_p90_ms', v_kind.predicted_p90_ms, 'prediction_source', v_kind.prediction_source,
        'model_version', v_kind.model_version, 'rank', v_rank, 'deadline_at_risk', v_at_risk
      );
    end loop;

    -- 5. Dependencies.
    if cardinality(p_parents) > 0 then
      perform block_jobs(
        v_orgs, p_last_jobs, p_kinds, p_job_ids, p_job_kinds, p_children, p_parents, v_skipped, v_blocked_by
      );
    end if;

    -- 6. The wake-up and the events.
    -- On a quiet system the commit wakes the workers, which spares a lone job a round trip. At any other time that
    -- would hold
    -- up others (db/channels.ts), and the caller wakes them after the commit. Postgres sends what is said twice only
    -- once.
    v_announced := 'ready' = any (v_states) and coalesce(
      (select e.at from job_event_groups e order by e.id desc limit 1) <= now() - interval '5 milliseconds', true
    );
    if v_announced then
      for i in 1 .. cardinality(v_types) loop
        if v_states[i] = 'ready' then perform pg_notify('jobs_ready', v_types[i]); end if;
      end loop;
    end if;
    if cardinality(v_states) = 1 and v_skipped = '{}' and v_blocked_by = '{}' then
      perform record_events(v_kind_orgs, p_job_ids, v_states, '{0}', array_remove(v_reasons, null), '{}');
    else
      perform record_events(
        array_agg(v_kind_orgs[k] order by n), array_agg(p_job_ids[n] order by n),
        array_agg(case when v_blocked_by[n] > 0 then 'blocked' else v_states[k] end order by n), '{0}',
        case when count(v_reasons[k]) > 0 then array_agg(v_reasons[k] order by n) else '{}' end, '{}'
      )
      from generate_series(1, v_jobs) as n
      cross join lateral (select p_job_kinds[n] as k) as kind
      where v_skipped[n] is not true;
    end if;
    return json_build_array(json_build_object(
      'refusals', v_refusals, 'created_at', now(), 'announced', v_announced, 'kinds', array_to_json(v_kinds),
      'blocked', case
        when v_blocked_by = '{}' then '[]'
        else (
          select coalesce(json_agg(p_job_ids[n]), '[]')
          from generate_series(1, v_jobs) as n
          where v_blocked_by[n] > 0
            and v_skipped[n] is not true
        )
      end
    ));
  exception when data_exception or not_null_violation or check_violation or unique_violation then
    -- Postgres has rolled back to the beginning of the block.
    get stacked diagnostics v_code = returned_sqlstate, v_message = message_text;
  end;

  -- Postgres rejects a value. Of several submissions each is stored for itself; one that stands alone is stored without
  -- its
  -- predictions or refused.
  if cardinality(p_members) > 1 then
    return json_agg(
      submit_jobs_alone(
        i, p_orgs, p_users, p_sessions, p_keys, p_secrets, p_members, p_last_jobs, p_bytes, p_kinds, p_job_ids,
        p_job_kinds, p_payloads, p_promised_waits_ms, p_samples, p_traceparents, p_children, p_parents, p_inside,
        p_idempotency, p_charged
      )
      order by i
    )
    from generate_subscripts(p_members, 1) as i;
  end if;
  if not jsonb_path_exists(p_kinds, '$[*].unpredicted') then
    v_refusals := jsonb_build_object(
      'submission', 1, 'refusal', 'invalid', 'detail', jsonb_build_object('code', v_code, 'message', v_message)
    );
    return json_build_array(json_build_object('refusals', jsonb_build_array(v_refusals)));
  end if;
  v_answer := submit_jobs(
    p_orgs, p_users, p_sessions, p_keys, p_secrets, p_members, p_last_jobs, p_bytes, without_predictions(p_kinds),
    p_job_ids, p_job_kinds, p_payloads, '{}', null, p_traceparents, p_children, p_parents, p_inside, p_idempotency,
    p_charged
  ) -> 0;
  return json_build_array(v_answer || jsonb_build_object('unpredicted', v_message));
end
$$;

create or replace function submit_jobs_alone(
  p_submission integer,
  p_orgs uuid[],
  p_users uuid[],
  p_sessions uuid[],
  p_keys uuid[],
  p_secrets text[],
  p_members integer[],
  p_last_jobs integer[],
  p_bytes bigint[],
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
) returns jsonb
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Submits one submission of several, in a call of its own. The answer has its number.
declare
  v_member constant integer := p_members[p_submission];
  v_last constant integer := p_last_jobs[p_submission];
  v_first constant integer := coalesce(p_last_jobs[p_submission - 1], 0) + 1;
  v_range constant jsonb := jsonb_build_object('first', v_first - 1, 'last', v_last - 1);
  v_numbers constant integer[] := array(select distinct k from unnest(p_job_kinds[v_first:v_last]) as k order by k);
  v_edges constant integer[] := array(
    select e from generate_subscripts(p_children, 1) as e where p_children[e] between v_first and v_last order by e
  );
  v_answer jsonb;
begin
  v_answer := submit_jobs(
    p_orgs[v_member:v_member], p_users[v_member:v_member], p_sessions[v_member:v_member], p_keys[v_member:v_member],
    p_secrets[v_member:v_member], '{1}', array[v_last - v_first + 1], p_bytes[p_submission:p_submission],
    (select jsonb_agg(p_kinds -> k - 1 || '{"member": 1}' order by k) from unnest(v_numbers) as k),
    p_job_ids[v_first:v_last],
    array(select array_position(v_numbers, p_job_kinds[n]) from generate_series(v_first, v_last) as n order by n),
    jsonb_path_query_array(p_payloads, '$[$first to $last]', v_range),
    p_promised_waits_ms[v_first:v_last],
    jsonb_path_query_array(p_samples, '$[$first to $last]', v_range),
    case when cardinality(p_traceparents) > 1 then p_traceparents[v_first:v_last] else p_traceparents end,
    array(select p_children[e] - v_first + 1 from unnest(v_edges) as e),
    array(select p_parents[e] from unnest(v_edges) as e),
    array(select p_inside[e] from unnest(v_edges) as e),
    (
      select jsonb_agg(k || '{"submission": 1}')
      from jsonb_array_elements(p_idempotency) as k
      where (k -> 'submission')::integer = p_submission
    ),
    p_charged
  ) -> 0;
  return v_answer || jsonb_build_object('only', p_submission);
end
$$;

create or replace function without_predictions(p_kinds jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
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
-- What a series without executions starts from: the organisation's jobs of the type, all jobs of the type, all jobs, or
-- a second, and ten in nine of ten cases.
begin atomic
  select e.source, e.mean_log, e.deviation_log
  from (
    select 'type' as source, o.mean_log, o.deviation_log, 1 as place
    from org_type_estimates o
    where o.org_id = p_org
      and o.type = p_type
    union all
    select
      case t.type when '' then 'default' else 'type' end, coalesce(t.median_log, t.mean_log), t.deviation_log,
      case t.type when '' then 3 else 2 end
    from type_estimates t
    where t.type = any (array[p_type, ''])
    union all
    select 'default', ln(1000), 1.44, 4
  ) e
  where p_type is not null
  order by e.place
  limit 1;
end;

create or replace function without_refused(p_orgs uuid[], p_refusals jsonb) returns uuid[]
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- The organisations of submissions, with null for those that are refused.
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

create or replace function judge_parents(
  p_orgs uuid[],
  p_last_jobs integer[],
  p_kinds jsonb,
  p_job_ids uuid[],
  p_job_kinds integer[],
  p_children integer[],
  p_parents uuid[],
  p_inside boolean[],
  out refusals jsonb,
  out blocked_by integer[]
)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Locks the parents of new jobs. Returns the parents that make a submission impossible, and by job the number of
-- parents
-- that have not completed, null for none.
begin
  with dependency as materialized (
    select
      s as submission, p_orgs[s] as org_id, p_children[e] as job, p_parents[e] as parent_id, p_inside[e] as inside,
      p_kinds -> p_job_kinds[p_children[e]] - 1 ->> 'on_parent_failure' as rule
    from generate_subscripts(p_parents, 1) as e
    cross join lateral (select width_bucket(p_children[e] - 1, p_last_jobs) + 1 as s) as child
    where p_orgs[s] is not null
  ),
  parent as materialized (
    select o.org_id, p.job_id, p.state
    from (
      select org_id, array_agg(distinct parent_id) as parent_ids
      from dependency
      where not inside
      group by org_id
      order by org_id
    ) o
    cross join lateral lock_parents(o.org_id, o.parent_ids) p
  ),
  refusal as (
    select
      d.submission, p_job_ids[d.job] as child_id, d.parent_id,
      case when p.state is null then 'unknown_parent' else 'failed_parent' end as refusal
    from dependency d
    join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
    where not d.inside
      and (p.state is null or (p.state in ('failed', 'cancelled') and d.rule = 'fail'))
  ),
  obstacle as (
    select d.job, count(*)::integer as parents
    from dependency d
    left join parent p on p.org_id = d.org_id and p.job_id = d.parent_id
    where d.inside
      or p.state <> 'completed'
    group by d.job
  )
  select
    coalesce((select jsonb_agg(to_jsonb(r)) from refusal r), '[]'),
    array(
      select o.parents
      from generate_subscripts(p_job_ids, 1) as n
      left join obstacle o on o.job = n
      order by n
    )
  into refusals, blocked_by;
end
$$;

create or replace function block_jobs(
  p_orgs uuid[],
  p_last_jobs integer[],
  p_kinds jsonb,
  p_job_ids uuid[],
  p_job_kinds integer[],
  p_children integer[],
  p_parents uuid[],
  p_skipped boolean[],
  p_blocked_by integer[]
) returns void
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Stores the dependencies of new jobs. Those with parents that have not completed are blocked.
begin
  insert into job_dependencies (parent_id, child_id, org_id)
  select p_parents[e], p_job_ids[p_children[e]], p_orgs[width_bucket(p_children[e] - 1, p_last_jobs) + 1]
  from generate_subscripts(p_parents, 1) as e
  where p_skipped[p_children[e]] is not true;

  insert into blocked_jobs (job_id, org_id, remaining, on_parent_failure)
  select
    p_job_ids[n], p_orgs[width_bucket(n - 1, p_last_jobs) + 1], p_blocked_by[n],
    p_kinds -> p_job_kinds[n] - 1 ->> 'on_parent_failure'
  from generate_subscripts(p_job_ids, 1) as n
  where p_skipped[n] is not true
    and p_blocked_by[n] > 0;
end
$$;

grant execute on function submit_jobs, starting_estimate to smartqueue_functions, smartqueue_workers;
