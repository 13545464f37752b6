/**
 * The simple forecasts: what the network corrects, sees, and has to beat. Each says how much work will come a minute in the
 * `span` minutes after `origin`, made of values up to `origin` only, on the logarithmic scale.
 */

import type { Calendar } from './load-series.ts'
import type { LogScale } from './log-scale.ts'

export type SimpleForecasts = {
  /** Of all of them, in the order of NAMES; NaN where there is too little history. */
  write(origin: number, span: number, into: Float64Array): void
  /** What really came, as they should have said. */
  truth(origin: number, span: number): number
  /** The mean of values from one index to another, both included. Undefined if one of them is not known at `origin`. */
  mean(from: number, to: number): number | undefined
  /** How far the recent level is from that of the same minutes a period before. 0 if that is not known. */
  departure(origin: number, period: number, minutes: number): number
}

/** Levels: what has come lately goes on. Half-lives in minutes, of the work and of its logarithm, which spikes move less. */
const MEAN_HALF_LIVES = [3, 15, 60]
const LOG_HALF_LIVES = [15, 60, 240]
/** Repetitions: as at the same time before. Over several repetitions, and `around` so many minutes on either side of it. */
const REPETITIONS = [
  { name: 'last_hour', period: 'hour', times: 1, around: 0 },
  { name: 'hours', period: 'hour', times: 6, around: 0 },
  { name: 'yesterday', period: 'day', times: 1, around: 0 },
  { name: 'days', period: 'day', times: 7, around: 0 },
  { name: 'days_around', period: 'day', times: 7, around: 10 },
  { name: 'last_week', period: 'week', times: 1, around: 0 },
  { name: 'weeks_around', period: 'week', times: 4, around: 10 },
] as const

export const LEVELS = [
  ...MEAN_HALF_LIVES.map((minutes) => `mean_${minutes}`),
  ...LOG_HALF_LIVES.map((minutes) => `log_mean_${minutes}`),
]
export const NAMES: readonly string[] = [...LEVELS, ...REPETITIONS.map(({ name }) => name)]

export const createSimpleForecasts = (options: {
  values: Float64Array
  calendar: Calendar
  scale: LogScale
  spans: readonly number[]
}): SimpleForecasts => {
  const { values, calendar, scale } = options
  const sums = prefixSums(values)
  const means = MEAN_HALF_LIVES.map((halfLife) => fade(values, halfLife).map(scale.toLog))
  const logMeans = new Map(options.spans.map((span) => [span, levelsOf(span)]))

  function levelsOf(span: number): Float64Array[] {
    const logs = values.map((_, index) => scale.toLog(mean(Math.max(0, index - span + 1), index) ?? 0))
    return LOG_HALF_LIVES.map((halfLife) => fade(logs, halfLife))
  }

  function mean(from: number, to: number): number | undefined {
    if (from < 0 || to >= values.length) return undefined
    return Math.max(0, ((sums[to + 1] as number) - (sums[from] as number)) / (to - from + 1))
  }

  const repeated = (
    origin: number,
    span: number,
    { period, times, around }: (typeof REPETITIONS)[number],
  ): number => {
    let [sum, count] = [0, 0]
    // Of a window that is longer than an hour the last whole hours are not known yet.
    const first = Math.ceil((span + around) / calendar[period])
    for (let time = first; time < first + times; time++) {
      const shifted = origin - time * calendar[period]
      const before = mean(shifted + 1 - around, shifted + span + around)
      if (before === undefined) break
      sum += scale.toLog(before)
      count++
    }
    return sum / count
  }

  return {
    mean,
    truth: (origin, span) => scale.toLog(mean(origin + 1, origin + span) ?? Number.NaN),
    write: (origin, span, into) => {
      let at = 0
      for (const level of means) into[at++] = level[origin] as number
      for (const level of logMeans.get(span) ?? []) into[at++] = level[origin] as number
      for (const repetition of REPETITIONS) into[at++] = repeated(origin, span, repetition)
    },
    departure: (origin, period, minutes) => {
      const now = mean(Math.max(0, origin - minutes + 1), origin)
      const before = mean(origin - minutes + 1 - period, origin - period)
      return now === undefined || before === undefined ? 0 : scale.toLog(now) - scale.toLog(before)
    },
  }
}

const prefixSums = (values: Float64Array): Float64Array => {
  const sums = new Float64Array(values.length + 1)
  for (let n = 0; n < values.length; n++) sums[n + 1] = (sums[n] as number) + (values[n] as number)
  return sums
}

/** At each index the mean of the values so far, in which one counts half as much after each half-life. */
const fade = (values: Float64Array, halfLife: number): Float64Array => {
  const kept = 0.5 ** (1 / halfLife)
  let [sum, weight] = [0, 0]
  return values.map((value) => {
    sum = kept * sum + value
    weight = kept * weight + 1
    return sum / weight
  })
}
