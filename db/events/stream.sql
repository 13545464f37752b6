-- The event stream of an organisation.

create or replace function enter_stream(in_org uuid, users uuid[], sessions uuid[], keys uuid[]) returns text[]
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Opens the organisation if at least one of the given stream clients may read it. Returns for each client: 'entered';
-- 'ended' if the session or key is no longer valid; 'removed' if the user is no longer a member.
declare
  answers text[] := '{}';
  answer text;
begin
  for i in 1 .. cardinality(users) loop
    answer := enter(array[in_org], array[users[i]], array[sessions[i]], array[keys[i]], 'user');
    if answer <> 'entered' then
      perform set_scope(in_user => users[i]);
      perform
      from users u
      left join memberships m on m.org_id = in_org and m.user_id = u.id
      where u.id = enter_stream.users[i]
        and (m.user_id is not null or u.is_admin and keys[i] is null);
      answer := case when found then 'ended' else 'removed' end;
    end if;
    answers := answers || answer;
  end loop;
  perform set_scope(orgs => case when 'entered' = any (answers) then array[in_org] else '{}' end);
  return answers;
end
$$;

create or replace function newest_event_at() returns timestamptz
language sql stable security definer
set search_path = pg_catalog, smartqueue, pg_temp
-- The plan is cached for the session, and may have been made while the table was small.
set enable_seqscan = off
begin atomic
  select at
  from job_event_groups
  order by id desc
  limit 1;
end;

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

grant execute on function enter_stream, newest_event_at, events_after to smartqueue_functions, smartqueue_workers;
