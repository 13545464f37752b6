-- The exchange of a worker with the queue: outcomes go in and the next jobs come out, in one call and one transaction.
--
-- exchange itself records the outcomes, fenced by the lease, and writes events and executions and releases dependents.
-- Then claim_jobs (claim.sql) leases the next jobs in queue order (choose.sql) under one new token, and learn_from_runs
-- (learn.sql) updates the running estimates of the series.
--
-- Guarantees. An outcome is recorded only while its lease still names the job; otherwise its state in the answer is
-- null. A claimed job counts as running: it is in exactly one lease, and the claim writes its running event. The retry
-- policy of the job decides here what happens after a failed attempt. An exchange commits synchronously. A worker
-- without outcomes calls only claim_jobs and commits asynchronously: if a crash undoes the claim, its jobs are ready.
--
-- Locks, in this order: the named leases, by token; blocked_jobs of dependents, by id; rows of ready_jobs, skipping
-- locked ones, so that no claim waits; series, by id, last, to hold them as briefly as possible. If an organisation has
-- a limit on running jobs, also an advisory lock, which is tried but never waited for.
--
-- Indexes: leases by token; ready_jobs_start_by, ready_jobs_order from the floors that the worker remembers, or
-- ready_jobs_age; ready_jobs_big and quotas_running to see whether the careful claim is needed, which also reads
-- reservations_by_worker; jobs and series by key.
--
-- The settings below pin the plans, because the statistics of queue tables are wrong whenever they matter.
--
-- Measured on Postgres 18, one connection on a busy machine, alternating with the composed statements that this
-- replaced (commit a14bf06). Median server CPU relative to those: 1.02 with 300 jobs per call (12.5 µs per job), 1.01
-- to 1.05 with 10 (120 µs), 1.2 to 1.3 for claiming a single job (330 to 440 µs), which had a statement of its own.

create or replace function exchange(
  p_worker_id text,
  p_lease_seconds integer,
  -- Attempts that ended: one value per job, or one for all jobs.
  p_tokens bigint[],
  p_job_ids uuid[],
  p_org_ids uuid[],
  p_series_ids bigint[],
  p_attempts integer[],
  p_ran_ms double precision[],
  p_outcomes text[],
  p_results jsonb[],
  p_errors jsonb[],
  p_permanent boolean[],
  p_delays_ms double precision[],
  p_closed bigint[],
  -- Samples of completed runs by series, and lower bounds from runs that timed out.
  p_sample_series bigint[],
  p_sample_runs double precision[],
  p_sample_logs double precision[],
  p_sample_spreads double precision[],
  p_timeout_series bigint[],
  p_timeout_logs double precision[],
  p_claim claim_request
) returns json
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_material = off
set enable_sort = off
set jit = off
as $$
declare
  -- The new state of each job, null if its lease was lost. A single value applies to all jobs.
  v_states job_state[];
  -- Whether every lease still exists with all of its jobs.
  v_whole boolean;
  v_lost integer[];
  v_delays_ms double precision[];
  v_new_states job_state[];
  v_state job_state;
  v_numbers integer[];
  v_job_ids uuid[];
  v_org_ids uuid[];
  v_series_ids bigint[];
  v_attempts integer[];
  v_ran_ms double precision[];
  v_results jsonb[];
  v_errors jsonb[];
  v_completed uuid[];
  v_failed uuid[];
  v_left uuid[];
  v_became_ready integer;
  v_claim json;
