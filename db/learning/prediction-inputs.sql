-- All inputs for predicting an organisation's jobs, in one row. Read before a submission, at most once a second for
-- each series and isolate.
--
-- Everything about runtimes belongs to the organisation: its series, their memories, its estimates by type and its own
-- memory. type_estimates mixes the runs of all organisations, and has rows only if SMARTQUEUE_SHARED_ESTIMATES is on.
-- The champion's weights are trained on everybody's runs; docs/model.md says how that is bounded. Workers and the
-- queue's sums are shared by nature: they decide when a job starts.
--
-- Indexes: series_identity, series_memories_pkey, jobs_by_series, org_type_estimates_pkey, org_memories_pkey,
-- models_champion. Every lookup is by key, so a generic plan is right for any arguments. Server CPU for one series:
-- 270 µs; 590 µs with custom plans, 1,260 µs as a query text that is parsed and planned on every call.

create or replace function prediction_inputs_for(p_org uuid, p_types text[], p_names text[], p_entry jsonb)
returns table (
  -- One element for each pair of p_types and p_names, in their order.
  series json,
  -- Estimates of these types from all organisations, if they share them.
  shared_types json,
  -- In base64; null before the organisation's first run.
  org_memory text,
  champion integer,
  workers jsonb,
  -- Null right after a server crash.
  queue jsonb
)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  perform admit(p_org, p_entry);

  series := (
    select coalesce(json_agg(row_to_json(one) order by one.number), '[]')
    from (
      select
        w.number, w.type, w.name, s.runs, s.mean_log, s.deviation_log, s.drift_log,
        encode(m.memory, 'base64') as memory, j.id as newest_job_id, row_to_json(o) as org_type,
        exists (select from pauses p where p.org_id = p_org and (p.type is null or p.type = w.type)) as paused
      from unnest(p_types, p_names) with ordinality as w (type, name, number)
      left join lateral (
        select e.id, e.runs, e.mean_log, e.deviation_log, e.drift_log
        from series e
        where e.org_id = p_org
          and e.type = w.type
          and e.name = w.name
        offset 0
      ) s on true
      left join lateral (
        select r.memory
        from series_memories r
        where r.series_id = s.id
        offset 0
      ) m on true
      left join lateral (
        select n.id
        from jobs n
        -- The series belongs to the organisation. With a condition on org_id, the planner might scan all of its jobs.
        where n.series_id = s.id
        order by n.id desc
        limit 1
      ) j on true
      left join lateral (
        select
          e.runs, e.mean_log, e.deviation_log, e.median_log, e.drift_log, encode(e.memory, 'base64') as memory
        from org_type_estimates e
        where e.org_id = p_org
          and e.type = w.type
        offset 0
      ) o on true
    ) one
  );

  shared_types := (
    select coalesce(json_agg(row_to_json(t)), '[]')
    from (
      select e.type, e.runs, e.mean_log, e.deviation_log, e.median_log
      from type_estimates e
      where e.type = any (p_types)
    ) t
  );

  org_memory := (select encode(m.memory, 'base64') from org_memories m where m.org_id = p_org);
  champion := (select m.version from models m where m.status = 'champion');

  workers := live_workers();
  queue := queue_sums(p_org);
  return next;
end
$$;

grant execute on function prediction_inputs_for to smartqueue_functions, smartqueue_workers;
