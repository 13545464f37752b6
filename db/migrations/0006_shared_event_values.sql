-- Events of jobs that have much in common: what they share is written once.

alter table job_event_groups
  add column ran_ms double precision[] not null default '{}',
  alter column ran_ms set storage external;

comment on table job_event_groups is
  'Transitions of an organisation''s jobs, written by the statement that makes them: one row for all of a statement.
An array with one value speaks for all jobs, an empty one means: no reason, or the time of the row.';
comment on column job_event_groups.ran_ms is
  'Of jobs whose start is told together with their end: how long before the end it was.';

create or replace view job_events as
select
  g.id, n::bigint as position, g.org_id, g.job_ids[n] as job_id, 'running'::job_state as state,
  g.attempts[least(n, cardinality(g.attempts))] as attempt, null as reason,
  g.at - g.ran_ms[n] * interval '1 millisecond' as at
from job_event_groups g
cross join lateral generate_series(1, cardinality(g.ran_ms)) as n
union all
select
  g.id, n::bigint + cardinality(g.ran_ms), g.org_id, g.job_ids[n], g.states[least(n, cardinality(g.states))],
  g.attempts[least(n, cardinality(g.attempts))], g.reasons[least(n, cardinality(g.reasons))],
  coalesce(g.ats[least(n, cardinality(g.ats))], g.at)
from job_event_groups g
cross join lateral generate_series(1, cardinality(g.job_ids)) as n;
comment on view job_events is 'One row for each transition of a job.';
