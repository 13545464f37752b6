-- Indexes whose entries are never equal: to look for equal ones whenever a page is full is for nothing.
alter index ready_jobs_order set (deduplicate_items = off);
alter index ready_jobs_age set (deduplicate_items = off);

-- A stream belongs to one organisation.
drop index jobs_by_stream;
create index jobs_by_stream on jobs (stream_id, id) with (deduplicate_items = off);
comment on index jobs_by_stream is 'Serves list-jobs by type and by name.';
