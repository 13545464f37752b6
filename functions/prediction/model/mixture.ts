/**
 * The online mixture: whom to believe, series by series. Each expert's recent error on the series decides, beginning from what
 * the expert was worth on all series with as few executions. The prediction is a mean of the experts, weighted by
 * exp(−η · (error − least error) / least error): a clearly better one speaks almost alone, equals share.
 */
import { EXPERTS } from './experts.ts'

export type ExpertErrors = { errors: number[]; weight: number }

/** η, and an error below which differences say nothing. */
const SHARPNESS = 32
const LEAST_ERROR = 0.05
/** What experts are worth everywhere counts as much as so many executions of the series. */
const PRIOR_WEIGHT = 8
/** Each execution counts a tenth more than the one before it. */
const FORGETTING = 0.9
const GENERAL_FORGETTING = 0.9999
/** One wild execution proves no more than this. */
const LARGEST_ERROR = 3
/** Before anything is known. */
const UNKNOWN_ERROR = 1

/** Series with so many executions, or more, are compared with each other. */
export const MATURITIES = 6
export const maturityOf = (runs: number): number => Math.min(runs, MATURITIES - 1)

/** The experts and, last, what they say together. */
export const noErrors = (): ExpertErrors => ({ errors: [...EXPERTS, 'all'].map(() => 0), weight: 0 })

/** How far off each expert is to be expected on the series. */
export const expectedErrors = (own: ExpertErrors, general: ExpertErrors): number[] =>
  EXPERTS.map((_, n) => {
    const prior = general.weight > 0 ? (general.errors[n] ?? 0) / general.weight : UNKNOWN_ERROR
    return (prior * PRIOR_WEIGHT + (own.errors[n] ?? 0)) / (PRIOR_WEIGHT + own.weight)
  })

/** The weight of each expert; they add up to 1. Who is not present has none. */
export const weighExperts = (errors: readonly number[], isPresent: (expert: number) => boolean): number[] => {
  const least = Math.min(...errors.filter((_, n) => isPresent(n)))
  const scale = Math.max(least, LEAST_ERROR)
  const weights = errors.map((error, n) =>
    isPresent(n) ? Math.exp((-SHARPNESS * (error - least)) / scale) : 0,
  )
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => weight / sum)
}

/** η of the second look. */
const SECOND_SHARPNESS = 100

/**
 * A second look, at the long run: whatever a series' few executions seem to say, if one expert alone has been better on all
 * series than all of them together, its word counts more. `advice` has what they say together last.
 */
export const lookAgain = (
  general: ExpertErrors,
  advice: readonly number[],
  isPresent: (expert: number) => boolean,
): number => {
  const together = advice.length - 1
  if (general.weight < ENOUGH) return advice[together] as number
  const errors = advice.map((_, n) =>
    n === together || isPresent(n) ? (general.errors[n] ?? 0) / general.weight : Number.POSITIVE_INFINITY,
  )
  const least = Math.max(Math.min(...errors), LEAST_ERROR)
  const weights = errors.map((error) => Math.exp((-SECOND_SHARPNESS * (error - least)) / least))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return advice.reduce((total, log, n) => total + (log * (weights[n] ?? 0)) / sum, 0)
}

/** Before so many executions the long run has not begun. */
const ENOUGH = 300

/**
 * `staleness`: how many executions of the series have ended since the prediction was made, this one included. Of a thousand
 * jobs that were submitted together, all predictions were the same: they are not a thousand proofs.
 */
export const judgeExperts = (
  own: ExpertErrors,
  general: ExpertErrors,
  advice: readonly number[],
  log: number,
  staleness: number,
): void => {
  fold(own, advice, log, FORGETTING, 1 / Math.max(1, staleness) ** 1.5)
  fold(general, advice, log, GENERAL_FORGETTING, 1)
}

const fold = (
  into: ExpertErrors,
  advice: readonly number[],
  log: number,
  forgetting: number,
  weight: number,
): void => {
  const kept = forgetting ** weight
  for (const [n, advised] of advice.entries()) {
    const error = Math.min(Math.abs(advised - log), LARGEST_ERROR)
    into.errors[n] = (into.errors[n] ?? 0) * kept + error * weight
  }
  into.weight = into.weight * kept + weight
}
