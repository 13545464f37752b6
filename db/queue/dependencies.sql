-- Lock the parents of new and retried jobs.
--
-- Returns the state of each parent and keeps it from finishing until the caller commits. So either the transition that
-- finishes a parent sees the new dependent, or the caller sees that the parent has finished. The state is null for a
-- job that does not exist in the organisation.
--
-- Locks: finished, ready and waiting jobs, leases, then blocked jobs, each by id or token, in the order of cancel_jobs.
-- The locks are key share, so that several callers can lock the same parent at once. Completed jobs are not locked,
-- because that state is final; a failed or cancelled job may be retried.
--
-- A job that moves from one table to another between two statements is found in the next round.

create or replace function lock_parents(p_org uuid, p_job_ids uuid[]) returns table (job_id uuid, state text)
language plpgsql
as $$
declare
  v_sought uuid[] := array(select distinct unnest(p_job_ids));
  v_tokens bigint[];
  v_finished uuid[] := '{}';
  v_unfinished uuid[] := '{}';
  v_unknown uuid[] := '{}';
begin
  while v_sought <> '{}' loop
    v_finished := v_finished || array(
      select f.job_id
      from finished_jobs f
      where f.org_id = p_org
        and f.job_id = any (v_sought)
        and f.state = 'completed'
    ) || array(
      select f.job_id
      from finished_jobs f
      where f.org_id = p_org
        and f.job_id = any (v_sought)
        and f.state <> 'completed'
      order by f.job_id
      for key share
    );
    v_unfinished := v_unfinished || array(
      select r.job_id from ready_jobs r where r.org_id = p_org and r.job_id = any (v_sought) order by 1 for key share
    ) || array(
      select w.job_id from waiting_jobs w where w.org_id = p_org and w.job_id = any (v_sought) order by 1 for key share
    );
    v_sought := array(select unnest(v_sought) except select unnest(v_finished || v_unfinished));
    exit when v_sought = '{}';

    v_tokens := array(select l.token from leases l where l.job_ids && v_sought order by l.token for key share);
    v_unfinished := v_unfinished || array(
      -- While the lease is locked, none of its jobs can end.
      select h.job_id
      from held_jobs h
      where h.token = any (v_tokens)
        and h.org_id = p_org
        and h.job_id = any (v_sought)
    ) || array(
      select b.job_id from blocked_jobs b where b.org_id = p_org and b.job_id = any (v_sought) order by 1 for key share
    );
    v_unknown := v_unknown || array(
      select w from unnest(v_sought) as w where not exists (select from jobs j where j.org_id = p_org and j.id = w)
    );
    v_sought := array(select unnest(v_sought) except select unnest(v_unfinished || v_unknown));
  end loop;

  return query
  select f.job_id, f.state::text from finished_jobs f where f.org_id = p_org and f.job_id = any (v_finished)
  union all
  select unnest(v_unfinished), 'unfinished'
  union all
  select unnest(v_unknown), null;
end
$$;
