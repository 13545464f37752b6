-- The log of transitions. The event stream, callbacks and analytics read it in commit order.

create table job_event_groups (
  id bigint generated always as identity,
  org_id uuid not null,
  at timestamptz not null default now(),
  job_ids uuid[] not null,
  states job_state[] not null,
  attempts integer[] not null,
  reasons text[] not null,
  ats timestamptz[] not null,
  -- Readers follow xid and then id: ids are assigned before the commit, and a slow transaction commits late.
  xid xid8 not null default pg_current_xact_id(),
  primary key (xid, id)
);
comment on table job_event_groups is
  'Transitions of jobs of one organisation, one row for all that are made together. An array with one value applies to
all jobs. An empty array means no reason, or the time of the row.';

alter table job_event_groups
  alter column job_ids set storage external,
  alter column states set storage external,
  alter column attempts set storage external,
  alter column ats set storage external;

create index job_event_groups_by_time on job_event_groups using brin (at)
with (pages_per_range = 16, autosummarize = on);
comment on index job_event_groups_by_time is 'Serves delete_expired.';

comment on index job_event_groups_pkey is 'Serves find-callbacks and the rollups.';

create index job_event_groups_of_org on job_event_groups (org_id, xid, id);
comment on index job_event_groups_of_org is 'Serves read-stream.';

create table stream_floor (
  only_row only_row primary key,
  xid xid8 not null
);
comment on table stream_floor is
  'The newest transaction whose events have expired. A reader that stopped before it has missed events.';

insert into stream_floor (xid) values ('0');

create table event_cursors (
  reader text primary key,
  -- The last row of job_event_groups (gains: of executions) that was read.
  xid xid8 not null default '0',
  id bigint not null default 0,
  -- Callbacks can stop inside a row: one statement may end thousands of jobs.
  position integer not null default 0,
  -- Rows up to this id were restored from another server's dump. Their transaction ids mean nothing here.
  foreign_id bigint not null default 0,
  constraint event_cursors_reader check (reader in ('callbacks', 'rollups', 'gains'))
)
with (fillfactor = 50);
comment on table event_cursors is
  'How far the leader has read. The transaction that acts on the rows moves the cursor, so that each counts once.';

insert into event_cursors (reader) values ('callbacks'), ('rollups'), ('gains');

-- Positions in the event log are valid only within one incarnation of the database.

create unlogged table incarnations (
  only_row only_row primary key,
  id uuid not null default gen_random_uuid()
);
comment on table incarnations is
  'One row, inserted by the first reader. Postgres truncates unlogged tables during crash recovery.';

create function database_incarnation() returns text
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Changes whenever committed transactions may be lost and their ids reused: after crash recovery, even if the
-- postmaster survived (the table is empty); after a restart, failover or restore (different start time); and in a copy
-- (different database).
declare
  v_id uuid;
begin
  select id into v_id from incarnations;
  if not found then
    -- Waits for a concurrent insert. The next statement then sees its row.
    insert into incarnations default values on conflict do nothing;
    select id into strict v_id from incarnations;
  end if;
  return (
    select
      lpad(
        to_hex(hashtextextended(concat_ws(' ', v_id, extract(epoch from pg_postmaster_start_time()), oid), 0)), 16, '0'
      )
    from pg_database
    where datname = current_database()
  );
end
$$;

call isolate_by_org('job_event_groups');

grant execute on function database_incarnation to smartqueue_functions, smartqueue_workers;
grant select on job_event_groups, stream_floor to smartqueue_functions, smartqueue_workers;
-- The leader deletes expired events.
grant delete on job_event_groups to smartqueue_workers;
grant update on stream_floor to smartqueue_workers;
grant select (reader, foreign_id) on event_cursors to smartqueue_functions;
grant select, update on event_cursors to smartqueue_workers;
grant select, insert on incarnations to smartqueue_functions, smartqueue_workers;
