create or replace function forget_series(
  p_term bigint, p_days double precision, p_after_id bigint, p_limit integer,
  out looked_at integer, out last_id bigint, out idle integer, out forgotten integer
)
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
set lock_timeout = '50ms'
as $$
-- Examines the next series and deletes those without jobs that have not run for the retention period. A submission
-- looks up its series before it stores its jobs. It locks the table jobs first, in a mode that conflicts with the share
-- lock here, so that the series cannot be deleted in between: this waits for submissions in progress, and later ones
-- see that the series is gone and create it again. `forgotten` is null if the lock was not granted in time.
declare
  v_looked_at constant bigint[] := array(
    select id
    from series
    where id > p_after_id
    order by id
    limit case when in_term(p_term) then p_limit else 0 end
  );
  v_idle constant bigint[] := array(
    select id
    from unnest(v_looked_at) as a (id)
    where not exists (select from jobs j where j.series_id = a.id)
      and not exists (
        select
        from series_memories m
        where m.series_id = a.id
          and m.updated_at > now() - p_days * interval '1 day'
      )
  );
begin
  looked_at := cardinality(v_looked_at);
  last_id := v_looked_at[looked_at];
  idle := cardinality(v_idle);
  forgotten := 0;
  if idle > 0 then
    lock table jobs in share mode;
    delete from series s
    where s.id = any (v_idle)
      and not exists (select from jobs j where j.series_id = s.id);
    get diagnostics forgotten = row_count;
  end if;
exception
  when lock_not_available then
    forgotten := null;
end
$$;

grant execute on function forget_series to smartqueue_workers;
