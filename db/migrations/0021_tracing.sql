-- Traces go on in the workers: where each job was submitted in one.

alter table jobs add column traceparent text;
alter table jobs add constraint jobs_traceparent check (char_length(traceparent) <= 128);
comment on column jobs.traceparent is
  'The span in which the job was submitted, as W3C Trace Context writes it. Null: nobody traces it.';
