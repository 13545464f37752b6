-- Events of one organisation in the order of their commits, for its stream.

create index job_event_groups_of_org on job_event_groups (org_id, xid, id) where xid is not null;
comment on index job_event_groups_of_org is 'Serves read-stream.';
