-- The ids of an organisation's jobs that match a filter, newest first. Lists, counts and bulk actions share it.
--
-- It first looks through the newest jobs that one index yields in order: those in the wanted states, of one series, of a
-- priority, or simply all. Common jobs fill the page that way. If 10,000 jobs did not, the filter matches few, and a
-- second pass fetches them by their tag or by their series. A page may be short and still have a next_id: the search
-- goes on below it. So each call does a bounded amount of work, whatever the filter.
--
-- The function takes no locks. It runs as the owner after checking the organisation: under row-level security an index
-- serves only conditions that cannot leak, and neither an array's @> nor an enum's = is one.
--
-- Measured for a page of 50 of 1,000,000 jobs, with cached plans, on a busy machine: all jobs, each status, a
-- fingerprint or a rare priority 0.1 to 1.9 ms (indexes by organisation or series and id); a common type, tag, text or
-- priority 3 to 8 ms; what one job in a hundred has 13 ms; 19 old jobs of a tag, type or name 16 to 30 ms, of a text 40
-- to 58 ms, also within a status; a creator without jobs 13 ms for each 10,000 jobs looked through. A tag of many old
-- jobs, none of them among the newest, takes 270 to 310 ms: its index has no order.

create or replace function find_jobs(
  -- Null searches all organisations, for an admin.
  p_org uuid,
  p_states job_state[],
  p_type text,
  p_name text,
  p_tag text,
  -- A part of the name in any case, a whole tag, or an id.
  p_text text,
  p_priority text,
  p_created_by uuid,
  p_created_after timestamptz,
  p_created_before timestamptz,
  p_fingerprint text,
  -- The first id, and the one that all must be below.
  p_from uuid,
  p_below uuid,
  p_limit integer,
  -- One organisation speaks for all ids.
  out org_ids uuid[],
  out ids uuid[],
  -- Null if there are no more.
  out next_id uuid
)
language plpgsql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- A plan for any values follows an index here. Planned for its values, a common tag would be looked for by reading all jobs.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- Enough to fill a page with jobs that are one in a hundred.
  c_window constant integer := 10000;
  -- Candidates of the second pass.
  c_rare constant integer := 1000;
  v_is_filtered constant boolean := num_nonnulls(
    p_type, p_name, p_tag, p_text, p_priority, p_created_by, p_created_after, p_created_before
  ) > 0;
  v_text constant text := lower(p_text collate "und-x-icu");
  v_id constant uuid := case when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid end;
  v_below uuid := p_below;
  v_series bigint;
  v_look integer;
  v_candidates uuid[];
