-- The exchange of a worker with the queue: outcomes go in, the next jobs come out, in one call and one transaction.
--
-- The outcomes are recorded by exchange itself, fenced by the lease, with events, executions and dependents. Then
-- claim_jobs (claim.sql) leases the next jobs of the order (choose.sql) under one new token, and learn_from_runs
-- (learn.sql) moves the running estimates of the series.
--
-- Guarantees. An outcome is recorded only while its lease still names the job; otherwise its state in the answer is
-- null. A claimed job counts as running: it is in exactly one lease, and its running event is written by the claim.
-- What becomes of a failed attempt is decided here, from the policy of its job. An exchange waits for the disk. A
-- worker without outcomes calls claim_jobs alone and does not wait: a claim that a crash undoes is simply ready again.
--
-- Locks, in this order: the leases named, by token; blocked_jobs of dependents, by id; rows of ready_jobs, which are
-- skipped if someone else has them, so that nobody waits; series, by id, last and for as short as possible. Where an
-- organisation has a limit of running jobs, an advisory lock that is tried and never waited for.
--
-- Indexes: leases by token; ready_jobs_start_by, ready_jobs_order from the floors that the worker remembers, or
-- ready_jobs_age; ready_jobs_big, quotas_running and reservations_by_worker to see whether the careful way is needed;
-- jobs and series by key.
--
-- Plans are pinned by the settings below, because statistics of queue tables are wrong whenever they matter.
--
-- Measured on one connection of a busy machine, call by call in turn with the statements composed before (commit
-- a14bf06), Postgres 18, median server CPU against before: 1.02 times with 300 jobs a call (12.5 µs a job), 1.01 to
-- 1.05 with 10 (120 µs), 1.2 to 1.3 for the claim of a lone job (330 to 440 µs), for which there was a statement of its
-- own.

create or replace function exchange(
  p_worker_id text,
  p_lease_seconds integer,
  -- Attempts that ended: values for each job, or one for all.
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
  -- What completed runs teach their series, and how long timed-out ones ran at least.
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
  -- The state that each outcome has put its job in, null if the lease was lost. One value speaks for all jobs.
  v_states job_state[];
  -- Every lease is still there with all of its jobs.
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
  -- 1. Lock the leases, in the order of their tokens, so that nobody takes a job out of one meanwhile.
  select bool_and(l.is_whole) and count(*) = (select count(distinct token) from unnest(p_tokens) as token)
  into v_whole
  from (
    select cardinality(job_ids) = claimed_jobs as is_whole
    from leases
    where token = any (p_tokens)
    order by token
    for update
  ) as l;

  -- 2. Fence: an outcome counts only if the lease that it names still names the job. If all jobs completed and none
  -- was ever taken out of these leases, none can be missing, and looking for each of them would take 0.6 µs a job.
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

  -- 3. Decide what becomes of each job. Usually all of them completed, and are moved as they are.
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

  -- 4. Move the others, those of one new state after the other.
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
      -- A snoozed attempt does not count.
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

  -- 5. What the learner reads: attempts that ran to their end. A snoozed one did not.
  if v_states = '{completed}' and p_series_ids[1] = all (p_series_ids) then
    -- One group: the arrays as they were given. Grouping them takes 0.7 µs a job.
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
  -- completed job stays named until the lease is closed, because nothing can follow on it; one that may come back
  -- leaves at once.
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

  -- 7. Dependents. With the leases locked, none can have been added that does not know of these ends.
  v_became_ready := release_dependents(v_completed, v_failed);

  -- 8. The claim.
  if p_claim.max_jobs > 0 then
    v_claim := claim_jobs(p_worker_id, p_lease_seconds, p_claim);
  end if;

  -- 9. What was learned. Last, because all workers that end jobs of a series wait for its row until this transaction
  -- has committed. A group of which a part was lost teaches nothing.
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
-- Exponential backoff with full jitter, at most an hour: jobs that failed together do not come back together. It is
-- added to what the handler asks for (Retry-After), which is believed up to a day, because a server that turns many
-- away tells all of them the same. In logarithms, because Postgres refuses a power that overflows.
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
