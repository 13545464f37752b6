/** What the network sees of a moment, and what it should have said. All of it is of values up to the origin. */
import { type BaselineFit, createBaseline } from './baseline.ts'
import type { Horizon } from './horizon.ts'
import type { Calendar, LoadSeries } from './load-series.ts'
import { NAMES } from './simple-forecasts.ts'

export type Encoder = {
  readonly horizon: Horizon
  readonly firstMinute: number
  /** How many minutes are known. */
  readonly length: number
  write(origin: number, n: number, into: Float32Array, offset: number): void
  /** What the network should have answered, of the span with number `n`. NaN if it is not over yet. */
  target(origin: number, n: number): number
  /** What an answer means, in milliseconds of work within the span. */
  work(origin: number, n: number, answer: number): number
  /** The answer that would say what a simple forecast says, by its number. NaN if that is not known. */
  answer(origin: number, n: number, which: number): number
  /** What has come within it. */
  truth(origin: number, n: number): number
}

const LAST_MINUTES = 3
const DEPARTURES = [
  { period: 'hour', minutes: 5 },
  { period: 'day', minutes: 20 },
  { period: 'week', minutes: 20 },
] as const
const TURNS = [
  { period: 'hour', turns: [1, 2, 3] },
  { period: 'day', turns: [1, 2, 3] },
  { period: 'week', turns: [1, 2] },
] as const

export const INPUTS =
  NAMES.length +
  LAST_MINUTES +
  DEPARTURES.length +
  2 * TURNS.reduce((sum, { turns }) => sum + turns.length, 0) +
  2

/** Beyond so many ordinary errors an input says no more: an outlier would drown the rest on the direct path. */
const CLIP = 6
/** And a target: a float must hold it, and sums of it. */
const TARGET_CLIP = 1e4

export const createEncoder = (
  series: LoadSeries,
  fit: BaselineFit,
  shape: { horizon: Horizon; calendar: Calendar },
): Encoder => {
  const { horizon, calendar } = shape
  const { values, firstMinute } = series
  const { simple, scale, combine } = createBaseline(series, fit, shape)
  const forecasts = new Float64Array(NAMES.length)
  const spanOf = (n: number): number => horizon.spans[n] as number
  const scaleOf = (n: number): number => fit.scales[n] as number
  /** Leaves the simple forecasts behind. */
  const baselineAt = (origin: number, n: number): number => {
    simple.write(origin, spanOf(n), forecasts)
    return combine(forecasts)
  }

  const write: Encoder['write'] = (origin, n, into, offset) => {
    const base = baselineAt(origin, n)
    let at = offset
    const put = (value: number): void => {
      into[at++] = value
    }
    const putSize = (difference: number): void => put(clip(difference / scaleOf(n), CLIP))
    // What is not known says nothing, as what is where the baseline is.
    for (const forecast of forecasts) putSize(Number.isNaN(forecast) ? 0 : forecast - base)
    for (let back = 0; back < LAST_MINUTES; back++) {
      const value = values[origin - back]
      putSize(value === undefined ? 0 : scale.toLog(value) - base)
    }
    for (const { period, minutes } of DEPARTURES) {
      putSize(simple.departure(origin, calendar[period], minutes))
    }
    // Of the minutes that are asked for: the middle of the span.
    const minute = firstMinute + origin + (1 + spanOf(n)) / 2
    for (const { period, turns } of TURNS) {
      const phase = (2 * Math.PI * (minute % calendar[period])) / calendar[period]
      for (const turn of turns) {
        put(Math.sin(turn * phase))
        put(Math.cos(turn * phase))
      }
    }
    put(base)
    put(spanOf(n) / horizon.minutes)
  }

  return {
    horizon,
    firstMinute,
    length: values.length,
    write,
    target: (origin, n) =>
      clip((simple.truth(origin, spanOf(n)) - baselineAt(origin, n)) / scaleOf(n), TARGET_CLIP),
    work: (origin, n, answer) => spanOf(n) * scale.fromLog(baselineAt(origin, n) + answer * scaleOf(n)),
    answer: (origin, n, which) => {
      const base = baselineAt(origin, n)
      return ((forecasts[which] as number) - base) / scaleOf(n)
    },
    truth: (origin, n) => spanOf(n) * (simple.mean(origin + 1, origin + spanOf(n)) ?? Number.NaN),
  }
}

const clip = (value: number, size: number): number => Math.min(Math.max(value, -size), size)
