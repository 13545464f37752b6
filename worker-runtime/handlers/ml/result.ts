import { createPredictor } from '../../../functions/prediction/lstm/predictor.ts'
import type { Weights } from '../../../functions/prediction/lstm/weights.ts'
import { answerOrigins, type Pause } from './answers.ts'
import type { Evaluation, Scores } from './evaluation.ts'
import { type Interval, naiveInterval, networkInterval } from './interval.ts'
import { naiveErrors } from './naive.ts'
import type { Plan } from './plan.ts'
import type { TrainingState } from './training.ts'
import type { Calibration } from './validation.ts'

export type MlResult = {
  /** Whose forecast it is: the network's, or, if that is no better, the naive one. */
  source: 'lstm' | 'naive'
  beats_naive: boolean
  forecast: ({ step: number } & Interval)[]
  horizon: number
  n: number
  interpolated: number
  season: number | null
  naive_kind: 'last_value' | 'seasonal'
  error: {
    holdout: number
    origins: number
    model: Scores
    naive: Scores
    /** The share of the naive forecast's mae that the network has saved; null if that has no error. */
    improvement: number | null
  }
  epochs_run: number
  best_epoch: number
  stopped_early: boolean
  loss_curve: { epoch: number; train: number | null; validation: number }[]
  duration_ms: number
}

/** The network beats the naive forecast if its mae is smaller by this share. By luck it does on one of sixteen random walks. */
const LEAST_IMPROVEMENT = 0.05

export const improvementOf = ({ model, naive }: Evaluation): number | null =>
  naive.mae > 0 ? 1 - model.mae / naive.mae : null

export const beatsNaive = (evaluation: Evaluation): boolean =>
  (improvementOf(evaluation) ?? 0) >= LEAST_IMPROVEMENT

/** From the last value on. */
export async function forecastByNetwork(
  plan: Plan,
  weights: Weights,
  calibration: Calibration,
  pause: Pause,
): Promise<MlResult['forecast']> {
  const predictor = createPredictor(weights)
  try {
    const answers = await answerOrigins(predictor, plan.encoder, [plan.values.length - 1], pause)
    return answers
      .sort((a, b) => a.lead - b.lead)
      .map((answer) => ({ step: answer.lead, ...rounded(networkInterval(plan, answer, calibration)) }))
  } finally {
    predictor.dispose()
  }
}

export function forecastNaively(plan: Plan): MlResult['forecast'] {
  const { values, horizon, naiveSeason } = plan
  const errors = naiveErrors(values, { season: naiveSeason, horizon })
  return errors.map((_, n) => {
    const place = { origin: values.length - 1, lead: n + 1 }
    return { step: n + 1, ...rounded(naiveInterval(plan, errors, place)) }
  })
}

export const describeError = (plan: Plan, evaluation: Evaluation): MlResult['error'] => {
  const improvement = improvementOf(evaluation)
  return {
    holdout: plan.values.length - plan.trainEnd,
    origins: evaluation.origins,
    model: rounded(evaluation.model),
    naive: rounded(evaluation.naive),
    improvement: improvement === null ? null : round(improvement),
  }
}

export const describeTraining = (
  state: TrainingState | undefined,
  epochs: number,
): Pick<MlResult, 'epochs_run' | 'best_epoch' | 'stopped_early' | 'loss_curve'> => ({
  epochs_run: state?.trainLosses.length ?? 0,
  best_epoch: state?.best.epoch ?? 0,
  stopped_early: state !== undefined && state.trainLosses.length < epochs,
  loss_curve: (state?.validationLosses ?? []).map((validation, epoch) => ({
    epoch,
    train: epoch === 0 ? null : round(state?.trainLosses[epoch - 1] as number, 6),
    validation: round(validation, 6),
  })),
})

/** What is behind the tenth digit is the machine's, not the forecast's. */
const round = (value: number, digits = 10): number => Number(value.toPrecision(digits))

const rounded = <Numbers extends Record<string, number | null>>(numbers: Numbers): Numbers =>
  Object.fromEntries(
    Object.entries(numbers).map(([name, value]) => [name, value === null ? null : round(value)]),
  ) as Numbers
