-- Facts about the whole queue that row-level security hides from a caller, or that several statements ask for.

create or replace function is_silent(p_last_seen timestamptz) returns boolean
language sql stable
-- A worker writes its row every two seconds. After five missed heartbeats it counts as gone.
return p_last_seen < now() - interval '10 seconds';

create or replace function live_workers() returns jsonb
language sql stable
begin atomic
  select coalesce(
    jsonb_agg(
      jsonb_build_object(
        'worker_id', worker_id, 'types', types, 'slots', slots, 'running', running, 'cpu_units', cpu_units,
        'memory_mb', memory_mb
      )
      order by worker_id
    ),
    '[]'
  )
  from workers
  where status = 'online'
    and not is_silent(last_seen);
end;

create or replace function queue_sums() returns jsonb
language sql volatile
-- Null right after a crash of the server.
begin atomic
  select jsonb_build_object(
    'age_ms', extract(epoch from clock_timestamp() - q.taken_at) * 1000, 'took_ms', q.took_ms, 'lanes', q.lanes,
    'lane_jobs', q.lane_jobs, 'lane_ms', q.lane_ms, 'running_ms', q.running_ms,
    'flow_lanes', q.flow_lanes, 'flow_loads', q.flow_loads, 'stretch', q.stretch
  )
  from queue_snapshot() q
  where q.only_row;
end;

grant execute on function is_silent to smartqueue_functions, smartqueue_workers;
grant execute on function live_workers, queue_sums to smartqueue_functions;
