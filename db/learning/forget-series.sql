create or replace function forget_series(in_series bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
set lock_timeout = '50ms'
as $$
-- Deletes those of the given series that have no jobs left. A submission looks up its series and stores its job in one
-- statement, so it may refer to a series that was deleted after its snapshot. The share lock prevents this: it waits
-- for submissions that are under way, and later ones see that the series is gone and create it again. Returns null if
-- the lock was not granted in time.
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

grant execute on function forget_series to smartqueue_workers;
