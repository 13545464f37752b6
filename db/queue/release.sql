-- Give jobs back.
--
-- A worker returns jobs that it did not finish, or did not even start: the queue is paused, the worker shuts down, or
-- another worker is idle. They are ready again, at the end of their lane, and the attempt does not count. A suspect
-- remains a suspect. Jobs that the lease no longer holds are left out, so giving a job back twice is safe.
--
-- Locks: the lease rows, by token. While a lease is locked, none of its jobs can end.
--
-- Index: the primary key of leases.
--
-- Measured: 7 ms for 125 jobs of one lease.

create or replace function release_jobs(p_job_ids uuid[], p_tokens bigint[], p_reason text)
returns table (job_id uuid, type text)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_org_ids uuid[];
  v_job_ids uuid[];
  v_attempts integer[];
  v_worker_ids text[];
  v_claimed_ats timestamptz[];
  v_alone boolean[];
begin
  perform from leases l where l.token = any (p_tokens) order by l.token for update;

  select
    array_agg(h.org_id), array_agg(h.job_id), array_agg(h.attempt), array_agg(h.worker_id), array_agg(h.started_at),
    array_agg(h.alone)
  into v_org_ids, v_job_ids, v_attempts, v_worker_ids, v_claimed_ats, v_alone
  from held_jobs h
  where h.token = any (p_tokens)
    and (h.token, h.job_id) in (select g.token, g.id from unnest(p_tokens, p_job_ids) as g (token, id));
  if v_job_ids is null then return; end if;

  perform drop_from_leases(p_tokens, v_job_ids);
  insert into attempts (org_id, job_id, attempt, outcome, worker_id, started_at)
  select v_org_ids[n], v_job_ids[n], v_attempts[n], 'given_back', v_worker_ids[n], v_claimed_ats[n]
  from generate_series(1, cardinality(v_job_ids)) as n;

  v_attempts := array(select v_attempts[n] - 1 from generate_series(1, cardinality(v_job_ids)) as n order by n);
  perform record_events(v_org_ids, v_job_ids, '{ready}', v_attempts, array[p_reason]);
  return query select r.job_id, r.type from requeue_jobs(v_org_ids, v_job_ids, v_attempts, v_alone) r;
end
$$;

grant execute on function release_jobs to smartqueue_workers;
