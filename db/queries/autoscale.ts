import type { Query } from '../query.ts'
import { type ExpectedLoad, type ScalingSettings, scalingSignal } from '../rules/autoscale.ts'

/** What the number of workers is decided by. */
export type ScalingState = ExpectedLoad &
  ScalingSettings & {
    forecast_p90_seconds: number | null
    no_forecast_because: string | null
    workers: number
  }

export type AutoscaleRow = ScalingState & { taken_at: string; age_seconds: number }

/** The leader takes a snapshot every five seconds. After this long there is none that anything may be scaled by. */
export const STALE_SECONDS = 30

/** The newest snapshot, however old. No row: there has never been a leader. */
export const readAutoscale = (): Query<AutoscaleRow> => ({
  name: 'read-autoscale',
  text: `
    select
      taken_at, extract(epoch from clock_timestamp() - taken_at)::double precision as age_seconds,
      queued_seconds, running_seconds, arriving_per_second, scheduled_seconds, forecast_p50_seconds,
      forecast_p90_seconds, no_forecast_because, workers, slots_per_worker, drain_goal_seconds, lead_seconds,
      min_workers, max_workers
    from smartqueue.autoscale_snapshots`,
  values: [],
})

/** What `/autoscale` answers, of the functions and of the controller in the cluster. */
export const viewAutoscale = (row: AutoscaleRow) => {
  const { desired, B, R, F, T, needed } = scalingSignal(row)
  return {
    desired,
    B: round(B),
    R: round(R),
    F: round(F),
    T: round(T),
    needed: { B: round(needed.B), R: round(needed.R), F: round(needed.F) },
    workers: row.workers,
    min_workers: row.min_workers,
    max_workers: row.max_workers,
    forecast: {
      p50_seconds: row.forecast_p50_seconds && round(row.forecast_p50_seconds),
      p90_seconds: row.forecast_p90_seconds && round(row.forecast_p90_seconds),
      unused_because: row.no_forecast_because,
      scheduled_seconds: round(row.scheduled_seconds),
      lead_seconds: row.lead_seconds,
    },
    drain_goal_seconds: row.drain_goal_seconds,
    taken_at: row.taken_at,
    age_seconds: round(row.age_seconds),
  }
}

/** To a millisecond: what is beyond it is noise. */
const round = (value: number): number => Math.round(value * 1_000) / 1_000
