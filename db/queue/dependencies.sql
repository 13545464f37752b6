-- Lock the parents of new and retried jobs.
--
-- Returns where each parent stands and keeps it from finishing until the caller commits. So the transition that
-- finishes a parent either sees the new dependent, or the caller sees that the parent has finished. The state is null
-- for a job that does not exist in the organisation.
--
-- Locks: finished, ready and waiting jobs, leases, blocked jobs, in the order in which all transitions lock them, and
-- in each table by id or token. Key share: parents of several dependents are locked by all of them at once. Completed
-- jobs are not locked, because nothing follows on them; a failed or cancelled one may be retried.
--
-- A job that moves from one table to another between two looks is found by the next round.

create or replace function lock_parents(p_org uuid, p_job_ids uuid[]) returns table (job_id uuid, state text)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
declare
  v_sought uuid[] := array(select distinct w from unnest(p_job_ids) as w);
  v_found uuid[];
  v_tokens bigint[];
begin
  while v_sought <> '{}' loop
    v_found := '{}';
    for job_id, state in
      select f.job_id, 'completed'
      from finished_jobs f
      where f.org_id = p_org
        and f.job_id = any (v_sought)
        and f.state = 'completed'
      union all
      select f.*
      from (
        select o.job_id, o.state::text
        from finished_jobs o
        where o.org_id = p_org
          and o.job_id = any (v_sought)
          and o.state <> 'completed'
        order by o.job_id
        for key share
      ) f
      union all
      select r.job_id, 'ready'
      from (
        select o.job_id
        from ready_jobs o
        where o.org_id = p_org
          and o.job_id = any (v_sought)
        order by o.job_id
        for key share
      ) r
      union all
      select w.job_id, 'waiting'
      from (
        select o.job_id
        from waiting_jobs o
        where o.org_id = p_org
          and o.job_id = any (v_sought)
        order by o.job_id
        for key share
      ) w
    loop
      v_found := v_found || job_id;
      return next;
    end loop;
    v_sought := array(select unnest(v_sought) except select unnest(v_found));
    exit when v_sought = '{}';

    v_tokens := array(select l.token from leases l where l.job_ids && v_sought order by l.token for key share);
    for job_id, state in
      -- With the lease locked, none of its jobs can end any more.
      select h.job_id, 'running'
      from held_jobs h
      where h.token = any (v_tokens)
        and h.org_id = p_org
        and h.job_id = any (v_sought)
      union all
      select b.job_id, 'blocked'
      from (
        select o.job_id
        from blocked_jobs o
        where o.org_id = p_org
          and o.job_id = any (v_sought)
        order by o.job_id
        for key share
      ) b
      union all
      select w, null
      from unnest(v_sought) as w
      where not exists (select from jobs j where j.org_id = p_org and j.id = w)
    loop
      v_found := v_found || job_id;
      return next;
    end loop;
    v_sought := array(select unnest(v_sought) except select unnest(v_found));
  end loop;
end
$$;
