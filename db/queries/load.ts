/** Unannounced work by the minute, which analytics-rollup.ts adds up, and the forecast of it. */
import type { Query } from '../query.ts'

export type LoadRow = {
  /** Since 1970, of the database's clock: the first minute that is not over, or not yet added up. */
  end_minute: number
  /** How far the minute is that is not over. */
  seconds_into: number
  /** Those in which something came, and how much. */
  minutes: number[]
  work_ms: number[]
}

/**
 * Past minutes from `sinceMinute` on; null: all that are kept. Always one row. Minutes that are not rolled up yet are
 * left out, because they would look idle.
 */
export const readLoad = (sinceMinute: number | null): Query<LoadRow> => ({
  name: 'read-load',
  text: `
    with ended as materialized (
      select floor(extract(epoch from least(now(), smartqueue.first_uncounted_at())) / 60)::int as minute
    )
    select
      (select minute from ended) as end_minute, extract(second from now())::double precision as seconds_into,
      coalesce(array_agg((extract(epoch from at) / 60)::int order by at), '{}') as minutes,
      coalesce(array_agg(work_ms order by at), '{}') as work_ms
    from smartqueue.load_minutes
    -- Four weeks to compare with, and the one that is compared.
    where at >= greatest(now() - interval '5 weeks', to_timestamp(60 * $1::double precision))
      and at < to_timestamp(60 * (select minute from ended)::double precision)`,
  values: [sinceMinute],
})

/** What a forecaster of an earlier term has left, in base64. No row: the term is over. */
export const recallForecaster = (term: string): Query<{ forecaster: string | null }> => ({
  name: 'recall-forecaster',
  text: `
    select (select encode(weights, 'base64') from smartqueue.load_forecasts) as forecaster
    where (select smartqueue.in_term($1::bigint))`,
  values: [term],
})

/** Stores the newest forecast beside its forecaster. No row: the term is over, or no forecaster is stored. */
export const storeForecast = (forecast: {
  term: string
  /** The first of the minutes ahead. */
  fromMinute: number
  p50Ms: readonly number[]
  p90Ms: readonly number[]
}): Query<{ made_at: string }> => ({
  name: 'store-forecast',
  text: `
    update smartqueue.load_forecasts
    set
      made_at = now(), from_at = to_timestamp(60 * $2::double precision), p50_ms = $3::double precision[],
      p90_ms = $4::double precision[]
    where (select smartqueue.in_term($1::bigint))
    returning made_at`,
  values: [forecast.term, forecast.fromMinute, forecast.p50Ms, forecast.p90Ms],
})

/** Stores a trained forecaster, which a forecast follows. No row: the term is over. */
export const storeForecaster = (trained: {
  term: string
  unusableBecause: string | null
  evaluation: object
  /** In base64. Null: there is nothing yet to forecast with. */
  forecaster: string | null
}): Query<{ made_at: string }> => ({
  name: 'store-forecaster',
  text: `
    insert into smartqueue.load_forecasts (unusable_because, evaluation, weights)
    select $2::text, $3::text::jsonb, decode($4::text, 'base64')
    where (select smartqueue.in_term($1::bigint))
    on conflict (only_row) do update
    set unusable_because = excluded.unusable_because, evaluation = excluded.evaluation, weights = excluded.weights
    returning made_at`,
  values: [trained.term, trained.unusableBecause, JSON.stringify(trained.evaluation), trained.forecaster],
})
