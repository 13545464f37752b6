-- Time buckets of equal length, in UTC.

create or replace function bucket_start(p_seconds integer, p_buckets integer) returns timestamptz
language sql stable
-- The start of the first of the last p_buckets buckets. The last one contains the present.
return date_bin(p_seconds * interval '1 second', now(), 'epoch') - (p_buckets - 1) * p_seconds * interval '1 second';

create or replace function buckets(p_seconds integer, p_buckets integer) returns setof timestamptz
language sql stable
-- The starts of the last p_buckets buckets, oldest first.
begin atomic
  select generate_series(
    bucket_start(p_seconds, p_buckets), bucket_start(p_seconds, 1), p_seconds * interval '1 second'
  );
end;

create or replace function job_sums(p_org uuid, p_hours integer) returns jsonb
language sql stable
-- Sums over the last p_hours hours: by the minute up to the first full hour, and by the hour from then on.
begin atomic
  with recent as materialized (
    select submitted, completed, failed, cancelled, ran, runtime_ms, waits
    from job_rollups
    where org_id = p_org
      and (
        span = 60 and at > now() - p_hours * interval '1 hour' and at < bucket_start(3600, p_hours)
        or span = 3600 and at >= bucket_start(3600, p_hours)
      )
  )
  select jsonb_build_object(
    'submitted', coalesce(sum(submitted), 0), 'completed', coalesce(sum(completed), 0),
    'failed', coalesce(sum(failed), 0), 'cancelled', coalesce(sum(cancelled), 0), 'ran', coalesce(sum(ran), 0),
    'runtime_ms', coalesce(sum(runtime_ms), 0),
    'waits', (
      select jsonb_agg(count order by bucket)
      from (
        select bucket, sum(count) as count
        from recent
        cross join lateral unnest(waits) with ordinality as u (count, bucket)
        group by bucket
      ) counts
    )
  )
  from recent;
end;

create or replace function minute_sums(p_org uuid, p_minute timestamptz) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object(
    'submitted', coalesce(sum(submitted), 0), 'finished', coalesce(sum(completed + failed + cancelled), 0)
  )
  from job_rollups
  where org_id = p_org
    and span = 60
    and at = p_minute;
end;

grant execute on function bucket_start, buckets, job_sums, minute_sums to smartqueue_functions;
