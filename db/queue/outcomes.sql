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

grant execute on function error_fingerprint, executions_of to smartqueue_functions, smartqueue_workers;
