/**
 * The load forecast: work that will come unannounced within the lead time, learned from what came by the minute.
 *
 * It goes on in rounds. A round first judges the forecaster on the minutes that have passed since the last one, as it was when
 * they came, and then trains it on them. So every error in its record is of a forecast that knew nothing of what it forecast.
 * A new forecaster is begun with the older part of the history and led through the newer part in the same rounds: it has its
 * record from the start, and that is a backtest.
 */
import { createWeights, type Weights } from '../../functions/prediction/lstm/weights.ts'
import { type BaselineFit, fitBaseline } from './baseline.ts'
import { createEncoder, INPUTS } from './encoder.ts'
import type { Horizon } from './horizon.ts'
import { judge } from './judge.ts'
import { type Calendar, type LoadSeries, upTo } from './load-series.ts'
import { evenMixture, type Mixture } from './mixture.ts'
import type { Stretch } from './record.ts'
import { type Pause, train } from './training.ts'
import { QUANTILES } from './windows.ts'

/** Plain data: with the same, another one goes on as this one would, to the bit. */
export type Forecaster = {
  readonly fit: BaselineFit
  readonly weights: Weights
  readonly mixture: Mixture
  /** How much higher than the network says the p90 must be, in its units. */
  readonly p90Shift: number
  readonly record: readonly Stretch[]
  readonly rounds: number
  /** The first minute that it does not know. */
  readonly knownTo: number
  /** When it was begun, and with how many minutes of history. */
  readonly begun: { readonly at: number; readonly minutes: number }
}

export type ForecastOptions = {
  readonly horizon: Horizon
  readonly calendar: Calendar
  readonly pause: Pause
  /** Steps of training, at the beginning and in each round. */
  readonly steps?: { first: number; round: number }
}

/** A few seconds of one core, once a week, and a tenth of that every half hour. */
const STEPS = { first: 400, round: 30 }
const FIRST_RATE = 5e-3
/** What is known already must not be forgotten over the last half hour. */
const ROUND_RATE = 1e-3
const SEED = 1
/** With 8 the error on bursts that come and go is a fiftieth higher. */
export const HIDDEN = 16

/** Hours of history that it takes at least. */
const LEAST_HOURS = 8
/** The newer part that it is led through: a third, but no more days than these; in steps of so many hours. */
const JUDGED_SHARE = 1 / 3
const JUDGED_DAYS = 3
const STEP_HOURS = 6

export type Begun = { forecaster: Forecaster } | { unusableBecause: string }

export const begin = async (series: LoadSeries, options: ForecastOptions): Promise<Begun> => {
  const { calendar } = options
  const { length } = series.values
  if (length < LEAST_HOURS * calendar.hour) {
    const hours = Math.floor(length / calendar.hour)
    return {
      unusableBecause: `There are ${hours} hours of history, and it takes ${LEAST_HOURS} to forecast from.`,
    }
  }
  let end = length - Math.min(Math.floor(JUDGED_SHARE * length), JUDGED_DAYS * calendar.day)
  let forecaster = await beginWith(
    upTo(series, end),
    { at: series.firstMinute + length, minutes: length },
    options,
  )
  if (!forecaster) return { unusableBecause: 'Too little work has come unannounced to learn from.' }
  while (end < length) {
    end = Math.min(length, end + STEP_HOURS * calendar.hour)
    forecaster = await goOn(forecaster, upTo(series, end), options)
  }
  return { forecaster }
}

/** Undefined if nothing has come that could be learned from. */
const beginWith = async (
  known: LoadSeries,
  begun: Forecaster['begun'],
  options: ForecastOptions,
): Promise<Forecaster | undefined> => {
  const fit = fitBaseline(known, options)
  if (!fit) return undefined
  const untrained = createWeights({ inputs: INPUTS, hidden: HIDDEN, heads: QUANTILES.length }, SEED)
  // It begins with the baseline, and with what nine of ten came to beside it.
  untrained.parameters.by.set([0, fit.p90s.reduce((sum, p90) => sum + p90, 0) / fit.p90s.length])
  const weights = await train(createEncoder(known, fit, options), untrained, {
    steps: (options.steps ?? STEPS).first,
    learningRate: FIRST_RATE,
    seed: SEED,
    day: options.calendar.day,
    pause: options.pause,
  })
  const knownTo = known.firstMinute + known.values.length
  return { fit, weights, mixture: evenMixture, p90Shift: 0, record: [], rounds: 1, knownTo, begun }
}

/** A round: what has come since the last is what it is judged by, and then what it learns from. */
export const goOn = async (
  forecaster: Forecaster,
  series: LoadSeries,
  options: ForecastOptions,
): Promise<Forecaster> => {
  const { calendar } = options
  const encoder = createEncoder(series, forecaster.fit, options)
  const judged = judge(forecaster, encoder, calendar)
  const weights = await train(encoder, forecaster.weights, {
    steps: (options.steps ?? STEPS).round,
    learningRate: ROUND_RATE,
    seed: SEED + forecaster.rounds,
    day: calendar.day,
    pause: options.pause,
  })
  return {
    ...forecaster,
    ...judged,
    weights,
    rounds: forecaster.rounds + 1,
    knownTo: series.firstMinute + series.values.length,
  }
}

/** Minutes between rounds. A window must be over before it is judged, and before anything is learned from it. */
export const roundMinutes = ({ horizon, calendar }: ForecastOptions): number =>
  Math.max(calendar.hour / 2, 3 * horizon.window)

/** With so much more history, as a share of what it began with, it begins anew: there may be a yesterday now to compare with. */
const GROWTH = 1.25

/** Whether another one should be begun: it is old, or knows nothing of the last day, or there is much more to know. */
export const isOutdated = (
  { begun, knownTo }: Forecaster,
  { firstMinute, values }: LoadSeries,
  { calendar }: ForecastOptions,
): boolean => {
  const end = firstMinute + values.length
  return (
    values.length >= GROWTH * begun.minutes || end - knownTo > calendar.day || end - begun.at >= calendar.week
  )
}
