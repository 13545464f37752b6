-- The ids of an organisation's jobs that match a filter, newest first. Lists, counts and bulk actions share it.
--
-- Candidates come in order from an index: jobs by status, fingerprint, series or priority, or simply all jobs. The rest
-- of the filter is applied until the page is full or 10,000 candidates have been examined. A short page may have a
-- next_id, from which the search continues. So each call does a bounded amount of work, whatever the filter.
--
-- The function takes no locks. Only functions that have checked the organisation call it, as the owner: under row-level
-- security an index serves only leakproof conditions, and the = of an enum is not leakproof.
--
-- Indexes: the primary keys of jobs, ready_jobs and finished_jobs; waiting_jobs_pending, waiting_jobs_retrying,
-- blocked_jobs_by_org, finished_jobs_failed, finished_jobs_cancelled, finished_jobs_dead, jobs_by_series,
-- jobs_by_priority. The branches are ordered, so the plan merges them and reads only as far as it must; branches of
-- other sources are not read at all.
--
-- Measured for a page of 50 of 1,000,000 jobs, on a busy machine: all jobs, a series, a fingerprint, a rare priority or
-- a status 0.4 to 3 ms; a common type, tag, text or priority 2 to 6 ms; a filter that one job in a hundred matches
-- 15 ms; 10,000 candidates without a match 23 ms.

create or replace function search_jobs(
  -- Null searches all organisations, for an admin.
  p_org uuid,
  -- The JobFilter of find-jobs.ts.
  p_filter jsonb,
  -- Ids from p_from, inclusive, to p_below, exclusive.
  p_from uuid,
  p_below uuid,
  p_limit integer,
  -- The organisation of each id.
  out org_ids uuid[],
  out ids uuid[],
  -- Null on the last page.
  out next_id uuid
)
language plpgsql stable
-- The plan always reads the indexes in order, whatever the values and the statistics, and stops when the page is full.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_orgs constant uuid[] := case when p_org is null then array(select o.id from orgs o) else array[p_org] end;
  v_filter record;
  v_sources text[];
  v_text constant text := lower((p_filter ->> 'text') collate "und-x-icu");
  v_id constant uuid :=
    case when v_text ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then v_text::uuid end;
  -- Enough to fill a page if one job in a hundred matches.
  v_look constant integer :=
    greatest(p_limit + 1, case when p_filter - array['statuses', 'fingerprint'] <> '{}' then 10000 end);
begin
  select *
  into v_filter
  from jsonb_to_record(p_filter) as f (
    statuses job_state[], type text, name text, tag text, text text, priority text, created_by uuid,
    created_after timestamptz, created_before timestamptz, fingerprint text
  );
  v_sources := case
    when v_filter.fingerprint is not null then '{fingerprint}'
    when v_filter.statuses is not null then v_filter.statuses::text[]
    when v_filter.type is not null and v_filter.name is not null then '{series}'
    when v_filter.priority <> 'normal' then '{priority}'
    else '{jobs}'
  end;

  with candidate as materialized (
    select o.id as org_id, c.id
    from unnest(v_orgs) as o (id)
    cross join lateral (
      (
        select i.id
        from (
          (select org_id, job_id as id, 'pending' as source from waiting_jobs where state = 'pending' order by id desc)
          union all
          (select org_id, job_id, 'retrying' from waiting_jobs where state = 'retrying' order by job_id desc)
          union all
          (select org_id, job_id, 'blocked' from blocked_jobs order by job_id desc)
          union all
          (select org_id, job_id, 'ready' from ready_jobs order by job_id desc)
          union all
          (select org_id, job_id, 'completed' from finished_jobs where state = 'completed' order by job_id desc)
          union all
          (select org_id, job_id, 'failed' from finished_jobs where state = 'failed' order by job_id desc)
          union all
          (select org_id, job_id, 'cancelled' from finished_jobs where state = 'cancelled' order by job_id desc)
          union all
          (
            select org_id, job_id, 'fingerprint'
            from finished_jobs
            where state = 'failed'
              and fingerprint = v_filter.fingerprint
            order by job_id desc
          )
          union all
          (
            select o.id as org_id, id, 'series'
            from jobs
            where series_id = (
              select s.id from series s where s.org_id = o.id and s.type = v_filter.type and s.name = v_filter.name
            )
            order by id desc
          )
          union all
          (
            select org_id, id, 'priority'
            from jobs
            where priority = v_filter.priority
              and priority <> 'normal'
            order by id desc
          )
          union all
          (select org_id, id, 'jobs' from jobs order by id desc)
        ) i
        where i.source = any (v_sources)
          and i.org_id = o.id
          and i.id >= p_from
          and i.id < p_below
        order by i.id desc
        limit v_look
      )
      union all
      -- Leases are few and have no order.
      select h.job_id
      from held_jobs h
      where 'running' = any (v_sources)
        and h.org_id = o.id
        and h.job_id >= p_from
        and h.job_id < p_below
    ) c
    order by c.id desc
    limit v_look
  ),
  page as (
    select c.org_id, c.id
    from candidate c
    join jobs j on j.org_id = c.org_id and j.id = c.id
    where (v_filter.type is null or j.type = v_filter.type)
      and (v_filter.name is null or j.name = v_filter.name)
      and (v_filter.tag is null or v_filter.tag = any (j.tags))
      and (
        v_text is null or v_filter.text = any (j.tags) or j.id = v_id
        or strpos(lower(j.name collate "und-x-icu"), v_text) > 0
      )
      and (v_filter.priority is null or j.priority = v_filter.priority)
      and (v_filter.created_by is null or j.created_by = v_filter.created_by)
      and (v_filter.created_after is null or j.created_at >= v_filter.created_after)
      and (v_filter.created_before is null or j.created_at < v_filter.created_before)
    order by c.id desc
    limit p_limit + 1
  )
  select
    coalesce((array_agg(p.org_id))[:p_limit], '{}'), coalesce((array_agg(p.id))[:p_limit], '{}'),
    case
      when count(*) > p_limit then (array_agg(p.id))[p_limit]
      else (select c.id from candidate c order by c.id desc offset v_look - 1)
    end
  into org_ids, ids, next_id
  from (select page.org_id, page.id from page order by page.id desc) p;
end
$$;
