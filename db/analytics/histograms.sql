-- Histograms with logarithmic buckets. functions/analytics/log-histogram.ts reads them.

create or replace function log_bucket(value double precision) returns integer
language sql immutable parallel safe
-- Bucket 1 holds values below 1, and bucket n starts at 2^((n - 2) / 4). The last starts at 2^30.
return case when value < 1 then 1 else least(2 + floor(4 * ln(value) / ln(2::double precision))::integer, 122) end;

create or replace function histogram_of(buckets integer[], counts bigint[]) returns bigint[]
language sql immutable parallel safe
-- Adds up the counts of buckets, which may repeat, to one count per bucket. Empty if there are none.
return array(
  select coalesce(sum(found.count), 0)::bigint
  from generate_series(1, (select max(one) from unnest(buckets) one)) bucket
  left join unnest(buckets, counts) as found (bucket, count) using (bucket)
  group by bucket
  order by bucket
);

create or replace function add_counts(a bigint[], b bigint[]) returns bigint[]
language sql immutable parallel safe
return array(
  select coalesce(one, 0) + coalesce(other, 0)
  from unnest(a, b) with ordinality as n (one, other, bucket)
  order by bucket
);

grant execute on function log_bucket, histogram_of, add_counts to smartqueue_workers;
