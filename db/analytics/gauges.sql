-- Counts over all organisations, for metrics.

create or replace function lease_gauges() returns table (in_flight bigint, expired bigint, slow bigint)
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- Held jobs, those whose lease has expired, and those that have been running longer than their predicted p99.
begin atomic
  select
    count(*), count(*) filter (where h.expires_at <= now()),
    count(*) filter (
      where h.expires_at > now()
        and h.started_at < now() - greatest(j.predicted_p99_ms, 1000) * interval '1 millisecond'
        and j.predicted_p99_ms is not null
    )
  from held_jobs h
  join jobs j on j.org_id = h.org_id and j.id = h.job_id;
end;

create or replace function is_drawn(p_job uuid, p_step bigint) returns boolean
language sql immutable parallel safe
-- Samples one job in p_step by its id.
return (uuid_hash_extended(p_job, 0) & 1048575) % p_step = 0;

grant execute on function lease_gauges to smartqueue_functions;
grant execute on function is_drawn to smartqueue_workers;
