/** Half as long again, or two thirds: then the queued jobs of a stream are scored again. */
const MOVED = Math.log(1.5).toFixed(3)

/** Streams learn from what completed, if the condition holds. db/rules/estimate.ts says how. */
export const learnWhere = (condition: string): string => `
    learned as (
      update streams s
      set
        (runs, mean_log, deviation_log, moved) = (
          select
            s.runs + m, mean_log, deviation_log,
            s.scored_log is null or abs(mean_log - s.scored_log) > ${MOVED}
          from (
            select
              m,
              case s.runs when 0 then log else s.mean_log + step * surprise end as mean_log,
              case s.runs
                when 0 then 0.5
                else greatest(s.deviation_log + step * (abs(surprise) + spread - s.deviation_log), 0.01)
              end as deviation_log
            from (
              select
                m, log, spread,
                greatest(1 - 0.9::double precision ^ m, m / (s.runs + m)) as step,
                least(
                  greatest(log - s.mean_log, -greatest(0.3, 3 * s.deviation_log)),
                  greatest(0.3, 3 * s.deviation_log)
                ) as surprise
              from (
                select
                  (:sample_runs!)[n] as m, (:sample_means!)[n] as log, (:sample_spreads!)[n] as spread
                from array_position(:sample_streams!, s.id) as n
              ) sample
            ) weighed
          ) folded
        )
      where s.id = any (:sample_streams!)
        and ${condition}
    )`
