-- Deletes up to p_limit rows of one kind that are older than the retention period, and returns their number. The leader
-- calls it for one kind at a time: readers of the event log wait for the oldest transaction, so none may run long.
--
-- Only the leader deletes these rows. It skips finished jobs that another transaction has locked, so it never waits.
-- Each kind has an index on its time, except executions and jobs, whose oldest rows are first in their primary keys,
-- and callback endpoints, which are few and are scanned.
-- Custom plans: a generic plan would assume that a third of each table has expired and scan it.

create or replace function delete_expired(p_term bigint, p_kind text, p_days double precision, p_limit integer)
returns integer
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_before constant timestamptz := now() - p_days * interval '1 day';
  -- The last 24 hours are shown by the minute.
  v_minutes_before constant timestamptz := now() - interval '26 hours';
  -- Ids are UUIDv7. A day of slack covers clock differences.
  v_ids_before uuid;
  v_deleted integer;
begin
  if not in_term(p_term) then return 0; end if;

  case p_kind
    when 'jobs' then
      v_ids_before := rpad(
        lpad(to_hex(greatest(0, extract(epoch from v_before + interval '1 day') * 1000)::bigint), 12, '0'), 32, '0'
      );
      with expired as materialized (
        select f.org_id, f.job_id
        from orgs o
        cross join lateral (
          select org_id, job_id
          from finished_jobs
          where org_id = o.id
            and job_id < v_ids_before
            and finished_at < v_before
            -- Keep a job that others still wait for.
            and not exists (
              select
              from job_dependencies d
              join blocked_jobs b on b.job_id = d.child_id
              where d.parent_id = finished_jobs.job_id
            )
          order by job_id
          limit p_limit
          -- Skips a job that is being retried. Once that has committed, the job has no row here.
          for update skip locked
        ) f
        limit p_limit
      ),
      finished as (
        delete from finished_jobs f
        using expired e
        where f.org_id = e.org_id
          and f.job_id = e.job_id
      ),
      tried as (
        delete from attempts a
        using expired e
        where a.org_id = e.org_id
          and a.job_id = e.job_id
      )
      -- Logs, progress and dependencies are deleted with the job (on delete cascade).
      delete from jobs j
      using expired e
      where j.org_id = e.org_id
        and j.id = e.job_id;

    when 'events' then
      with deleted as (
        delete from job_event_groups
        where ctid = any (array(select ctid from job_event_groups where at < v_before limit p_limit))
        returning id, xid
      ),
      -- A stream reader that stopped before this is told of the gap. Rows restored from a dump are in no stream.
      floor as (
        update stream_floor f
        set xid = d.xid
        from (
          select xid
          from deleted
          where id > (select foreign_id from event_cursors where reader = 'callbacks')
          order by xid desc
          limit 1
        ) d
        where d.xid > f.xid
      )
      select count(*) into v_deleted
      from deleted;
      return v_deleted;

    when 'executions' then
      -- Also, only the newest 100,000 are kept. Ids are assigned in sequence, so nothing has to be counted.
      with oldest as materialized (
        select xid, id, at
        from executions
        order by xid, id
        limit p_limit
      )
      delete from executions e
      using oldest o
      where e.xid = o.xid
        and e.id = o.id
        and (o.at < v_before or o.id <= (select id from executions order by xid desc, id desc limit 1) - 100000);

    when 'ticks' then
      delete from schedule_ticks
      where ctid = any (array(
        select ctid
        from schedule_ticks t
        where fired_at < v_before
          -- Keep the newest tick of each schedule, however old it is.
          and exists (select from schedule_ticks where schedule_id = t.schedule_id and tick_at > t.tick_at)
        order by fired_at
        limit p_limit
      ));

    when 'deliveries' then
      delete from webhook_deliveries
      where (org_id, id) in (
        select org_id, id from webhook_deliveries where received_at < v_before order by received_at limit p_limit
      );

    when 'disabled_urls' then
      -- URLs of single jobs would pile up. One that is used again and still returns 410 is disabled again.
      delete from callback_endpoints
      where ctid = any (array(
        select ctid from callback_endpoints where events = '{}' and disabled_at < v_before limit p_limit
      ));

    when 'job_rollups' then
      delete from job_rollups
      where ctid = any (array(
        select ctid
        from job_rollups
        where span = 60 and at < v_minutes_before or span = 3600 and at < v_before
        limit p_limit
      ));

    when 'prediction_rollups' then
      delete from prediction_rollups
      where ctid = any (array(select ctid from prediction_rollups where at < v_before limit p_limit));

    when 'scheduling_gains' then
      delete from scheduling_gains
      where ctid = any (array(select ctid from scheduling_gains where at < v_before limit p_limit));
  end case;

  get diagnostics v_deleted = row_count;
  return v_deleted;
end
$$;

create or replace function delete_stale(p_term bigint, p_days double precision) returns void
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- Deletes rows with a fixed lifetime, and old rows of slot_changes, which are few.
begin
  if in_term(p_term) then
    delete from rate_limits where last_hit < now() - interval '1 hour';
    delete from sign_in_attempts where last_attempt < now() - interval '1 day';
    delete from idempotency_keys where expires_at < now() - interval '1 hour';
    delete from invitations where expires_at < now() - interval '30 days';
    delete from refresh_tokens where expires_at < now();
    delete from refresh_families where expires_at < now();
    -- The forecast compares a week with the four weeks before it.
    delete from load_minutes where at < now() - interval '5 weeks';
    -- Keep the newest row, which has the current number of slots.
    delete from slot_changes
    where at < now() - p_days * interval '1 day'
      and at < (select max(at) from slot_changes);
  end if;
end
$$;

grant execute on function delete_expired, delete_stale to smartqueue_workers;