begin
  perform require_org(p_org);
  if p_org is null then
    -- A search in each organisation, then the newest of what they found, down to where the first search stopped.
    with found as materialized (
      select o.id as org_id, f.ids, f.next_id
      from orgs o
      cross join lateral find_jobs(
        o.id, p_states, p_type, p_name, p_tag, p_text, p_priority, p_created_by, p_created_after, p_created_before,
        p_fingerprint, p_from, p_below, p_limit
      ) f
    ),
    stopped as materialized (
      select found.next_id as id
      from found
      where found.next_id is not null
      order by found.next_id desc
      limit 1
    ),
    page as (
      select found.org_id, id
      from found
      cross join lateral unnest(found.ids) as id
      where id >= coalesce((select stopped.id from stopped), id)
      order by id desc
      limit p_limit + 1
    )
    select
      coalesce(array_agg(page.org_id order by page.id desc), '{}'),
      coalesce(array_agg(page.id order by page.id desc), '{}'),
      (select stopped.id from stopped)
    into org_ids, ids, next_id
    from page;
    if cardinality(ids) > p_limit then next_id := ids[p_limit]; end if;
    org_ids := org_ids[:p_limit];
    ids := ids[:p_limit];
    return;
  end if;

  org_ids := array[p_org];
  ids := '{}';
  for v_pass in 1..2 loop
    v_look := greatest(p_limit + 1, case when v_pass = 2 then c_rare when v_is_filtered then c_window end);

    if v_pass = 1 and p_states is not null then
      -- The table that holds a job says its state. Tables of other states are not read.
      v_candidates := array(
        select job_id
        from (
          (
            select job_id
            from waiting_jobs
            where 'pending' = any (p_states)
              and org_id = p_org
              and state = 'pending'
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from waiting_jobs
            where 'retrying' = any (p_states)
              and org_id = p_org
              and state = 'retrying'
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from blocked_jobs
            where 'blocked' = any (p_states)
              and org_id = p_org
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from ready_jobs
            where 'ready' = any (p_states)
              and org_id = p_org
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from held_jobs
            where 'running' = any (p_states)
              and org_id = p_org
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from finished_jobs
            where 'completed' = any (p_states)
              and org_id = p_org
              and state = 'completed'
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from finished_jobs
            where 'failed' = any (p_states)
              and p_fingerprint is null
              and org_id = p_org
              and state = 'failed'
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from finished_jobs
            where 'failed' = any (p_states)
              and org_id = p_org
              and state = 'failed'
              and fingerprint = p_fingerprint
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
          union all
          (
            select job_id
            from finished_jobs
            where 'cancelled' = any (p_states)
              and org_id = p_org
              and state = 'cancelled'
              and job_id >= p_from
              and job_id < p_below
            order by job_id desc
            limit v_look
          )
        ) as in_state
        order by job_id desc
        limit v_look
      );

    elsif v_pass = 1 and p_type is not null and p_name is not null then
      select id into v_series from series where org_id = p_org and type = p_type and name = p_name;
      v_candidates := array(
        select id
        from jobs
        where series_id = v_series
          and id >= p_from
          and id < p_below
        order by id desc
        limit v_look
      );

    elsif v_pass = 1 and p_priority <> 'normal' then
      v_candidates := array(
        select id
        from jobs
        where org_id = p_org
          and priority = p_priority
          and priority <> 'normal'
          and id >= p_from
          and id < p_below
        order by id desc
        limit v_look
      );

    elsif v_pass = 1 then
      v_candidates := array(
        select id
        from jobs
        where org_id = p_org
          and id >= p_from
          and id < p_below
        order by id desc
        limit v_look
      );

    elsif p_tag is not null then
      v_candidates := array(select id from tagged_jobs(p_org, p_tag, p_from, v_below) id limit v_look);

    elsif v_text is not null then
      v_candidates := array(
        select id
        from (
          select id from jobs_in_series(p_org, p_type, p_name, v_text, p_from, v_below, v_look) id
          union
          select id from tagged_jobs(p_org, p_text, p_from, v_below) id
          union
          select id from jobs where org_id = p_org and id = v_id and id >= p_from and id < v_below
        ) as hit
        order by id desc
        limit v_look
      );

    else
      v_candidates := array(
        select id from jobs_in_series(p_org, p_type, p_name, null, p_from, v_below, v_look) id
      );
    end if;

    ids := ids || array(
      select j.id
      from jobs j
      where j.org_id = p_org
        and j.id = any (v_candidates)
        and (p_type is null or j.type = p_type)
        and (p_name is null or j.name = p_name)
        and (p_tag is null or p_tag = any (j.tags))
        and (
          v_text is null or p_text = any (j.tags) or j.id = v_id
          or strpos(lower(j.name collate "und-x-icu"), v_text) > 0
        )
        and (p_priority is null or j.priority = p_priority)
        and (p_created_by is null or j.created_by = p_created_by)
        and (p_created_after is null or j.created_at >= p_created_after)
        and (p_created_before is null or j.created_at < p_created_before)
        -- The first pass has found them by their state.
        and (
          v_pass = 1 or p_states is null
          or exists (
            select
            from job_overview o
            where o.org_id = p_org
              and o.id = j.id
              and o.status = any (p_states)
          )
        )
        and (
          v_pass = 1 or p_fingerprint is null
          or exists (
            select
            from finished_jobs f
            where f.org_id = p_org
              and f.job_id = j.id
              and f.fingerprint = p_fingerprint
          )
        )
      order by j.id desc
      limit p_limit + 1 - cardinality(ids)
    );

    v_below := v_candidates[v_look];
    exit when v_below is null
      or cardinality(ids) > p_limit
      or coalesce(p_tag, p_type, p_name, p_text) is null;
  end loop;

  next_id := case when cardinality(ids) > p_limit then ids[p_limit] else v_below end;
  ids := ids[:p_limit];
end
$$;

create or replace function tagged_jobs(p_org uuid, p_tag text, p_from uuid, p_below uuid) returns setof uuid
language sql stable
begin atomic
  -- All of them, before any are sorted out: with a limit, the planner would read the newest jobs instead of the index.
  with tagged as materialized (
    select id
    from jobs
    where org_id = p_org
      and tags @> array[p_tag]
      and tags <> '{}'
  )
  select id
  from tagged
  where id >= p_from
    and id < p_below
  order by id desc;
end;

create or replace function jobs_in_series(
  p_org uuid,
  p_type text,
  p_name text,
  -- A part of the name, in lower case.
  p_text text,
  p_from uuid,
  p_below uuid,
  p_limit integer
) returns setof uuid
language sql stable
begin atomic
  -- The newest jobs come from the series with the newest jobs, so series with nothing to give cost one look at an index.
  with newest as materialized (
    select s.id
    from series s
    cross join lateral (
      select j.id
      from jobs j
      where j.series_id = s.id
        and j.id >= p_from
        and j.id < p_below
      order by j.id desc
      limit 1
    ) j
    where s.org_id = p_org
      and (p_type is null or s.type = p_type)
      and (p_name is null or s.name = p_name)
      and (p_text is null or strpos(lower(s.name collate "und-x-icu"), p_text) > 0)
    order by j.id desc
    limit p_limit
  )
  select j.id
  from newest s
  cross join lateral (
    select j.id
    from jobs j
    where j.series_id = s.id
      and j.id >= p_from
      and j.id < p_below
    order by j.id desc
    limit p_limit
  ) j
  order by j.id desc
  limit p_limit;
end;

create or replace function summarize_jobs(p_org_ids uuid[], p_ids uuid[]) returns setof job_summaries
language plpgsql stable
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- With the caller's rights. One organisation speaks for all ids.
begin
  return query
  select s.*
  from unnest(p_ids) with ordinality as found (id, n)
  cross join lateral (
    select *
    from job_summaries
    where org_id = p_org_ids[least(found.n, cardinality(p_org_ids))]
      and id = found.id
    offset 0
  ) s;
end
$$;

grant execute on function find_jobs, summarize_jobs to smartqueue_functions;
