-- Before the wall is put up: under row-level security an index serves only conditions that cannot leak, and comparisons of
-- enums could. So states become predicates of indexes.

drop index finished_jobs_unsuccessful;
create index finished_jobs_failed on finished_jobs (org_id, job_id) where state = 'failed';
comment on index finished_jobs_failed is 'Serves list-jobs by status failed.';
create index finished_jobs_cancelled on finished_jobs (org_id, job_id) where state = 'cancelled';
comment on index finished_jobs_cancelled is 'Serves list-jobs by status cancelled.';

drop index waiting_jobs_by_org;
create index waiting_jobs_pending on waiting_jobs (org_id, job_id) where state = 'pending';
comment on index waiting_jobs_pending is 'Serves list-jobs by status pending, next to organisations with many.';
create index waiting_jobs_retrying on waiting_jobs (org_id, job_id) where state = 'retrying';
comment on index waiting_jobs_retrying is 'Serves list-jobs by status retrying, next to organisations with many.';
