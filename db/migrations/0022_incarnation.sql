-- Positions in the event log are valid only within one incarnation of the database.

create unlogged table incarnations (
  only_row boolean primary key default true,
  id uuid not null default gen_random_uuid(),
  constraint incarnations_only_row check (only_row)
);
comment on table incarnations is
  'One row, inserted by the first reader. Postgres truncates unlogged tables during crash recovery.';
grant select, insert on incarnations to smartqueue_functions, smartqueue_workers;

create function database_incarnation() returns text
language plpgsql
as $$
-- Changes whenever transactions that others have seen may be lost and their ids reused: after crash recovery, even if the
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

alter table scheduler_leader add column incarnation text not null default database_incarnation();
comment on column scheduler_leader.incarnation is
  'A term ends with the incarnation in which it began, because a crash may have undone what its leader has read.';
