create or replace function schedule_view(p_schedule schedules)
returns table (
  id uuid, name text, cron text, timezone text, catch_up text, job jsonb, paused_at timestamptz, next_at timestamptz,
  skipped_ticks double precision, version text, created_at timestamptz, updated_at timestamptz,
  tick_at timestamptz, outcome text, job_id uuid, reason text, fired_at timestamptz
)
language sql stable rows 1
-- A schedule as the API shows it, with its newest tick.
begin atomic
  select
    p_schedule.id, p_schedule.name, p_schedule.cron, p_schedule.timezone, p_schedule.catch_up, p_schedule.job,
    p_schedule.paused_at, p_schedule.next_at, p_schedule.skipped_ticks, p_schedule.version, p_schedule.created_at,
    p_schedule.updated_at, t.tick_at, t.outcome, t.job_id, t.reason, t.fired_at
  from (select) one
  left join lateral (
    select tick_at, outcome, job_id, reason, fired_at
    from schedule_ticks
    where schedule_id = p_schedule.id
    order by tick_at desc
    limit 1
  ) t on true;
end;

create or replace function schedule_target(p_schedule schedules) returns jsonb
language sql stable
-- For the audit log.
return jsonb_build_object('schedule_id', p_schedule.id, 'name', p_schedule.name);

grant execute on function schedule_view, schedule_target to smartqueue_functions;
