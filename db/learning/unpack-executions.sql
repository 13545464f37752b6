create or replace function unpack_executions(p_groups executions[], p_limit integer)
returns table (
  n bigint, place bigint, xid text, id text, outcome text, ended_at_s double precision, org_id uuid, series_id text,
  type text, ran_ms real, sample text, source text
)
language sql stable
-- One row per execution: `n` is the position of its group in the array, `place` its position in the group. `p_limit`
-- bounds the number of rows, but the last group is never cut.
begin atomic
  select
    g.n, a.place, g.xid::text, g.id::text, g.outcome, extract(epoch from g.at)::double precision, g.org_id,
    g.series_id::text, s.type, a.ran_ms, encode(j.sample, 'base64'), j.prediction_source
  from (
    select u.*, sum(cardinality(u.job_ids)) over (order by u.n) - cardinality(u.job_ids) as before
    from unnest(p_groups) with ordinality as u (xid, id, org_id, series_id, at, outcome, job_ids, ran_ms, n)
  ) g
  cross join lateral unnest(g.job_ids, g.ran_ms) with ordinality as a (job_id, ran_ms, place)
  left join series s on s.id = g.series_id
  left join jobs j on j.org_id = g.org_id and j.id = a.job_id
  where g.before < p_limit;
end;

grant execute on function unpack_executions to smartqueue_workers;
