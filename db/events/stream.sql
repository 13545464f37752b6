create or replace function events_after(in_org uuid, after_xid xid8, after_id bigint, until_xid xid8, most integer)
returns setof job_event_groups
language sql stable
-- Always reads in index order: any other plan would read all rows after the position to find the first of them.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
begin atomic
  select *
  from job_event_groups
  where org_id = in_org
    and (xid, id) >= (after_xid, after_id)
    and xid < until_xid
    -- Rows restored from a dump have transaction ids from another server.
    and id > (select foreign_id from event_cursors where reader = 'callbacks')
  order by xid, id
  limit most;
end;

create or replace function unpack_events(
  p_job_ids uuid[], p_states job_state[], p_attempts integer[], p_reasons text[], p_ats timestamptz[], p_at timestamptz,
  p_skipped integer, p_last integer
)
returns table (n integer, job_id uuid, state job_state, attempt integer, reason text, at timestamptz)
language sql immutable
-- The events of a row of job_event_groups, from p_skipped + 1 to p_last. It reads slices, because reading a single
-- element of a large array fetches all of it.
begin atomic
  select
    (p_skipped + e.n)::integer, e.job_id, coalesce(e.state, p_states[1]), coalesce(e.attempt, p_attempts[1]),
    case when cardinality(p_reasons) = 1 then p_reasons[1] else e.reason end,
    coalesce(case when cardinality(p_ats) = 1 then p_ats[1] else e.at end, p_at)
  from unnest(
    p_job_ids[p_skipped + 1:p_last], p_states[p_skipped + 1:p_last], p_attempts[p_skipped + 1:p_last],
    p_reasons[p_skipped + 1:p_last], p_ats[p_skipped + 1:p_last]
  ) with ordinality as e (job_id, state, attempt, reason, at, n)
  where e.job_id is not null;
end;

grant execute on function events_after to smartqueue_functions;
grant execute on function unpack_events to smartqueue_functions, smartqueue_workers;
