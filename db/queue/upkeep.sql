-- The leader's check for work, and its management of workers: reservations, isolation and missed heartbeats.
--
-- look_out checks all duties at once. Most of the time there is nothing to do, and trying each duty would take several
-- times as long. Each check is one probe of an index (waiting_jobs_due, series_moved, ready_jobs_big,
-- ready_jobs_suspects) or reads a small table.
--
-- The other functions lock rows of workers, by id, and of reservations, which only the leader inserts.

create or replace function look_out()
returns table (due boolean, expired boolean, moved boolean, big boolean, suspects boolean, held_back text)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  due := exists (select from waiting_jobs where wake_at <= now());
  expired := exists (select from leases where expires_at <= now());
  moved := exists (select from series s where s.moved);
  big := exists (select from ready_jobs where (cpu_units > 1 or memory_mb > 64) and lane < 5000)
    or exists (select from reservations);
  suspects := exists (select from ready_jobs where lane >= 15000)
    or exists (select from workers where isolates and status = 'online');
  held_back := concat_ws(
    ' ',
    (select string_agg(org_id || '/' || coalesce(type, ''), ' ' order by org_id, type) from pauses),
    (select string_agg(type, ' ' order by type) from job_types where type <> all (handled_types()))
  );
  return next;
end
$$;

create or replace function reserve_capacity(p_term bigint, p_after_seconds integer)
returns table (job_id uuid, worker_id text)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
-- Smaller jobs that fit into the free capacity overtake a job above the default size. Once it has been ready for
-- p_after_seconds and no smaller job of its flow is ahead of it, by rank or by age, a worker that can hold it reserves
-- capacity: the one with the most free slots, one job per worker. Reservations that are no longer needed are deleted.
begin
  if not in_term(p_term) then return; end if;

  delete from reservations v
  where not exists (select from ready_jobs r where r.org_id = v.org_id and r.job_id = v.job_id and r.lane < 5000)
    or not exists (select from workers w where w.worker_id = v.worker_id and w.status = 'online');

  return query
  insert into reservations as v (job_id, org_id, worker_id, cpu_units, memory_mb)
  select r.job_id, r.org_id, host.worker_id, r.cpu_units, r.memory_mb
  from ready_jobs r
  -- A job that no worker can hold must not block the next one.
  cross join lateral (
    select w.worker_id
    from workers w
    where w.status = 'online'
      and r.type = any (w.types)
      and r.cpu_units <= w.cpu_units
      and r.memory_mb <= w.memory_mb
      and not exists (select from reservations v where v.worker_id = w.worker_id)
    order by w.slots - w.running desc, w.worker_id
    limit 1
  ) host
  where (r.cpu_units > 1 or r.memory_mb > 64)
    and r.lane < 5000
    and r.ready_at < now() - p_after_seconds * interval '1 second'
    and not exists (select from reservations v where v.job_id = r.job_id)
    and (
      not exists (
        select
        from ready_jobs s
        where s.flow = r.flow
          and (s.lane, s.key) < (r.lane, r.key)
          and not (s.cpu_units > 1 or s.memory_mb > 64)
      )
      or not exists (
        select
        from ready_jobs s
        where s.flow = r.flow
          and s.key < r.key
          and s.lane < 5000
          and not (s.cpu_units > 1 or s.memory_mb > 64)
      )
    )
  order by r.ready_at
  limit 1
  returning v.job_id, v.worker_id;
end
$$;

create or replace function mark_silent_workers(p_term bigint) returns setof text
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
as $$
begin
  if not in_term(p_term) then return; end if;
  delete from workers w
  where w.status = 'offline'
    and w.last_seen < now() - interval '1 day';
  return query
  update workers w
  set status = 'offline', running = 0
  from (
    select o.worker_id
    from workers o
    where o.status <> 'offline'
      and is_silent(o.last_seen)
    order by o.worker_id
    for update
  ) silent
  where w.worker_id = silent.worker_id
  returning w.worker_id;
end
$$;

create or replace function ask_to_isolate(p_term bigint) returns table (worker_id text, newly boolean)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
-- Picks a worker to run suspects alone, if a suspect may run and not too many workers isolate already: the worker that
-- is predicted to finish its jobs first. While a worker drains, its free slots are idle, so it is not asked to drain
-- for longer than the suspects have already waited; a minute is always acceptable. A worker that drains for suspects
-- that are gone is released. Returns all workers that should isolate and have not taken their turn yet. They are
-- notified repeatedly; a worker that is no longer notified goes back to ordinary work.
begin
  if not in_term(p_term) then return; end if;

  return query
  with suspect as materialized (
    select
      r.type, r.cpu_units, r.memory_mb,
      (
        select extract(epoch from now() - max(a.finished_at)) * 1000
        from attempts a
        where a.org_id = r.org_id
          and a.job_id = r.job_id
          and a.outcome = 'lost'
      ) as waited_ms
    from ready_jobs r
    where r.lane >= 15000
      and not is_paused(r.org_id, r.type)
      and not exists (
        select
        from quotas_of(r.org_id) q
        where q.running_jobs <= (select count(*) from held_jobs h where h.org_id = r.org_id)
      )
  ),
  online as materialized (
    select
      w.worker_id, w.isolates,
      exists (
        select
        from suspect s
        where s.type = any (w.types)
          and s.cpu_units <= w.cpu_units
          and s.memory_mb <= w.memory_mb
      ) as is_able
    from workers w
    where w.status = 'online'
      and not is_silent(w.last_seen)
  ),
  busy as materialized (
    select o.worker_id
    from online o
    where o.isolates
      and o.is_able
    union
    select l.worker_id
    from leases l
    join online o on o.worker_id = l.worker_id
    where l.alone
  ),
  chosen as materialized (
    select o.worker_id
    from online o
    left join lateral (
      select max(j.predicted_ms - extract(epoch from now() - h.started_at) * 1000) as ms
      from held_jobs h
      join jobs j on j.org_id = h.org_id and j.id = h.job_id
      where h.worker_id = o.worker_id
    ) remaining on true
    where o.is_able
      and o.worker_id not in (select b.worker_id from busy b)
      and coalesce(remaining.ms, 0) <= (select greatest(60000, max(s.waited_ms)) from suspect s)
      -- At most one worker in four runs suspects at a time, but always at least one.
      and (select count(*) from busy) < (select greatest(1, count(*) / 4) from online)
    order by remaining.ms nulls first, o.worker_id
    limit 1
  ),
  told as materialized (
    select c.worker_id, true as isolates
    from chosen c
    union all
    select o.worker_id, o.is_able
    from online o
    where o.isolates
  ),
  changed as (
    update workers w
    set isolates = turned.isolates
    from (
      select o.worker_id, t.isolates
      from workers o
      join told t on t.worker_id = o.worker_id and t.isolates <> o.isolates
      order by o.worker_id
      for no key update of o
    ) turned
    where w.worker_id = turned.worker_id
    returning w.worker_id
  )
  select t.worker_id, t.worker_id in (select c.worker_id from changed c)
  from told t
  where t.isolates;
end
$$;

grant execute on function look_out, reserve_capacity, mark_silent_workers, ask_to_isolate to smartqueue_workers;
