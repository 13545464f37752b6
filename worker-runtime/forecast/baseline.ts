/**
 * The baseline: the simple forecasts together, the better ones first. What the network says is a correction of it, in units of
 * its ordinary error, so that one that says 0 says the baseline, and the scale of the load does not matter.
 */
import type { Horizon } from './horizon.ts'
import type { Calendar, LoadSeries } from './load-series.ts'
import { createLogScale, type LogScale } from './log-scale.ts'
import { createSimpleForecasts, LEVELS, NAMES, type SimpleForecasts } from './simple-forecasts.ts'

/** What was found out about a series when it was begun with. Plain data. */
export type BaselineFit = {
  /** Of the logarithmic scale. */
  unitMs: number
  /** What each simple forecast counts, in the order of their names. */
  mix: number[]
  /** Its ordinary error, by span. */
  scales: number[]
  /** How much more than it nine of ten come to at most, by span, in units of that error. */
  p90s: number[]
  /** The level that was closest: what it takes no forecast to know. */
  steady: number
}

export type Baseline = {
  readonly simple: SimpleForecasts
  readonly scale: LogScale
  /** The combined log, from the simple forecasts at hand. */
  combine(simple: Float64Array): number
}

/** Origins that are looked at for a statistic. */
const SAMPLED = 3_000
/** How fast a simple forecast counts less with its error: one with a tenth more counts half. */
const SHARPNESS = 8
/** The scale is linear below so much of the ordinary work of a minute. */
const UNIT_SHARE = 0.5
/** An ordinary error is never so small that a float could not hold what is extraordinary. */
const LEAST_SCALE = 1e-3
/** Beyond these an error of a simple forecast says no more, and its power could not be told any more. */
const LEAST_ERROR = 1e-3
const MOST_ERROR = 1e3

export const createBaseline = (
  { values }: LoadSeries,
  fit: Pick<BaselineFit, 'unitMs' | 'mix'>,
  { horizon, calendar }: { horizon: Horizon; calendar: Calendar },
): Baseline => {
  const scale = createLogScale(fit.unitMs)
  const simple = createSimpleForecasts({ values, calendar, scale, spans: horizon.spans })
  return {
    simple,
    scale,
    combine: (forecasts) => {
      let [sum, weight] = [0, 0]
      for (const [n, share] of fit.mix.entries()) {
        const forecast = forecasts[n] as number
        if (Number.isNaN(forecast)) continue
        sum += share * forecast
        weight += share
      }
      return weight > 0 ? sum / weight : 0
    },
  }
}

/** Undefined if nothing has come. */
export const fitBaseline = (
  series: LoadSeries,
  shape: { horizon: Horizon; calendar: Calendar },
): BaselineFit | undefined => {
  const { values } = series
  const { horizon, calendar } = shape
  const unitMs = (UNIT_SHARE * values.reduce((sum, value) => sum + value, 0)) / Math.max(1, values.length)
  if (!(unitMs > 0 && Number.isFinite(unitMs))) return undefined
  const scale = createLogScale(unitMs)
  const simple = createSimpleForecasts({ values, calendar, scale, spans: horizon.spans })
  const origins = sampleOrigins(calendar.hour, values.length - 1 - horizon.minutes)
  const errors = errorsOf(simple, scale, origins, horizon.window)
  const mix = errors.map((error) => error ** -SHARPNESS)
  const levels = errors.slice(0, LEVELS.length)
  const total = mix.reduce((sum, share) => sum + share, 0)
  const fit = { unitMs, mix: mix.map((share) => share / total), steady: levels.indexOf(Math.min(...levels)) }
  const baseline = createBaseline(series, fit, shape)
  const residuals = horizon.spans.map((span) => residualsOf(baseline, origins, span))
  const scales = residuals.map((all) => Math.max(LEAST_SCALE, meanSize(all)))
  return {
    ...fit,
    scales,
    p90s: residuals.map((all, n) => Math.max(0, quantileOf(all, 0.9)) / (scales[n] as number)),
  }
}

/**
 * The mean absolute error of each simple forecast in work, as a share of that of the first on the same origins: what is known
 * only lately is not judged by other days than the rest. Infinite if it was never known.
 */
const errorsOf = (
  simple: SimpleForecasts,
  scale: LogScale,
  origins: readonly number[],
  span: number,
): number[] => {
  const forecasts = new Float64Array(NAMES.length)
  const sums = NAMES.map(() => ({ known: 0, own: 0, first: 0 }))
  for (const origin of origins) {
    simple.write(origin, span, forecasts)
    const truth = scale.fromLog(simple.truth(origin, span))
    const errors = forecasts.map((forecast) => Math.abs(scale.fromLog(forecast) - truth))
    for (const [n, sum] of sums.entries()) {
      if (Number.isNaN(forecasts[n])) continue
      sum.known++
      sum.own += errors[n] as number
      sum.first += errors[0] as number
    }
  }
  return sums.map(({ known, own, first }) => {
    if (known === 0) return Number.POSITIVE_INFINITY
    // On a series without errors all are as good.
    return own === first ? 1 : Math.min(Math.max(own / first, LEAST_ERROR), MOST_ERROR)
  })
}

const residualsOf = ({ simple, combine }: Baseline, origins: readonly number[], span: number): number[] => {
  const forecasts = new Float64Array(NAMES.length)
  return origins.map((origin) => {
    simple.write(origin, span, forecasts)
    return simple.truth(origin, span) - combine(forecasts)
  })
}

const sampleOrigins = (first: number, last: number): number[] => {
  const step = Math.max(1, (last - first) / SAMPLED)
  const origins: number[] = []
  for (let origin = first; origin <= last; origin += step) origins.push(Math.floor(origin))
  return origins
}

const meanSize = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + Math.abs(value), 0) / Math.max(1, values.length)

const quantileOf = (values: readonly number[], q: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))] ?? 0
