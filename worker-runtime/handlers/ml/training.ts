/**
 * The course of training: epochs until the validation loss has not fallen for a while, and then, from the best of them on, some
 * more over all values, also those it was judged by. The state after an epoch is plain data: another attempt goes on from it.
 */
import { createWeights, type Weights } from '../../../functions/prediction/lstm/weights.ts'
import { type Pause, QUANTILES } from './answers.ts'
import { INPUTS } from './encoder.ts'
import { createLearner, type LearnerState } from './learner.ts'
import { quantileOf } from './naive.ts'
import type { Plan } from './plan.ts'
import type { Validation } from './validation.ts'

export type TrainingState = {
  stage: 'fit' | 'finish'
  /** After each epoch; the first is that of the naive forecast, with the interval that its errors have. */
  validationLosses: number[]
  trainLosses: number[]
  best: { epoch: number; loss: number; weights: Weights }
  /** Epochs of finishing so far. */
  finished: number
  learner: LearnerState
}

export type TrainingOptions = {
  plan: Plan
  validation: Validation
  epochs: number
  hidden: number
  seed: number
  pause: Pause
  onEpoch(state: TrainingState): Promise<void>
}

/** Epochs without a lower validation loss. */
const PATIENCE = 8
/** Epochs of finishing, for each that it took to get to the best: the share of values that are new then. */
const FINISHING_SHARE = 0.3

export async function beginTraining({
  plan,
  validation,
  hidden,
  seed,
}: TrainingOptions): Promise<TrainingState> {
  const weights = createWeights({ inputs: INPUTS, hidden, heads: QUANTILES.length }, seed)
  weights.parameters.by.set(naiveHeads(plan))
  const loss = await validation.loss(weights)
  return {
    stage: 'fit',
    validationLosses: [loss],
    trainLosses: [],
    best: { epoch: 0, loss, weights },
    finished: 0,
    learner: { weights },
  }
}

/** Until it is over. A state that is over already is answered as it is. */
export async function fit(options: TrainingOptions, from: TrainingState): Promise<TrainingState> {
  const { plan, validation } = options
  const learner = createLearner({ ...options, encoder: plan.encoder }, from.learner)
  let state = from
  while (!isFitted(state, options.epochs)) {
    const epoch = state.trainLosses.length + 1
    const trainLoss = await learner.epoch(epoch, plan.fitEnd - 1 - plan.horizon)
    const learned = learner.state()
    const { weights } = learned
    const loss = await validation.loss(weights)
    state = {
      ...state,
      validationLosses: [...state.validationLosses, loss],
      trainLosses: [...state.trainLosses, trainLoss],
      best: loss < state.best.loss ? { epoch, loss, weights } : state.best,
      learner: learned,
    }
    await options.onEpoch(state)
  }
  return state
}

export const isFitted = ({ stage, trainLosses, best }: TrainingState, epochs: number): boolean =>
  stage === 'finish' || trainLosses.length >= epochs || trainLosses.length - best.epoch >= PATIENCE

export const finishingEpochs = ({ best }: TrainingState): number => Math.ceil(best.epoch * FINISHING_SHARE)

/** Over all values, from the best weights on; answers those that forecast. */
export async function finish(options: TrainingOptions, from: TrainingState): Promise<Weights> {
  const { values, horizon, encoder } = options.plan
  let state: TrainingState =
    from.stage === 'finish' ? from : { ...from, stage: 'finish', learner: { weights: from.best.weights } }
  const learner = createLearner({ ...options, encoder }, state.learner)
  while (state.finished < finishingEpochs(state)) {
    // Counted on, so that no epoch draws the windows of another.
    await learner.epoch(state.trainLosses.length + state.finished + 1, values.length - 1 - horizon)
    state = { ...state, finished: state.finished + 1, learner: learner.state() }
    await options.onEpoch(state)
  }
  return learner.state().weights
}

/** The heads' biases to start from: the naive forecast, between the quantiles of its errors. */
const naiveHeads = ({ naiveErrors, scales }: Plan): number[] =>
  QUANTILES.map((q) => {
    if (q === 0.5) return 0
    const ofLeads = naiveErrors.map((errors, n) => quantileOf(errors, q) / (scales[n] as number))
    return ofLeads.reduce((sum, quantile) => sum + quantile, 0) / ofLeads.length
  })
