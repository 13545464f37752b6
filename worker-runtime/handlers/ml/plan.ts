import { JobError } from '../../handler-api.ts'
import { createEncoder, type Encoder } from './encoder.ts'
import { leadScales, meanSize, naiveErrors } from './naive.ts'
import { detectSeason } from './season.ts'

/**
 * What is what in a series. The network learns from values before `fitEnd`; when to stop is judged by those from there to
 * `trainEnd`; the rest, the held-out tail, is for the error alone. Season, naive forecast and scales are of the values before
 * `trainEnd` too: what is measured on the tail knows nothing of it.
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
/** Two horizons each, so that forecasts are judged from more than one origin; more of a long series, and less of a short one. */
const TAIL: Stretch = { share: 0.1, most: 0.2 }
const VALIDATION: Stretch = { share: 0.15, most: 0.3 }

export function planForecast(
  values: Float64Array,
  { horizon, ...wanted }: { horizon: number; holdout?: number | undefined; season?: number | undefined },
): Plan {
  const holdout = wanted.holdout ?? stretchOf(TAIL, values.length, horizon)
  const trainEnd = values.length - holdout
  // Behind what is needed for windows and for validation, a season may be as long as what is left.
  const longestSeason = trainEnd - 2 * horizon - LEAST_WINDOWS + 1
  if (longestSeason < (wanted.season ?? 1)) throw tooShort(values.length, { ...wanted, horizon, holdout })
  const train = values.subarray(0, trainEnd)
  const season = wanted.season ?? detectSeason(train, longestSeason)
  const naiveSeason = betterNaive(train, season, horizon)
  const errors = naiveErrors(train, { season: naiveSeason, horizon })
  const scales = leadScales(errors)
  const validation = Math.min(
    stretchOf(VALIDATION, trainEnd, horizon),
    trainEnd - horizon - season - LEAST_WINDOWS + 1,
  )
  return {
    values,
    horizon,
    fitEnd: trainEnd - validation,
    trainEnd,
    season,
    naiveSeason,
    naiveErrors: errors,
    scales,
    encoder: createEncoder({ values, season, naiveSeason, scales }),
    isExact: scales.every((scale) => scale === 0),
  }
}

type Stretch = { share: number; most: number }

const stretchOf = ({ share, most }: Stretch, length: number, horizon: number): number =>
  Math.max(horizon, Math.floor(Math.min(Math.max(2 * horizon, share * length), most * length)))

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
