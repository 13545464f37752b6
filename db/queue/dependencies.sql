-- Lock the parents of new and retried jobs.
--
-- Returns where each parent stands and keeps it from finishing until the caller commits. So the transition that
-- finishes a parent either sees the new dependent, or the caller sees that the parent has finished. The state is null
-- for a job that does not exist in the organisation.
--
-- Locks: table by table in the order in which all transitions lock them (finished, ready and waiting jobs, leases,
-- blocked jobs), and in each table by id or token. Key share: parents of several dependents are locked by all of them
-- at once.
--
-- Each look is a statement with a fresh snapshot. A job that moves from one table to another between two looks is found
-- by the next round.

create or replace function lock_parents(p_org uuid, p_job_ids uuid[]) returns table (job_id uuid, state text)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
declare
  v_sought uuid[] := array(select distinct w from unnest(p_job_ids) as w);
  v_found uuid[];
  v_tokens bigint[];
  v_wanted uuid;
begin
  while cardinality(v_sought) > 0 loop
    v_found := '{}';
    for v_wanted in select w from unnest(v_sought) as w order by w loop
      job_id := v_wanted;
      state := null;
      select f.state::text into state from finished_jobs f where f.org_id = p_org and f.job_id = v_wanted;
      if state <> 'completed' then
        -- A failed or cancelled job may be retried, and then complete, before the caller commits.
        perform from finished_jobs f where f.org_id = p_org and f.job_id = v_wanted for key share;
        if not found then state := null; end if;
      end if;
      if state is null then
        perform from ready_jobs r where r.org_id = p_org and r.job_id = v_wanted for key share;
        if found then state := 'ready'; end if;
      end if;
      if state is null then
        perform from waiting_jobs w where w.org_id = p_org and w.job_id = v_wanted for key share;
        if found then state := 'waiting'; end if;
      end if;
      if state is not null then
        v_found := v_found || v_wanted;
        return next;
      end if;
    end loop;
    v_sought := array(select unnest(v_sought) except select unnest(v_found));
    exit when cardinality(v_sought) = 0;

    v_tokens := array(select l.token from leases l where l.job_ids && v_sought order by l.token for key share);
    -- A lease outlives those of its jobs that ended first. With the lease locked, none can end any more.
    for job_id, state in
      select j.id, 'running'
      from jobs j
      where j.org_id = p_org
        and j.id = any (v_sought)
        and exists (select from leases l where l.token = any (v_tokens) and j.id = any (l.job_ids))
        and not exists (select from finished_jobs f where f.org_id = p_org and f.job_id = j.id)
        and not exists (select from ready_jobs r where r.org_id = p_org and r.job_id = j.id)
        and not exists (select from waiting_jobs w where w.job_id = j.id)
    loop
      v_found := v_found || job_id;
      return next;
    end loop;

    for job_id, state in
      select b.job_id, 'blocked'
      from blocked_jobs b
      where b.org_id = p_org
        and b.job_id = any (v_sought)
      order by b.job_id
      for key share
    loop
      v_found := v_found || job_id;
      return next;
    end loop;

    for job_id, state in
      select w, null::text
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
