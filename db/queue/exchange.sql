-- The exchange of a worker with the queue: outcomes go in, the next jobs come out, in one call and one transaction.
--
--   record_outcomes   record.sql   what ended, fenced by the lease; events, executions, dependents
--   claim_jobs        claim.sql    the next jobs of the order (choose.sql), leased under one new token
--   learn_from_runs   learn.sql    the running estimates of the series
--
-- Guarantees. An outcome is recorded only while its lease still names the job; otherwise its state in the answer is
-- null. A claimed job counts as running: it is in exactly one lease, and its running event is written by the claim.
-- What becomes of a failed attempt is decided here, from the policy of its job. An exchange waits for the disk. A worker
-- without outcomes calls claim_jobs alone and does not wait: a claim that a crash undoes is simply ready again.
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
-- a14bf06), Postgres 18, median server CPU against before: 1.02 times with 300 jobs a call (12.5 µs a job), 1.01 to 1.05
-- with 10 (120 µs), 1.2 to 1.3 for the claim of a lone job (330 to 440 µs), for which there was a statement of its own.

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
  -- The claim.
  p_limit integer,
  p_types text[],
  p_order text,
  p_floor_lanes smallint[],
  p_floor_keys bigint[],
  p_age_floor bigint,
  p_free_cpu_units double precision,
  p_free_memory_mb double precision,
  p_ahead integer
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
  v_recorded constant record := record_outcomes(
    p_worker_id, p_lease_seconds, p_tokens, p_job_ids, p_org_ids, p_series_ids, p_attempts, p_ran_ms, p_outcomes,
    p_results, p_errors, p_permanent, p_delays_ms, p_closed
  );
  v_claim json;
begin
  if p_limit > 0 then
    v_claim := claim_jobs(
      p_worker_id, p_lease_seconds, p_limit, p_types, p_order, p_floor_lanes, p_floor_keys, p_age_floor,
      p_free_cpu_units, p_free_memory_mb, p_ahead
    );
  end if;

  -- Last, because all workers that end jobs of a series wait for its row until this transaction has committed. A
  -- group of which a part was lost teaches nothing.
  if cardinality(p_sample_series) > 0 and array_position(v_recorded.states, null) is null then
    perform learn_from_runs(
      p_sample_series, p_sample_runs, p_sample_logs, p_sample_spreads, p_timeout_series, p_timeout_logs
    );
  end if;
  return json_build_object(
    'states', nullif(v_recorded.states, '{completed}'),
    'became_ready', v_recorded.became_ready,
    'claim', v_claim
  );
end
$$;

grant execute on function exchange to smartqueue_workers;
