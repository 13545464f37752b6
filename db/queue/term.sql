-- The leader's term. Every function that only the leader may call starts with this check, so that a former leader
-- changes nothing. A term also ends when the database restarts or recovers, because positions that the leader keeps in
-- memory may be ahead of transaction ids that are then reused.

create or replace function in_term(p_term bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, smartqueue, pg_temp
as $$
begin
  return exists (
    select
    from scheduler_leader
    where term = p_term
      and incarnation = database_incarnation()
  );
end
$$;

grant execute on function in_term to smartqueue_workers;
