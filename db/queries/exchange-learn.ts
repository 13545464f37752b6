import { LEAST_LOG, MOVED_LOG } from '../rules/estimate.ts'

const MOVED = MOVED_LOG.toFixed(3)

const flushTiny = (column: string): string =>
  `case when abs(${column}) >= ${LEAST_LOG} then ${column} when ${column} is not null then 0 end`

const SERIES = `
            select
              s.runs, ${flushTiny('s.mean_log')} as mean_log, s.deviation_log, ${flushTiny('s.drift_log')} as drift_log`

/** An estimate with a sample of `m` executions folded in; with none it stays what it is. */
const fold = (estimate: string, sample: (estimate: string) => string, narrows: boolean): string => `
          select
            runs + m as runs,
            case when m = 0 then mean_log when runs = 0 then log else mean_log + step * surprise end as mean_log,
            case
              when m = 0 then deviation_log
              when runs = 0 then 0.5
              else greatest(
                deviation_log + step * (abs(surprise) + spread - deviation_log), ${narrows ? '0.01' : 'deviation_log'}
              )
            end as deviation_log,
            case
              when runs = 0 then drift_log
              else drift_log + (1 - 0.8::double precision ^ m) * (surprise - drift_log)
            end as drift_log
          from (
            select
              e.*, x.*,
              case when m > 0 then greatest(1 - 0.9::double precision ^ m, m / (e.runs + m)) end as step,
              least(
                greatest(log - mean_log, -greatest(0.3, 3 * deviation_log)), greatest(0.3, 3 * deviation_log)
              ) as surprise
            from (${estimate}) e
            cross join lateral (${sample('e')}) x
          ) weighed`

const completed = (): string => `
              select (:sample_runs!)[n] as m, (:sample_means!)[n] as log, (:sample_spreads!)[n] as spread
              from array_position(:sample_series!, s.id) as n`

/** At least as long as it ran, and if that is less than the mean, the mean. A series without runs learns nothing of it. */
const timedOut = (estimate: string): string => `
              select
                count(*)::double precision as m, coalesce(avg(bound), 0) as log,
                coalesce(avg(abs(bound - middle)), 0) as spread
              from (
                select bound, avg(bound) over () as middle
                from (
                  select greatest((:timeout_logs!)[n], ${estimate}.mean_log) as bound
                  from generate_series(1, cardinality(:timeout_series!)) as n
                  where (:timeout_series!)[n] = s.id
                    and ${estimate}.runs > 0
                ) bounds
              ) around`

/** Series learn from what completed and from what timed out, if the condition holds. db/rules/estimate.ts says how. */
export const learnWhere = (condition: string, timeouts: boolean): string => {
  const once = fold(SERIES, completed, true)
  return `
    learned as (
      update smartqueue.series s
      set
        (runs, mean_log, deviation_log, drift_log, moved) = (
          select
            runs, mean_log, deviation_log, drift_log,
            mean_log is not null and (s.scored_log is null or abs(mean_log - s.scored_log) > ${MOVED})
          from (${timeouts ? fold(once, timedOut, false) : once}
          ) folded
        )
      where s.id = any (:sample_series!)
        and ${condition}
    )`
}
