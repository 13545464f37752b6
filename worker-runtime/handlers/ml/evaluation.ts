/**
 * The error on the held-out tail. From origins spread over it all leads of the horizon are forecast, as the job's own forecast
 * is, with the values up to the origin; the naive forecast is asked for the same leads from the same origins.
 */
import { createPredictor } from '../../../functions/prediction/lstm/predictor.ts'
import type { Weights } from '../../../functions/prediction/lstm/weights.ts'
import { answerOrigins, type Pause } from './answers.ts'
import { type Interval, naiveInterval, networkInterval } from './interval.ts'
import { meanSize } from './naive.ts'
import { spreadOrigins } from './origins.ts'
import type { Plan } from './plan.ts'
import type { Calibration } from './validation.ts'

export type Scores = {
  mae: number
  rmse: number
  /** The mae as a share of the naive forecast's mean one-step error before the tail; null if that was never off. */
  mase: number | null
  /** The share of values from p10 to p90: 0.8 if the interval is right. */
  coverage: number
}

export type Evaluation = { model: Scores; naive: Scores; origins: number }

const ORIGINS = 64

export async function evaluate(
  plan: Plan,
  weights: Weights,
  calibration: Calibration,
  pause: Pause,
): Promise<Evaluation> {
  const origins = tailOrigins(plan)
  const predictor = createPredictor(weights)
  try {
    const answers = await answerOrigins(predictor, plan.encoder, origins, pause)
    return {
      model: score(
        plan,
        answers.map((answer) => ({ ...answer, ...networkInterval(plan, answer, calibration) })),
      ),
      naive: scoreNaive(plan, answers),
      origins: origins.length,
    }
  } finally {
    predictor.dispose()
  }
}

/** When there is nothing to learn. */
export function evaluateNaive(plan: Plan): Evaluation {
  const origins = tailOrigins(plan)
  const leads = Array.from({ length: plan.horizon }, (_, n) => n + 1)
  const naive = scoreNaive(
    plan,
    origins.flatMap((origin) => leads.map((lead) => ({ origin, lead }))),
  )
  return { model: naive, naive, origins: origins.length }
}

const tailOrigins = ({ values, horizon, trainEnd }: Plan): number[] =>
  spreadOrigins(trainEnd - 1, values.length - 1 - horizon, ORIGINS)

type Place = { origin: number; lead: number }

const scoreNaive = (plan: Plan, places: readonly Place[]): Scores =>
  score(
    plan,
    places.map((place) => ({ ...place, ...naiveInterval(plan, plan.naiveErrors, place) })),
  )

function score({ values, trainEnd, naiveSeason }: Plan, forecasts: readonly (Place & Interval)[]): Scores {
  const errors = forecasts.map(({ origin, lead, p50 }) => (values[origin + lead] as number) - p50)
  const inside = forecasts.filter(({ origin, lead, p10, p90 }) => {
    const value = values[origin + lead] as number
    return value >= p10 && value <= p90
  })
  const mae = meanSize(errors)
  const train = values.subarray(0, trainEnd)
  const steps = train.subarray(naiveSeason).map((value, n) => value - (train[n] as number))
  const stepSize = meanSize(steps)
  return {
    mae,
    rmse: rootMeanSquare(errors),
    mase: stepSize > 0 ? mae / stepSize : null,
    coverage: inside.length / forecasts.length,
  }
}

/** Scaled first: the squares of the largest values allowed are near the end of what a number holds. */
function rootMeanSquare(errors: readonly number[]): number {
  const largest = errors.reduce((most, error) => Math.max(most, Math.abs(error)), 0) || 1
  return largest * Math.sqrt(errors.reduce((sum, error) => sum + (error / largest) ** 2, 0) / errors.length)
}
