-- How a series learns from attempts that ended together. functions/prediction/estimate.ts implements the same rule in
-- TypeScript, for backtests; a test keeps the two equal. All values are natural logarithms of milliseconds.

create or replace function without_tiny(p_log double precision) returns double precision
language sql immutable parallel safe
-- Postgres raises an error if arithmetic underflows, which a decaying mean eventually does.
return case when abs(p_log) >= 1e-9 then p_log when p_log is not null then 0 end;

create or replace function fold_samples(
  p_series_ids bigint[],
  p_runs double precision[],
  p_logs double precision[],
  p_spreads double precision[],
  p_may_narrow boolean
) returns void
language plpgsql
as $$
-- Moves the estimate of each series towards its sample by max(1 − 0.9^m, m / (n + m)), where n runs were known and m
-- are new. No sample counts as more than three deviations from the mean. The drift is the newest runs' distance to it.
--
-- `offset 0` keeps the steps apart. Otherwise Postgres copies the expressions of a step to every place where the next
-- one uses them, and compiling those took 200 µs per call.
begin
  update series s
  set (runs, mean_log, deviation_log, drift_log, moved) = (
    select
      t.runs, t.mean_log, t.deviation_log, t.drift_log,
      -- A change by a factor of 1.5, up or down: the leader rescores the queued jobs of the series.
      t.mean_log is not null and (s.scored_log is null or abs(t.mean_log - s.scored_log) > ln(1.5::double precision))
    from (
      select
        e.n + e.m as runs,
        case when e.m = 0 then e.mean_log when e.n = 0 then e.log else e.mean_log + e.step * e.surprise end as mean_log,
        case
          when e.m = 0 then e.deviation_log
          when e.n = 0 then 0.5
          else
            greatest(
              e.deviation_log + e.step * (abs(e.surprise) + e.spread - e.deviation_log),
              case when p_may_narrow then 0.01 else e.deviation_log end
            )
        end as deviation_log,
        case
          when e.n = 0 then e.drift_log
          else e.drift_log + (1 - 0.8::double precision ^ e.m) * (e.surprise - e.drift_log)
        end as drift_log
      from (
        select
          b.*, greatest(1 - 0.9::double precision ^ b.m, b.m / nullif(b.n + b.m, 0)) as step,
          least(greatest(b.log - b.mean_log, -b.reach), b.reach) as surprise
        from (
          select
            s.runs as n, without_tiny(s.mean_log) as mean_log, s.deviation_log, without_tiny(s.drift_log) as drift_log,
            greatest(0.3, 3 * s.deviation_log) as reach, p_runs[i] as m, p_logs[i] as log, p_spreads[i] as spread
          from array_position(p_series_ids, s.id) as i
          offset 0
        ) as b
        offset 0
      ) as e
      offset 0
    ) as t
  )
  -- An index scan, so that every transaction locks series in the order of their ids.
  where s.id = any (p_series_ids);
end
$$;

create or replace function learn_from_runs(
  p_sample_series bigint[],
  p_sample_runs double precision[],
  p_sample_logs double precision[],
  p_sample_spreads double precision[],
  p_timeout_series bigint[],
  p_timeout_logs double precision[]
) returns void
language plpgsql
as $$
-- A series learns first from completed runs, which the worker has aggregated, and then from runs that timed out. These
-- are lower bounds: one below the mean counts as the mean, and it never narrows the spread. A series without completed
-- runs learns nothing from them.
declare
  v_series_ids bigint[];
  v_runs double precision[];
  v_logs double precision[];
  v_spreads double precision[];
begin
  perform fold_samples(p_sample_series, p_sample_runs, p_sample_logs, p_sample_spreads, true);
  if p_timeout_series = '{}' then return; end if;

  select array_agg(late.id), array_agg(late.runs), array_agg(late.log), array_agg(late.spread)
  into v_series_ids, v_runs, v_logs, v_spreads
  from (
    select b.id, count(*) as runs, min(b.middle) as log, avg(abs(b.log - b.middle)) as spread
    from (
      select
        s.id, greatest(t.log, s.mean_log) as log,
        avg(greatest(t.log, s.mean_log)) over (partition by s.id) as middle
      from unnest(p_timeout_series, p_timeout_logs) as t (series_id, log)
      join series s on s.id = t.series_id
      where s.runs > 0
    ) as b
    group by b.id
  ) as late;
  perform fold_samples(v_series_ids, v_runs, v_logs, v_spreads, false);
end
$$;
