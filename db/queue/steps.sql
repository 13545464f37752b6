-- Steps that transitions share. Only they insert into finished_jobs, ready_jobs and job_event_groups, with two
-- exceptions: submit_jobs and submit_mixed insert new jobs into ready_jobs, and submit_jobs also writes their event
-- row. Only drop_from_leases removes jobs from a lease.
--
-- Parameters are parallel arrays with one value per job. A single value applies to all jobs (in finish_jobs only where
-- jobs often share it: organisation, series, attempts and worker), and an empty array means null. Elements are read by
-- index over generate_series, because unnest of many arrays copies each of them once more: measured at 25 % of a
-- drain. The functions are plpgsql, so that their plans stay cached in the session. Only transitions call them, as the
-- owner.
--
-- They take no locks. The caller has locked the rows that the jobs come from, so a job is never in two places.
--
-- Transitions set plan_cache_mode = force_generic_plan, and the steps inherit it. Otherwise the planner notices that
-- the cost depends on the number of jobs and plans every call anew. They also set enable_seqscan = off where they look
-- rows up by key: a plan made while a table was empty must still be right when it is full.
--
-- Measured with Postgres 18 for 1 job and for 600 (the same insert written out with constants): finish_jobs 35 and
-- 1,790 µs (21 and 1,470), record_events 16 and 35 µs (12 and 29), drop_from_leases 27 and 310 µs.

create or replace function nth(p_values anyarray, p_n integer) returns anyelement
language sql immutable parallel safe
-- The value for job n. Postgres inlines it into the calling query.
as 'select p_values[least(p_n, cardinality(p_values))]';

create or replace function jobs_of(p_org_ids uuid[], p_job_ids uuid[]) returns setof jobs
language sql stable
-- One scan of the primary key for each organisation. With `org_id = any (…) and id = any (…)`, Postgres 18 may skip
-- through jobs_by_series instead: one search for each job in each series.
begin atomic
  select j.*
  from (
    select coalesce(u.org_id, p_org_ids[1]) as org_id, array_agg(u.job_id) as job_ids
    from unnest(p_org_ids, p_job_ids) as u (org_id, job_id)
    group by 1
  ) as g
  cross join lateral (select o.* from jobs o where o.org_id = g.org_id and o.id = any (g.job_ids)) as j;
end;

create or replace function requeue_jobs(
  p_org_ids uuid[],
  p_job_ids uuid[],
  p_attempts integer[],
  p_alone boolean[] default '{f}'
) returns table (job_id uuid, type text)
language plpgsql
as $$
-- Makes jobs that were submitted earlier ready, at the end of the lane of the newest estimate of their series. A job
-- that must run alone goes to a lane that ordinary claims do not read. Returns the types, for the wake-up.
begin
  return query
  insert into ready_jobs as r (
    org_id, job_id, series_id, type, flow, lane, attempts, cpu_units, memory_mb, predicted_ms, start_by
  )
  select
    q.org_id, q.job_id, q.series_id, q.type, q.flow, q.lane + case when nth(p_alone, n) then 20000 else 0 end,
    nth(p_attempts, n), q.cpu_units, q.memory_mb, q.predicted_ms, q.start_by
  from generate_series(1, cardinality(p_job_ids)) as n
  -- A subquery of its own: one key lookup per job in both tables. A plan for any number of jobs might scan them.
  cross join lateral (
    select e.*
    from queue_entries e
    where e.org_id = nth(p_org_ids, n)
      and e.job_id = p_job_ids[n]
    offset 0
  ) q
  returning r.job_id, r.type;
end
$$;

create or replace function finish_jobs(
  p_state job_state,
  p_org_ids uuid[],
  p_job_ids uuid[],
  p_series_ids bigint[],
  p_attempts integer[],
  p_worker_ids text[] default '{}',
  p_started_ats timestamptz[] default '{}',
  p_runtimes_ms double precision[] default '{}',
  p_results jsonb[] default '{}',
  p_errors jsonb[] default '{}'
) returns void
language plpgsql
as $$
-- Without p_started_ats, an attempt started p_runtimes_ms ago.
declare
  v_org_id constant uuid := case when cardinality(p_org_ids) = 1 then p_org_ids[1] end;
  v_series_id constant bigint := case when cardinality(p_series_ids) = 1 then p_series_ids[1] end;
  v_attempts constant integer := case when cardinality(p_attempts) = 1 then p_attempts[1] end;
  v_worker_id constant text := case when cardinality(p_worker_ids) = 1 then p_worker_ids[1] end;
begin
  insert into finished_jobs (
    org_id, job_id, series_id, state, attempts, result, error, fingerprint, worker_id, started_at, runtime_ms
  )
  select
    coalesce(v_org_id, p_org_ids[n]), p_job_ids[n], coalesce(v_series_id, p_series_ids[n]), p_state,
    coalesce(v_attempts, p_attempts[n]), p_results[n], p_errors[n],
    case when p_errors[n] is not null then error_fingerprint(p_errors[n]) end, coalesce(v_worker_id, p_worker_ids[n]),
    coalesce(p_started_ats[n], now() - p_runtimes_ms[n] * interval '1 millisecond'), p_runtimes_ms[n]
  from generate_series(1, cardinality(p_job_ids)) as n;
end
$$;

create or replace function record_events(
  p_org_ids uuid[],
  p_job_ids uuid[],
  p_states job_state[],
  p_attempts integer[],
  p_reasons text[] default '{}',
  p_ats timestamptz[] default array[now()]
) returns void
language plpgsql
as $$
-- Writes one row per organisation. If there is only one, its row stores the arrays as given. Only a submission leaves
-- the times empty, which is how the rollups distinguish it from other transitions.
begin
  if p_org_ids[1] = all (p_org_ids) then
    insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
    values (p_org_ids[1], p_job_ids, p_states, p_attempts, p_reasons, p_ats);
  else
    insert into job_event_groups (org_id, job_ids, states, attempts, reasons, ats)
    select
      p_org_ids[n], array_agg(p_job_ids[n] order by n),
      case when cardinality(p_states) > 1 then array_agg(p_states[n] order by n) else p_states end,
      case when cardinality(p_attempts) > 1 then array_agg(p_attempts[n] order by n) else p_attempts end,
      case when cardinality(p_reasons) > 1 then array_agg(p_reasons[n] order by n) else p_reasons end,
      p_ats
    from generate_series(1, cardinality(p_org_ids)) as n
    group by p_org_ids[n];
  end if;
end
$$;

create or replace function drop_from_leases(p_tokens bigint[], p_job_ids uuid[]) returns void
language plpgsql
as $$
-- The caller has locked the leases by token. Here unnest is cheaper: a long array is stored out of line (TOAST), and
-- would be fetched again for each element.
begin
  update leases l
  set (job_ids, org_ids, attempts) = (
    select
      coalesce(array_agg(h.job_id order by n), '{}'), coalesce(array_agg(h.org_id order by n), '{}'),
      coalesce(array_agg(h.attempt order by n), '{}')
    from unnest(l.job_ids, l.org_ids, l.attempts) with ordinality as h (job_id, org_id, attempt, n)
    where h.job_id not in (select unnest(p_job_ids))
  )
  where l.token = any (p_tokens);
end
$$;
