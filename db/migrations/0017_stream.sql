-- Events of one organisation in the order of their commits, for its stream.

create index job_event_groups_of_org on job_event_groups (org_id, xid, id) where xid is not null;
comment on index job_event_groups_of_org is 'Serves read-stream.';

create table stream_floor (
  only_row boolean primary key default true,
  xid xid8 not null,
  constraint stream_floor_only_row check (only_row)
);
comment on table stream_floor is
  'The newest transaction of which events have expired: whoever stopped reading before it has missed some.';
insert into stream_floor (xid) values ('0');
grant select on stream_floor to smartqueue_functions;
grant select, update on stream_floor to smartqueue_workers;
grant select (foreign_id) on callback_cursor to smartqueue_functions;

create function enter_stream(in_org uuid, users uuid[], sessions uuid[], keys uuid[]) returns text[]
language plpgsql
as $$
-- Opens the organisation to those who follow its stream, if there is one of them who may, and tells of each: 'entered';
-- 'ended', if it is the session or the key that is worth nothing any more; 'removed' who is no member.
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

create function events_after(in_org uuid, after_xid xid8, after_id bigint, until_xid xid8, most integer)
returns setof job_event_groups
language sql stable
-- In the order of the index, whatever the statistics say: with any other plan all rows after a place are read to find the
-- first of them.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
begin atomic
  select *
  from job_event_groups
  where org_id = in_org
    and (xid, id) >= (after_xid, after_id)
    and xid < until_xid
    -- Those that came with a dump have the numbers of another server's transactions.
    and id > (select foreign_id from callback_cursor)
  order by xid, id
  limit most;
end;
