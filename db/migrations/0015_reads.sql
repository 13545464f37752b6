-- Functions that run as the owner read these views, and then no policy hides the rows of others: every join names the
-- organisation.

create or replace view job_overview with (security_invoker = true) as
select
  j.id, j.org_id, j.created_by, j.series_id, j.type, j.name, j.payload, j.priority, j.tags, j.timeout_seconds,
  j.max_attempts, j.initial_delay_seconds, j.backoff_multiplier, j.cpu_units, j.memory_mb, j.run_at, j.deadline,
  j.on_parent_failure, j.predicted_ms, j.predicted_p90_ms, j.prediction_source, j.model_version,
  j.rank_base + j.rank_slope * ln(j.predicted_ms) as rank,
  j.created_at,
  case
    when f.job_id is not null then f.state
    when w.job_id is not null then w.state
    when r.job_id is not null then 'ready'::job_state
    when b.job_id is not null then 'blocked'::job_state
    when l.token is not null then 'running'::job_state
  end as status,
  coalesce(f.attempts, w.attempts, r.attempts, l.attempt, 0) as attempts,
  case when f.job_id is not null then f.worker_id else l.worker_id end as worker_id,
  case when f.job_id is not null then f.started_at else l.claimed_at end as started_at,
  f.finished_at, f.runtime_ms, f.result,
  coalesce(f.error, w.error) as error,
  p.progress, p.note as progress_note, j.predicted_p99_ms, j.promised_wait_ms, j.callback_url, j.triggered_by,
  j.traceparent, j.fairness_key
from jobs j
left join finished_jobs f on f.org_id = j.org_id and f.job_id = j.id
left join waiting_jobs w on w.org_id = j.org_id and w.job_id = j.id
left join ready_jobs r on r.org_id = j.org_id and r.job_id = j.id
left join blocked_jobs b on b.org_id = j.org_id and b.job_id = j.id
left join lateral (
  select o.token, o.worker_id, o.claimed_at, o.attempts[n] as attempt
  from leases o
  cross join lateral array_position(o.job_ids, j.id) as n
  where o.org_ids[n] = j.org_id
    -- Skips the lookup if another table already determines the status.
    and coalesce(f.job_id, w.job_id, r.job_id, b.job_id) is null
  order by o.token desc
  limit 1
) l on true
left join job_progress p on p.org_id = j.org_id and p.job_id = j.id;

-- A job as GET /jobs/{id} shows it. Lists omit the payload and the result.
create view job_details with (security_invoker = true) as
select
  id, org_id, created_by, triggered_by, callback_url, fairness_key, type, name, status, priority, rank, predicted_ms,
  predicted_p90_ms, prediction_source, model_version, cpu_units, memory_mb, tags, timeout_seconds, max_attempts,
  initial_delay_seconds, backoff_multiplier, run_at, deadline,
  -- Judged as at submission, by the 90th percentile, until the job has finished.
  coalesce(
    case
      when finished_at is not null then finished_at
      when started_at is not null then greatest(now(), started_at + predicted_p90_ms * interval '1 millisecond')
      else greatest(now(), run_at) + predicted_p90_ms * interval '1 millisecond'
    end > deadline,
    false
  ) as deadline_at_risk,
  coalesce(
    status = 'running' and started_at + greatest(predicted_p99_ms, 1000) * interval '1 millisecond' < now()
      and predicted_p99_ms is not null,
    false
  ) as slow,
  on_parent_failure, attempts, worker_id, progress, progress_note, error, created_at, started_at, finished_at,
  payload, traceparent, result,
  array(
    select d.parent_id
    from job_dependencies d
    where d.org_id = o.org_id
      and d.child_id = o.id
    order by d.parent_id
  ) as depends_on
from job_overview o;
comment on view job_details is 'Jobs as GET /jobs/{id} shows them.';

create or replace view job_summaries with (security_invoker = true) as
select
  id, org_id, created_by, triggered_by, callback_url, fairness_key, type, name, status, priority, rank, predicted_ms,
  predicted_p90_ms, prediction_source, model_version, cpu_units, memory_mb, tags, timeout_seconds, max_attempts,
  initial_delay_seconds, backoff_multiplier, run_at, deadline, deadline_at_risk, slow, on_parent_failure, attempts,
  worker_id, progress, progress_note, error, created_at, started_at, finished_at
from job_details;

grant select on job_details to smartqueue_functions, smartqueue_workers;
