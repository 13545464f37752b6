-- What may stand in a job is said by the types of its columns.

-- Checked types and not checks of the table: what a thousand jobs have in common is then checked once, not a thousand
-- times, and a check of a table is parsed anew by each statement.
create domain job_name as text constraint job_name_length check (char_length(value) between 1 and 200);
create domain payload_object as jsonb constraint payload_object_is_one check (jsonb_typeof(value) = 'object');
create domain job_priority as text constraint job_priority_is_known check (value in ('critical', 'high', 'normal', 'low'));
create domain parent_failure_rule as text constraint parent_failure_rule_is_known check (value in ('fail', 'wait'));
create domain prediction_source as text
  constraint prediction_source_is_known check (value in ('lstm', 'stream', 'type', 'default'));
create domain positive_integer as integer constraint positive_integer_is_positive check (value > 0);
create domain unsigned_integer as integer constraint unsigned_integer_is_not_negative check (value >= 0);
create domain unsigned_real as real constraint unsigned_real_is_not_negative check (value >= 0);
create domain unsigned_double as double precision constraint unsigned_double_is_not_negative check (value >= 0);
create domain growth_factor as double precision constraint growth_factor_grows check (value >= 1);

drop view job_overview;
drop view queue_entries;

alter table jobs
  drop constraint jobs_name_length,
  drop constraint jobs_payload_object,
  drop constraint jobs_priority,
  drop constraint jobs_timeout_positive,
  drop constraint jobs_max_attempts_positive,
  drop constraint jobs_initial_delay_not_negative,
  drop constraint jobs_backoff_multiplier_grows,
  drop constraint jobs_cpu_units_not_negative,
  drop constraint jobs_memory_not_negative,
  drop constraint jobs_on_parent_failure,
  drop constraint jobs_prediction_source,
  alter column name type job_name,
  alter column payload type payload_object,
  alter column priority type job_priority,
  alter column timeout_seconds type positive_integer,
  alter column max_attempts type positive_integer,
  alter column initial_delay_seconds type unsigned_double,
  alter column backoff_multiplier type growth_factor,
  alter column cpu_units type unsigned_real,
  alter column memory_mb type unsigned_integer,
  alter column on_parent_failure type parent_failure_rule,
  alter column prediction_source type prediction_source;

create view queue_entries as
select
  j.id as job_id,
  j.org_id,
  j.stream_id,
  j.type,
  lane_of(j.rank_base + j.rank_slope * coalesce(s.mean_log, ln(j.predicted_ms))) as lane,
  j.cpu_units,
  j.memory_mb,
  j.predicted_ms::real as predicted_ms,
  j.deadline - j.predicted_p90_ms * interval '1 millisecond' as start_by,
  j.run_at
from jobs j
join streams s on s.id = j.stream_id;
comment on view queue_entries is 'How a job stands in ready_jobs if it becomes ready now.';

create view job_overview as
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
  p.note as progress_note
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
comment on view job_overview is 'Each job with its status: the one place that says which table means what.';
