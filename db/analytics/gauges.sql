-- Counts over all organisations, for metrics.

create or replace function count_slow_jobs() returns bigint
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- Jobs that have been running longer than their predicted p99.
begin atomic
  select count(*)
  from held_jobs h
  join jobs j on j.org_id = h.org_id and j.id = h.job_id
  where h.expires_at > now()
    and j.predicted_p99_ms is not null
    and h.started_at < now() - greatest(j.predicted_p99_ms, 1000) * interval '1 millisecond';
end;

create or replace function lease_gauges() returns table (in_flight bigint, expired bigint)
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- Running jobs, and held jobs whose lease has expired.
begin atomic
  select count(*), count(*) filter (where expires_at <= now())
  from held_jobs;
end;

create or replace function is_drawn(p_job uuid, p_step bigint) returns boolean
language sql immutable parallel safe
-- Draws one job in p_step by its id.
return (uuid_hash_extended(p_job, 0) & 1048575) % p_step = 0;

grant execute on function count_slow_jobs, lease_gauges to smartqueue_functions;
grant execute on function is_drawn to smartqueue_workers;
