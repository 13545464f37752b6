-- Reclaim expired leases: the watchdog.
--
-- Takes jobs back from workers that stopped renewing their leases. An attempt counts if its job was the only one that
-- the worker held, so that a job that keeps killing its worker ends up failed. If the worker held several jobs, any of
-- them or none may have been the cause, and no attempt counts. A job that is lost twice in a row becomes a suspect and
-- runs alone from then on (ADR 22). Once a suspect kills a worker that it had to itself, the cause is known: the jobs
-- that were lost with it before no longer have to run alone.
--
-- The leases of one worker expire at slightly different times. workers.lost_at keeps the last of them from looking like
-- the only one: a token begins with the time at which its lease was created.
--
-- Locks, in this order: the expired leases, skipping those that another transaction has locked; rows of workers by id;
-- then whatever release_dependents locks. Suspects in ready_jobs are skipped if they are locked: cancel_jobs and
-- lock_parents lock ready jobs before leases, so whoever holds a lease must not wait for a ready job. Everything is read
-- after the leases are locked, so a completion that was recorded before is seen.
--
-- Indexes: attempts_by_job, ready_jobs_order. The table of leases is small, one row per claim, and is scanned.
--
-- Measured: 0.4 to 1.9 s for a lost worker with 5,000 jobs in 40 of 400 leases, beside 250,000 other unfinished jobs.

create or replace function reclaim_expired_leases(p_term bigint, p_limit integer)
returns table (
  job_id uuid,
  type text,
  worker_id text,
  state job_state,
  counts boolean,
  suspect boolean,
  acquitted_types text[]
)
language plpgsql security definer
set search_path = pg_catalog, smartqueue, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_tokens bigint[];
  v_lost record;
  v_error jsonb;
  v_org_ids uuid[] := '{}';
  v_job_ids uuid[] := '{}';
  v_attempts integer[] := '{}';
  v_suspects boolean[] := '{}';
  v_failed uuid[] := '{}';
  v_worker_ids text[] := '{}';
begin
  if not in_term(p_term) then return; end if;

  v_tokens := array(
    select l.token
    from leases l
    where l.expires_at <= now()
    order by l.token
    limit p_limit
    for update skip locked
  );
  if v_tokens = '{}' then return; end if;
  acquitted_types := acquit_suspects(v_tokens);

  for v_lost in
    with in_hand as materialized (
      select h.worker_id, count(*) as jobs
      from held_jobs h
      where h.worker_id in (select l.worker_id from leases l where l.token = any (v_tokens))
      group by h.worker_id
    )
    select
      h.org_id, h.job_id, j.series_id, j.type, h.worker_id, h.started_at, h.attempt, j.max_attempts,
      i.jobs = 1 and (w.lost_at < to_timestamp((h.token >> 20) / 1000.0)) is not false as counts,
      (h.alone or before.outcome = 'lost') is true as suspect
    from held_jobs h
    join in_hand i on i.worker_id = h.worker_id
    join jobs j on j.org_id = h.org_id and j.id = h.job_id
    left join workers w on w.worker_id = h.worker_id
    left join lateral last_execution(h.org_id, h.job_id) before on true
    where h.token = any (v_tokens)
  loop
    v_error := jsonb_build_object(
      'code', 'worker_lost',
      'message', 'Worker ' || v_lost.worker_id || ' stopped answering during attempt ' || v_lost.attempt
        || case when v_lost.counts then '.' else '. The worker also held other jobs, so the attempt does not count.' end
    );
    job_id := v_lost.job_id;
    state := case when v_lost.counts and v_lost.attempt >= v_lost.max_attempts then 'failed' else 'ready' end;
    type := case when state = 'ready' then v_lost.type end;
    worker_id := v_lost.worker_id;
    counts := v_lost.counts;
    suspect := v_lost.suspect;
    return next;
    insert into job_logs (org_id, job_id, attempt, at, level, message)
    values (v_lost.org_id, v_lost.job_id, v_lost.attempt, now(), 'error', v_error ->> 'message');
    if state = 'failed' then
      perform finish_jobs(
        'failed', array[v_lost.org_id], array[v_lost.job_id], array[v_lost.series_id], array[v_lost.attempt],
        p_worker_ids => array[v_lost.worker_id],
        p_started_ats => array[v_lost.started_at],
        p_errors => array[v_error]
      );
      perform record_events(
        array[v_lost.org_id], array[v_lost.job_id], '{failed}', array[v_lost.attempt], '{worker_lost}'
      );
      v_failed := v_failed || v_lost.job_id;
    else
      insert into attempts (org_id, job_id, attempt, outcome, error, worker_id, started_at)
      values (v_lost.org_id, v_lost.job_id, v_lost.attempt, 'lost', v_error, v_lost.worker_id, v_lost.started_at);
      v_org_ids := v_org_ids || v_lost.org_id;
      v_job_ids := v_job_ids || v_lost.job_id;
      v_attempts := v_attempts || case when v_lost.counts then v_lost.attempt else v_lost.attempt - 1 end;
      v_suspects := v_suspects || v_lost.suspect;
    end if;
    v_worker_ids := v_worker_ids || v_lost.worker_id;
  end loop;

  perform from workers w where w.worker_id = any (v_worker_ids) order by w.worker_id for update;
  update workers w set lost_at = now() where w.worker_id = any (v_worker_ids);
  delete from leases l where l.token = any (v_tokens);
  if v_job_ids <> '{}' then
    perform requeue_jobs(v_org_ids, v_job_ids, v_attempts, v_suspects);
    perform record_events(v_org_ids, v_job_ids, '{ready}', v_attempts, '{worker_lost}');
  end if;
  perform release_dependents('{}', v_failed);
end
$$;

create or replace function last_execution(p_org uuid, p_job uuid) returns table (outcome text, worker_id text)
language sql stable rows 1
-- The last attempt that did not finish the job. Attempts that were given back say nothing about the job.
begin atomic
  select a.outcome, a.worker_id
  from attempts a
  where a.org_id = p_org
    and a.job_id = p_job
    and a.outcome <> 'given_back'
  order by a.id desc
  limit 1;
end;

create or replace function acquit_suspects(p_tokens bigint[]) returns text[]
language plpgsql
as $$
-- If the job of one of these leases ran alone, it is the cause. The suspects that were lost together with it before no
-- longer have to run alone. Returns their types.
declare
  v_worker_ids text[] := array(
    select before.worker_id
    from held_jobs h
    cross join lateral last_execution(h.org_id, h.job_id) before
    where h.token = any (p_tokens)
      and h.alone
  );
  v_types text[];
begin
  if v_worker_ids = '{}' then return '{}'; end if;

  with acquitted as (
    update ready_jobs r
    set lane = r.lane - 20000, key = nextval('ready_keys')
    from (
      select s.org_id, s.job_id
      from ready_jobs s
      cross join lateral last_execution(s.org_id, s.job_id) before
      where s.lane >= 15000
        and before.worker_id = any (v_worker_ids)
      -- Not `for update`: a suspect that lock_parents has locked is acquitted too.
      for no key update of s skip locked
    ) cleared
    where r.org_id = cleared.org_id
      and r.job_id = cleared.job_id
    returning r.type
  )
  select coalesce(array_agg(distinct a.type), '{}') into v_types from acquitted a;
  return v_types;
end
$$;

grant execute on function reclaim_expired_leases to smartqueue_workers;
