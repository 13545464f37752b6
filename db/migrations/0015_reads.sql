-- Job details: what GET /jobs/{id} shows.

create view job_details with (security_invoker = true) as
select
  s.*, j.payload, j.traceparent, f.result,
  array(select d.parent_id from job_dependencies d where d.child_id = j.id order by d.parent_id) as depends_on
from job_summaries s
join jobs j on j.org_id = s.org_id and j.id = s.id
left join finished_jobs f on f.org_id = s.org_id and f.job_id = s.id;
comment on view job_details is 'Jobs as GET /jobs/{id} shows them.';

grant select on job_details to smartqueue_functions, smartqueue_workers;
