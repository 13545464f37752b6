-- Small readers that the statements recording outcomes and claiming jobs use.

create or replace function error_fingerprint(error jsonb) returns text
language sql immutable parallel safe
-- Errors that differ only in ids, numbers, addresses or quoted values are the same error. A number that the message
-- begins with is a status, and tells them apart.
return md5(
  coalesce(error ->> 'code', '') || ' ' || coalesce(substring(error ->> 'message' from '^[0-9]{3}\M'), '') || ' ' ||
  regexp_replace(
    regexp_replace(left(coalesce(error ->> 'message', ''), 400), '"[^"]*"|''[^'']*''|`[^`]*`', '?', 'g'),
    '[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|[0-9a-f]{12,}|[0-9]+', '#', 'gi'
  )
);

create or replace function executions_of(in_orgs uuid[], of_jobs uuid[]) returns json
language sql stable
-- How often each job was executed before, by its id. A function and no subquery: it costs a claim nothing unless some
-- job is traced.
begin atomic
  select json_object_agg(job_id, executions)
  from (
    select job_id, count(*) as executions
    from attempts
    where org_id = any (in_orgs)
      and job_id = any (of_jobs)
    group by job_id
  ) earlier;
end;

create or replace function has_finished(in_org uuid, in_job uuid) returns boolean
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Being a function it looks with a fresh snapshot, after the caller has locked the job's lease: an end that was
-- committed between the caller's snapshot and its lock is seen.
begin
  return exists (select from finished_jobs f where f.org_id = in_org and f.job_id = in_job);
end
$$;

grant execute on function error_fingerprint, executions_of, has_finished to smartqueue_functions, smartqueue_workers;
