-- Facts about the whole queue that row-level security hides from a caller, or that several statements ask for.

create or replace function is_silent(p_last_seen timestamptz) returns boolean
language sql stable
-- A worker sends a heartbeat every two seconds. After five missed ones it counts as offline.
return p_last_seen < now() - interval '10 seconds';

create or replace function live_workers() returns jsonb
language sql stable
begin atomic
  select coalesce(jsonb_agg(to_jsonb(w) order by w.worker_id), '[]')
  from (
    select worker_id, types, slots, running, cpu_units, memory_mb
    from workers
    where status = 'online'
      and not is_silent(last_seen)
  ) w;
end;

create or replace function live_slots() returns integer
language sql stable
begin atomic
  select coalesce(sum(slots), 0)::integer
  from workers
  where status = 'online'
    and not is_silent(last_seen);
end;

grant execute on function is_silent, live_slots to smartqueue_functions, smartqueue_workers;
grant execute on function live_workers to smartqueue_functions;
