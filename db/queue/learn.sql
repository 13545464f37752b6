-- What a series learns from attempts that ended together. functions/prediction/estimate.ts is the same
-- rule in TypeScript, for backtests; a test holds the two together. All values are natural logarithms of milliseconds.

create or replace function sample_of(p_logs double precision[])
returns table (runs double precision, log double precision, spread double precision)
language sql immutable parallel safe
-- How many runs, their mean, and how far they lie around it on average.
begin atomic
  select count(*)::double precision, coalesce(max(middle.log), 0), coalesce(avg(abs(l.log - middle.log)), 0)
  from (select avg(l.log) as log from unnest(p_logs) as l (log)) as middle
  left join unnest(p_logs) as l (log) on true
  where l.log is not null;
end;

create or replace function fold_sample(
  p_runs double precision,
  p_mean_log double precision,
  p_deviation_log double precision,
  p_drift_log double precision,
  p_sample_runs double precision,
  p_sample_log double precision,
  p_sample_spread double precision,
  p_least_deviation double precision
) returns table (runs double precision, mean_log double precision, deviation_log double precision, drift_log double precision)
language sql immutable parallel safe
-- Moves an estimate towards a sample by max(1 − 0.9^m, m / (n + m)); a single wild run moves the mean by three deviations
-- at most. The drift is how far the newest runs lay from the mean. The deviation is never below p_least_deviation.
begin atomic
  select
    p_runs + p_sample_runs,
    case
      when p_sample_runs = 0 then p_mean_log
      when p_runs = 0 then p_sample_log
      else p_mean_log + e.step * e.surprise
    end,
    case
      when p_sample_runs = 0 then p_deviation_log
      when p_runs = 0 then 0.5
      else greatest(p_deviation_log + e.step * (abs(e.surprise) + p_sample_spread - p_deviation_log), p_least_deviation)
    end,
    case
      when p_runs = 0 then p_drift_log
      else p_drift_log + (1 - 0.8::double precision ^ p_sample_runs) * (e.surprise - p_drift_log)
    end
  from (
    select
      greatest(
        1 - 0.9::double precision ^ p_sample_runs, p_sample_runs / nullif(p_runs + p_sample_runs, 0)
      ) as step,
      least(
        greatest(p_sample_log - p_mean_log, -greatest(0.3, 3 * p_deviation_log)), greatest(0.3, 3 * p_deviation_log)
      ) as surprise
  ) as e;
end;

create or replace function without_tiny(p_log double precision) returns double precision
language sql immutable parallel safe
-- Postgres refuses arithmetic that underflows, and a decaying mean gets there.
return case when abs(p_log) >= 1e-9 then p_log when p_log is not null then 0 end;

create or replace function learn_from_runs(
  p_sample_series bigint[],
  p_sample_runs double precision[],
  p_sample_logs double precision[],
  p_sample_spreads double precision[],
  p_timeout_series bigint[],
  p_timeout_logs double precision[]
) returns void
language plpgsql
set search_path = pg_catalog, smartqueue, pg_temp
as $$
-- A series learns first from completed runs, which the worker has summed up, and then from those that timed out. A timed-out
-- run would have taken at least as long as it did: where that is less than the mean it counts as the mean, and it never
-- narrows the spread. A series that has never completed learns nothing from it.
begin
  update series s
  set (runs, mean_log, deviation_log, drift_log, moved) = (
    select
      b.runs, b.mean_log, b.deviation_log, b.drift_log,
      -- Half as long again, or two thirds: the queued jobs of the series are scored again.
      b.mean_log is not null and (s.scored_log is null or abs(b.mean_log - s.scored_log) > ln(1.5::double precision))
    from array_position(p_sample_series, s.id) as n
    cross join lateral fold_sample(
      s.runs, without_tiny(s.mean_log), s.deviation_log, without_tiny(s.drift_log), p_sample_runs[n], p_sample_logs[n],
      p_sample_spreads[n], 0.01
    ) as a
    cross join lateral sample_of(
      array(
        select greatest(p_timeout_logs[t], a.mean_log)
        from generate_series(1, cardinality(p_timeout_series)) as t
        where p_timeout_series[t] = s.id
          and a.runs > 0
      )
    ) as late
    cross join lateral fold_sample(
      a.runs, a.mean_log, a.deviation_log, a.drift_log, late.runs, late.log, late.spread, a.deviation_log
    ) as b
  )
  -- Read by the index, so that everyone locks series in the order of their ids.
  where s.id = any (p_sample_series);
end
$$;
