-- Under row-level security an index serves only conditions that cannot leak, and array comparisons could. This function
-- looks tags up by their index and checks the organisation itself.

create or replace function tagged_jobs(in_org uuid, in_tag text) returns setof uuid
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
begin atomic
  select id
  from jobs
  where org_id = in_org
    and tags @> array[in_tag]
    and tags <> '{}'
    and is_open(in_org);
end;

grant execute on function tagged_jobs to smartqueue_functions, smartqueue_workers;
