-- The event stream of an organisation.

create or replace function events_after(in_org uuid, after_xid xid8, after_id bigint, until_xid xid8, most integer)
returns setof job_event_groups
language sql stable
-- Always reads in the order of the index: any other plan reads all rows after the position to find the first of them.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
begin atomic
  select *
  from job_event_groups
  where org_id = in_org
    and (xid, id) >= (after_xid, after_id)
    and xid < until_xid
    -- Rows restored from a dump have transaction ids of another server.
    and id > (select foreign_id from callback_cursor)
  order by xid, id
  limit most;
end;

grant execute on function events_after to smartqueue_functions;
