create or replace function newest_tick(p_schedule uuid) returns setof schedule_ticks
language sql stable rows 1
begin atomic
  select *
  from schedule_ticks
  where schedule_id = p_schedule
  order by tick_at desc
  limit 1;
end;

grant execute on function newest_tick to smartqueue_functions;
