-- Submissions with dependencies lock their parents table by table, as everyone does: parent by parent they could meet a
-- worker that locks the same rows the other way round, and one of the two had to be undone and sent again.
create or replace function lock_parents(in_org uuid, in_jobs uuid[]) returns table (job_id uuid, state text)
language plpgsql
as $$
-- Says where each job stands and keeps it from finishing until the caller commits, so that a new dependent is either
-- seen by the statement that finishes its parent or sees that the parent has finished. Each look is a statement with a
-- snapshot of its own: a job that moves from one table to another between two looks is found by the next round.
-- Rows are locked table by table in the order in which others lock them (ready and waiting, leases, blocked), and in each
-- by id or token.
declare
  sought uuid[] := array(select distinct w from unnest(in_jobs) w);
  found_jobs uuid[];
  locked bigint[];
  wanted uuid;
begin
  while cardinality(sought) > 0 loop
    found_jobs := '{}';
    for wanted in select w from unnest(sought) w order by w loop
      job_id := wanted;
      state := null;
      select f.state::text into state from finished_jobs f where f.org_id = in_org and f.job_id = wanted;
      if state <> 'completed' then
        -- A failed or cancelled job may be retried, and then complete, before the caller commits.
        perform from finished_jobs f where f.org_id = in_org and f.job_id = wanted for key share;
        if not found then state := null; end if;
      end if;
      if state is null then
        perform from ready_jobs r where r.job_id = wanted and r.org_id = in_org for key share;
        if found then state := 'ready'; end if;
      end if;
      if state is null then
        perform from waiting_jobs w where w.job_id = wanted and w.org_id = in_org for key share;
        if found then state := 'waiting'; end if;
      end if;
      if state is not null then
        found_jobs := found_jobs || wanted;
        return next;
      end if;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
    exit when cardinality(sought) = 0;

    locked := array(select l.token from leases l where l.job_ids && sought order by l.token for key share);
    -- A lease outlives those of its jobs that ended first. With the lease locked none can end any more.
    for job_id, state in
      select j.id, 'running'
      from jobs j
      where j.org_id = in_org
        and j.id = any (sought)
        and exists (select from leases l where l.token = any (locked) and j.id = any (l.job_ids))
        and not exists (select from finished_jobs f where f.org_id = in_org and f.job_id = j.id)
        and not exists (select from ready_jobs r where r.org_id = in_org and r.job_id = j.id)
        and not exists (select from waiting_jobs w where w.job_id = j.id)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select b.job_id, 'blocked'
      from blocked_jobs b
      where b.org_id = in_org
        and b.job_id = any (sought)
      order by b.job_id
      for key share
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;

    for job_id, state in
      select w, null::text
      from unnest(sought) w
      where not exists (select from jobs j where j.org_id = in_org and j.id = w)
    loop
      found_jobs := found_jobs || job_id;
      return next;
    end loop;
    sought := array(select unnest(sought) except select unnest(found_jobs));
  end loop;
end
$$;
