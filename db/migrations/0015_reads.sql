-- What GET /jobs/{id} shows, which lists show without payloads and results.

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
  array(select d.parent_id from job_dependencies d where d.child_id = id order by d.parent_id) as depends_on
from job_overview;
comment on view job_details is 'Jobs as GET /jobs/{id} shows them.';

create or replace view job_summaries with (security_invoker = true) as
select
  id, org_id, created_by, triggered_by, callback_url, fairness_key, type, name, status, priority, rank, predicted_ms,
  predicted_p90_ms, prediction_source, model_version, cpu_units, memory_mb, tags, timeout_seconds, max_attempts,
  initial_delay_seconds, backoff_multiplier, run_at, deadline, deadline_at_risk, slow, on_parent_failure, attempts,
  worker_id, progress, progress_note, error, created_at, started_at, finished_at
from job_details;

grant select on job_details to smartqueue_functions, smartqueue_workers;
