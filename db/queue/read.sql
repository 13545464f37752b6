-- Read jobs with the inputs of their ETAs, and pages of jobs. The functions run as their owner and check the caller once,
-- instead of once per table, and their plans stay cached in the session.

create or replace function read_jobs(
  p_org uuid,
  p_jobs uuid[],
  -- Jobs ahead of each are counted up to this many. Beyond that, the caller estimates from the sums in org_queues.
  p_most integer,
  -- Whether to return the workers and the queue; false if the caller has them cached.
  p_with_queue boolean,
  p_entry jsonb
) returns table (
  -- A row of job_details. As JSON, because each column that is sent costs something on the way.
  job json,
  -- Where it stands: a JobPlace of job-facts.ts.
  place jsonb,
  -- These are in the first row only.
  workers jsonb,
  queue jsonb
)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
-- The jobs ahead are read in index order, however few there were when the plan was made.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_job job_details;
begin
  perform admit(p_org, p_entry);
  if p_with_queue then
    workers := live_workers();
    queue := queue_sums(p_org);
  end if;
  for i in 1 .. cardinality(p_jobs) loop
    select * into v_job
    from job_details d
    where d.org_id = p_org
      and d.id = p_jobs[i];
    continue when v_job.id is null;
    job := row_to_json(v_job);
    place := place_of(v_job, p_most);
    return next;
    workers := null;
    queue := null;
  end loop;
end
$$;

create or replace function place_of(p_job job_details, p_most integer) returns jsonb
language plpgsql
as $$
declare
  v_place record;
begin
  -- Nulls, if it is not in the queue.
  select * into v_place from queue_place(p_job.org_id, p_job.id, p_most);
  return jsonb_build_object(
    'now', now(), 'lane', v_place.lane, 'ahead_jobs', v_place.ahead_jobs, 'ahead_ms', v_place.ahead_ms,
    'counted', v_place.counted, 'lane_position', v_place.lane_position, 'flows', v_place.flows,
    'wake_at',
    case
      when p_job.status in ('pending', 'retrying') then
        (select w.wake_at from waiting_jobs w where w.org_id = p_job.org_id and w.job_id = p_job.id)
    end,
    'pauses',
    (
      select coalesce(
        jsonb_agg(jsonb_build_object('type', p.type, 'paused_at', p.paused_at) order by p.type nulls first), '[]'
      )
      from pauses p
      where p.org_id = p_job.org_id
        and (p.type is null or p.type = p_job.type)
    ),
    'open_parents',
    case
      when p_job.status = 'blocked' then
        coalesce(
          (select b.remaining from blocked_jobs b where b.org_id = p_job.org_id and b.job_id = p_job.id), 0
        )
      else 0
    end,
    'parents',
    case when p_job.status = 'blocked' then open_parents_of(p_job.org_id, p_job.id, p_most) else '[]' end
  );
end
$$;

create or replace function open_parents_of(p_org uuid, p_job uuid, p_most integer) returns jsonb
language plpgsql
as $$
-- Up to ten parents that have not completed.
begin
  return (
    select coalesce(jsonb_agg(to_jsonb(p) order by p.id), '[]')
    from (
      select
        o.id, o.name, o.status, o.predicted_ms, o.predicted_p90_ms,
        extract(epoch from now() - o.started_at) * 1000 as ran_ms, at.lane, at.ahead_jobs,
        at.ahead_ms, at.counted, at.lane_position, at.flows
      from job_dependencies d
      join job_overview o on o.org_id = d.org_id and o.id = d.parent_id
      left join lateral queue_place(o.org_id, o.id, p_most) at on o.status = 'ready'
      where d.child_id = p_job
        and d.org_id = p_org
        and o.status <> 'completed'
      limit 10
    ) p
  );
end
$$;

create or replace function list_jobs(
  -- As search_jobs takes them.
  p_org uuid, p_filter jsonb, p_from uuid, p_below uuid, p_limit integer,
  p_entry jsonb
) returns table (
  -- Null on the last page.
  next_id uuid,
  -- An empty page is one row without a job.
  job job_summaries
)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  perform admit(p_org, p_entry);
  return query
  select found.next_id, row(j.*)::job_summaries
  from search_jobs(p_org, p_filter, p_from, p_below, p_limit) found
  left join lateral (
    select s.*
    from unnest(found.org_ids, found.ids) as f (org_id, id)
    cross join lateral (
      select *
      from job_summaries o
      where o.org_id = f.org_id
        and o.id = f.id
      offset 0
    ) s
  ) j on true
  order by j.id desc;
end
$$;

create or replace function find_jobs(
  -- As search_jobs takes and returns them.
  p_org uuid, p_filter jsonb, p_from uuid, p_below uuid, p_limit integer,
  out org_ids uuid[], out ids uuid[], out next_id uuid
)
language plpgsql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
begin
  perform require_org(p_org);
  select s.org_ids, s.ids, s.next_id
  into org_ids, ids, next_id
  from search_jobs(p_org, p_filter, p_from, p_below, p_limit) s;
end
$$;

grant execute on function read_jobs, list_jobs, find_jobs to smartqueue_functions;
