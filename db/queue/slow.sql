-- Report slow jobs.
--
-- Writes an event for running attempts that have taken longer than their p99. Returns the jobs that these leases still
-- hold.
--
-- Locks: the lease rows, by token, so that the jobs cannot end in between.
--
-- Index: the primary key of leases.

create or replace function report_slow_jobs(p_job_ids uuid[], p_tokens bigint[]) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_org_ids uuid[];
  v_job_ids uuid[];
  v_attempts integer[];
begin
  perform from leases l where l.token = any (p_tokens) order by l.token for update;

  select array_agg(h.org_id), array_agg(h.job_id), array_agg(h.attempt)
  into v_org_ids, v_job_ids, v_attempts
  from held_jobs h
  where h.token = any (p_tokens)
    and (h.token, h.job_id) in (select g.token, g.id from unnest(p_tokens, p_job_ids) as g (token, id));
  if v_job_ids is null then return; end if;
  perform record_events(v_org_ids, v_job_ids, '{running}', v_attempts, '{slow}');
  return query select unnest(v_job_ids);
end
$$;

grant execute on function report_slow_jobs to smartqueue_workers;