begin
  -- 1. Lock the leases, by token, so that no other transaction can remove a job from one.
  select bool_and(l.is_whole) and count(*) = (select count(distinct token) from unnest(p_tokens) as token)
  into v_whole
  from (
    select cardinality(job_ids) = claimed_jobs as is_whole
    from leases
    where token = any (p_tokens)
    order by token
    for update
  ) as l;

  -- 2. Fence: an outcome counts only if its lease still names the job. If all jobs completed and none was ever removed
  -- from these leases, none can be missing, and checking each one would take 0.6 µs per job.
  if v_whole is not true or p_outcomes <> '{completed}' then
    select array_agg(n)
    into v_lost
    from generate_series(1, cardinality(p_job_ids)) as n
    where (nth(p_tokens, n), p_job_ids[n]) not in (
      select l.token, unnest(l.job_ids)
      from leases l
      where l.token = any (p_tokens)
    );
  end if;

  -- 3. Decide the new state of each job. Usually all of them completed, and the arrays are used as they are.
  if v_lost is null and p_outcomes = '{completed}' then
    v_states := '{completed}';
    v_completed := p_job_ids;
    perform finish_jobs(
      'completed', p_org_ids, p_job_ids, p_series_ids, p_attempts, array[p_worker_id], '{}', p_ran_ms, p_results
    );
    perform record_events(p_org_ids, p_job_ids, '{completed}', p_attempts);
    v_new_states := '{}';
  else
    select array_agg(d.state order by n), array_agg(d.delay_ms order by n)
    into v_states, v_delays_ms
    from generate_series(1, cardinality(p_job_ids)) as n
    cross join lateral (
      select
        nth(p_outcomes, n) as outcome, nth(p_attempts, n) as attempt, (n = any (v_lost)) is true as lost,
        p_delays_ms[n] as delay_ms
    ) as o
    left join lateral (
      select retry_delay_ms(o.attempt, j.initial_delay_seconds, j.backoff_multiplier, o.delay_ms) as delay_ms
      from jobs j
      where j.org_id = nth(p_org_ids, n)
        and j.id = p_job_ids[n]
        and o.outcome = 'failed'
        and not p_permanent[n]
        and o.attempt < j.max_attempts
      offset 0
    ) as retry on true
    cross join lateral (
      select
        case
          when o.lost then null
          when o.outcome = 'completed' then 'completed'
          when o.outcome = 'snoozed' then 'pending'
          when retry.delay_ms is not null then 'retrying'
          else 'failed'
        end::job_state as state,
        coalesce(retry.delay_ms, o.delay_ms) as delay_ms
    ) as d;
    v_new_states := array(select distinct state from unnest(v_states) as state where state is not null);
  end if;

  -- 4. Otherwise move the jobs, one new state at a time.
  foreach v_state in array v_new_states loop
    select
      array_agg(n), array_agg(p_job_ids[n]), array_agg(nth(p_org_ids, n)), array_agg(nth(p_series_ids, n)),
      array_agg(nth(p_attempts, n)), array_agg(p_ran_ms[n]), array_agg(p_results[n]), array_agg(p_errors[n])
    into v_numbers, v_job_ids, v_org_ids, v_series_ids, v_attempts, v_ran_ms, v_results, v_errors
    from generate_series(1, cardinality(p_job_ids)) as n
    where v_states[n] = v_state;

    if v_state in ('completed', 'failed') then
      perform finish_jobs(
        v_state, v_org_ids, v_job_ids, v_series_ids, v_attempts, array[p_worker_id], '{}', v_ran_ms, v_results, v_errors
      );
    else
      -- A snoozed attempt is not counted.
      insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      select
        v_org_ids[n], v_job_ids[n], v_attempts[n], case v_state when 'pending' then 'snoozed' else 'failed' end,
        v_errors[n], p_worker_id, now() - v_ran_ms[n] * interval '1 millisecond'
      from generate_series(1, cardinality(v_job_ids)) as n;
      if v_state = 'pending' then
        v_attempts := array(select a - 1 from unnest(v_attempts) as a);
      end if;
      insert into waiting_jobs (job_id, org_id, state, attempts, wake_at, error)
      select
        v_job_ids[n], v_org_ids[n], v_state, v_attempts[n],
        now() + v_delays_ms[v_numbers[n]] * interval '1 millisecond', v_errors[n]
      from generate_series(1, cardinality(v_job_ids)) as n;
    end if;
    perform record_events(
      v_org_ids, v_job_ids, array[v_state], v_attempts,
      case v_state when 'completed' then '{}' when 'pending' then '{snoozed}' else codes_of(v_errors) end
    );

    if v_state = 'completed' then
      v_completed := v_job_ids;
    else
      v_left := v_left || v_job_ids;
    end if;
    if v_state = 'failed' then
      v_failed := v_job_ids;
    end if;
  end loop;

  -- 5. Executions, for the learner: attempts that ran to their end, so not the snoozed ones.
  if v_states = '{completed}' and p_series_ids[1] = all (p_series_ids) then
    -- One group, so the arrays are stored as given. Grouping would take 0.7 µs per job.
    insert into executions (org_id, series_id, outcome, job_ids, ran_ms)
    values (p_org_ids[1], p_series_ids[1], 'completed', p_job_ids, p_ran_ms);
  else
    insert into executions (org_id, series_id, outcome, job_ids, ran_ms)
    select
      nth(p_org_ids, n), nth(p_series_ids, n),
      case
        when nth(v_states, n) = 'completed' then 'completed'
        when p_errors[n] ->> 'code' = 'timeout' then 'timed_out'
        else 'failed'
      end,
      array_agg(p_job_ids[n]), array_agg(p_ran_ms[n])
    from generate_series(1, cardinality(p_job_ids)) as n
    where nth(v_states, n) <> 'pending'
    group by 1, 2, 3;
  end if;

  -- 6. Leases: close those that are done, if nothing was lost, and renew the others, because this worker is alive. A
  -- completed job stays in the arrays until its lease is closed, because that state is final. Every other job, which
  -- may come back, is removed at once.
  if cardinality(v_left) > 0 then
    perform drop_from_leases(p_tokens, v_left);
  end if;
  if v_lost is null then
    delete from leases where token = any (p_closed);
  end if;
  if v_lost is not null or p_tokens <> p_closed then
    update leases
    set expires_at = now() + p_lease_seconds * interval '1 second'
    where token = any (p_tokens);
  end if;

  -- 7. Dependents. The leases are locked, so no dependent can be added that has not seen these outcomes.
  v_became_ready := release_dependents(v_completed, v_failed);

  -- 8. The claim.
  if p_claim.max_jobs > 0 then
    v_claim := claim_jobs(p_worker_id, p_lease_seconds, p_claim);
  end if;

  -- 9. Learn. Last, because every worker that ends jobs of a series waits for its row until this transaction commits.
  -- If any job was lost, nothing is learned from the group.
  if cardinality(p_sample_series) > 0 and v_lost is null then
    perform learn_from_runs(
      p_sample_series, p_sample_runs, p_sample_logs, p_sample_spreads, p_timeout_series, p_timeout_logs
    );
  end if;
  return json_build_object(
    'states', nullif(v_states, '{completed}'),
    'became_ready', v_became_ready,
    'claim', v_claim
  );
end
$$;

create or replace function retry_delay_ms(
  p_attempt integer,
  p_initial_delay_seconds double precision,
  p_backoff_multiplier double precision,
  p_retry_after_ms double precision
) returns double precision
language sql volatile parallel safe
-- Exponential backoff with full jitter, at most an hour, so that jobs that failed together do not retry together. It
-- is added to the delay that the handler asks for (Retry-After, at most a day), because a throttling server gives all
-- callers the same one. Computed in logarithms, because Postgres raises an error if a power overflows.
return round(
  least(greatest(coalesce(nullif(p_retry_after_ms, 'NaN'), 0), 0), 86400000)
  + random() * case
    when p_initial_delay_seconds > 0 then
      1000 * exp(
        least(ln(p_initial_delay_seconds) + (p_attempt - 1) * ln(p_backoff_multiplier), ln(3600::double precision))
      )
    else 0
  end
);

create or replace function codes_of(p_errors jsonb[]) returns text[]
language sql immutable parallel safe
return array(select e.error ->> 'code' from unnest(p_errors) with ordinality as e (error, n) order by e.n);

grant execute on function exchange to smartqueue_workers;
