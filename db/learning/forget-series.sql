create or replace function forget_series(in_series bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
set lock_timeout = '50ms'
as $$
-- Deletes those of which no job is left. A submission looks its stream up and stores its job in one statement, and
-- refers to a stream that it saw even if that has been deleted meanwhile. So for a moment there must be none: whoever
-- inserts jobs holds a lock from before its snapshot until it commits, which this one waits for; those that come later see
-- what was deleted, and make the stream anew. Null: others did not let go of the table in time.
declare
  forgotten integer;
begin
  lock table jobs in share mode;
  with deleted as (
    delete from series s
    where s.id = any (in_series)
      and not exists (select from jobs j where j.series_id = s.id)
    returning s.id
  )
  select count(*) into forgotten
  from deleted;
  return forgotten;
exception
  when lock_not_available then return null;
end
$$;

grant execute on function forget_series to smartqueue_functions, smartqueue_workers;
