create or replace function receiving_source(p_source uuid) returns setof webhook_sources
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- The source whose address a delivery was sent to, with its secrets: the functions verify the signature with them. Only the
-- exact id, which is part of that address, finds it.
begin atomic
  select s.*
  from webhook_sources s
  where s.id = p_source
    and not exists (select from org_deletions d where d.id = s.org_id and d.removed_at is null);
end;

grant execute on function receiving_source to smartqueue_functions;
