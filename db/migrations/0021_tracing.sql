-- Traces go on in the workers: where each job was submitted in one.

alter table jobs add column traceparent text;
-- Not valid: no row has one yet, and to look at all of them would keep everybody from their jobs meanwhile. New ones are checked.
alter table jobs add constraint jobs_traceparent check (char_length(traceparent) <= 128) not valid;
comment on column jobs.traceparent is
  'The span in which the job was submitted, as W3C Trace Context writes it. Null: nobody traces it.';

comment on index attempts_by_job is 'Serves list-attempts and executions_of.';

create function executions_of(in_orgs uuid[], of_jobs uuid[]) returns json
language sql stable
-- How often each job was executed before, by its id. A function and no subquery: it costs a claim nothing unless some job
-- is traced.
begin atomic
  select json_object_agg(job_id, executions)
  from (
    select job_id, count(*) as executions
    from attempts
    where org_id = any (in_orgs)
      and job_id = any (of_jobs)
    group by job_id
  ) earlier;
end;

create or replace view job_overview with (security_invoker = true) as
select
  j.id,
  j.org_id,
  j.created_by,
  j.stream_id,
  j.type,
  j.name,
  j.payload,
  j.priority,
  j.tags,
  j.timeout_seconds,
  j.max_attempts,
  j.initial_delay_seconds,
  j.backoff_multiplier,
  j.cpu_units,
  j.memory_mb,
  j.run_at,
  j.deadline,
  j.on_parent_failure,
  j.predicted_ms,
  j.predicted_p90_ms,
  j.prediction_source,
  j.model_version,
  j.rank_base + j.rank_slope * ln(j.predicted_ms) as rank,
  j.created_at,
  case
    when f.job_id is not null then f.state
    when w.job_id is not null then w.state
    when r.job_id is not null then 'ready'::job_state
    when b.job_id is not null then 'blocked'::job_state
    when l.started_at is not null then 'running'::job_state
    when l.token is not null then 'ready'::job_state
  end as status,
  coalesce(
    f.attempts, w.attempts, r.attempts, case when l.started_at is null then l.attempt - 1 else l.attempt end, 0
  ) as attempts,
  case when f.job_id is not null then f.worker_id when w.job_id is null and r.job_id is null and l.started_at is not null then l.worker_id end as worker_id,
  case when f.job_id is not null then f.started_at when w.job_id is null and r.job_id is null then l.started_at end as started_at,
  f.finished_at,
  f.runtime_ms,
  f.result,
  coalesce(f.error, w.error) as error,
  p.progress,
  p.note as progress_note,
  j.predicted_p99_ms,
  j.promised_wait_ms,
  j.callback_url,
  j.triggered_by,
  j.traceparent
from jobs j
left join finished_jobs f on f.org_id = j.org_id and f.job_id = j.id
left join waiting_jobs w on w.job_id = j.id
left join ready_jobs r on r.org_id = j.org_id and r.job_id = j.id
left join blocked_jobs b on b.job_id = j.id
left join lateral (
  select o.token, o.worker_id, o.attempts[n] as attempt, o.started_ats[n] as started_at
  from leases o
  cross join lateral array_position(o.job_ids, j.id) as n
  where n is not null
    -- Not even looked for where the status is known without.
    and coalesce(f.job_id, w.job_id, r.job_id, b.job_id) is null
  order by o.token desc
  limit 1
) l on true
left join job_progress p on p.job_id = j.id;
