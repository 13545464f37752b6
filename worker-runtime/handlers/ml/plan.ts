import { JobError } from '../../handler-api.ts'
import { createEncoder, type Encoder } from './encoder.ts'
import { leadScales, meanSize, naiveErrors } from './naive.ts'
import { detectSeason } from './season.ts'

/**
 * What is what in a series. The network learns on values before `fitEnd`; when to stop is judged on those from there to
 * `trainEnd`; the rest, the held-out tail, is for the error alone. Season, naive forecast and scales come from before `trainEnd` too:
 * nothing of the tail is known to what is measured on it.
 */
export type Plan = {
  readonly values: Float64Array
  readonly horizon: number
  readonly fitEnd: number
  readonly trainEnd: number
  /** 1: none. */
  readonly season: number
  /** That of the naive forecast; 1: the last value. */
  readonly naiveSeason: number
  /** Errors of the naive forecast before `trainEnd`, and how large they ordinarily are, by lead. */
  readonly naiveErrors: readonly Float64Array[]
  readonly scales: Float64Array
  readonly encoder: Encoder
  /** The naive forecast has not been off once: there is nothing to learn. */
  readonly isExact: boolean
}

/** Windows that the network needs at least, or there is nothing to learn from. */
const LEAST_WINDOWS = 8
/** Of the values before the tail: what is not learned from, to see when to stop. */
const VALIDATION_SHARE = 0.15
const TAIL_SHARE = 0.2

export function planForecast(
  values: Float64Array,
  { horizon, ...wanted }: { horizon: number; holdout?: number | undefined; season?: number | undefined },
): Plan {
  const holdout = wanted.holdout ?? defaultHoldout(values.length, horizon)
  const trainEnd = values.length - holdout
  // Behind what is needed for windows and for validation, a season may be as long as what is left.
  const longestSeason = trainEnd - 2 * horizon - LEAST_WINDOWS + 1
  if (longestSeason < (wanted.season ?? 1)) throw tooShort(values.length, { ...wanted, horizon, holdout })
  const train = values.subarray(0, trainEnd)
  const season = wanted.season ?? detectSeason(train, longestSeason)
  const naiveSeason = betterNaive(train, season, horizon)
  const errors = naiveErrors(train, { season: naiveSeason, horizon })
  const scales = leadScales(errors)
  const validation = Math.min(Math.floor(trainEnd * VALIDATION_SHARE), horizon + longestSeason - season)
  return {
    values,
    horizon,
    fitEnd: trainEnd - Math.max(horizon, validation),
    trainEnd,
    season,
    naiveSeason,
    naiveErrors: errors,
    scales,
    encoder: createEncoder({ values, season, naiveSeason, scales }),
    isExact: scales.every((scale) => scale === 0),
  }
}

/** Two horizons, so that a forecast is judged from more than one origin, unless that is too much of the series. */
const defaultHoldout = (length: number, horizon: number): number =>
  Math.min(2 * horizon, Math.max(horizon, Math.floor(length * TAIL_SHARE)))

/** Of the last value and that of one season before, what has been closer: the network has to beat the better one. */
function betterNaive(train: Float64Array, season: number, horizon: number): number {
  const errorOf = (naive: number): number =>
    meanSize(naiveErrors(train, { season: naive, horizon }).map(meanSize))
  return season > 1 && errorOf(season) <= errorOf(1) ? season : 1
}

function tooShort(
  length: number,
  { horizon, holdout, season = 1 }: { horizon: number; holdout: number; season?: number | undefined },
): JobError {
  const needed = holdout + 2 * horizon + season + LEAST_WINDOWS - 1
  const message =
    `The series has ${length} values; ${needed} are needed: ${holdout} held out, two horizons of ${horizon}, ` +
    `${season > 1 ? `a season of ${season} ` : 'one '}and ${LEAST_WINDOWS - 1} to learn from. ` +
    'Ask for a shorter horizon, or give it more values.'
  return new JobError('series_too_short', message, { permanent: true })
}
