import { type AdamState, clipGradients, copyAdamState, createAdam, type Gradients } from './adam.ts'
import { matrix, readMatrix, withMatrices } from './matrix.ts'
import { backwardNetwork, forwardNetwork, toMatrices } from './network.ts'
import { pinballLoss, type Targets } from './pinball.ts'
import { cutState } from './state.ts'
import { copyWeights, mapParameters, type Weights } from './weights.ts'

/** B sequences of T steps, step by step: the rows of step 0 first. */
export type Batch = Targets & {
  steps: number // T
  size: number // B
  inputs: Float32Array // (T·B, I)
  initialState: Float32Array // (B, 4H)
}

export type TrainerOptions = {
  weights: Weights
  quantiles?: readonly number[]
  learningRate?: number
  clipNorm?: number
  /** Where a trainer with the same weights left off. */
  optimiser?: AdamState | undefined
}

export type Trainer = {
  /**
   * One step of gradient descent. The loss and the norm are those before it; if they are not finite, because the batch is
   * not, nothing was learned from it.
   */
  step(batch: Batch): { loss: number; gradientNorm: number }
  /** A copy of what has been learned. */
  weights(): Weights
  /** A copy of what the optimiser remembers: with it and the weights another trainer goes on, to the bit. */
  optimiser(): AdamState
}

/** The median for ordering, and what nine of ten runs stay below, for promises. */
export const DEFAULT_QUANTILES = [0.5, 0.9]

/**
 * On made-up series with a hidden level and slope, 600 batches of 32 bring the loss from 0.365 to 0.205 with 0.0003,
 * to 0.197 with 0.001 and to 0.195 with 0.003. (0.01 gets to 0.157 there; it takes a backtest on real runs to trust it.)
 */
const DEFAULT_LEARNING_RATE = 3e-3

/** There the gradient's norm is 0.1 at the median and 0.6 at most: only what is out of the ordinary is held back. */
const DEFAULT_CLIP_NORM = 1

export const createTrainer = (options: TrainerOptions): Trainer => {
  const { quantiles = DEFAULT_QUANTILES, clipNorm = DEFAULT_CLIP_NORM } = options
  const weights = copyWeights(options.weights)
  if (quantiles.length !== weights.shape.heads) {
    throw new Error(`${quantiles.length} quantiles for ${weights.shape.heads} heads`)
  }
  const from = options.optimiser && copyAdamState(options.optimiser)
  const adam = createAdam(weights, options.learningRate ?? DEFAULT_LEARNING_RATE, from)
  return {
    step(batch) {
      const { loss, gradients } = computeGradients(weights, batch, quantiles)
      const gradientNorm = clipGradients(gradients, clipNorm)
      if (Number.isFinite(gradientNorm)) adam.step(gradients)
      return { loss, gradientNorm }
    },
    weights: () => copyWeights(weights),
    optimiser: adam.state,
  }
}

/** The loss of a batch and its gradient in every parameter. */
export const computeGradients = (
  weights: Weights,
  batch: Batch,
  quantiles: readonly number[],
): { loss: number; gradients: Gradients } =>
  withMatrices(() => {
    const { inputs: I, hidden: H, heads: K } = weights.shape
    const TB = batch.steps * batch.size
    const x = matrix(batch.inputs, TB, I)
    const initial = cutState(batch.initialState, batch.size, H)
    const { y, cache } = forwardNetwork(x, toMatrices(weights), initial)
    const { loss, dy } = pinballLoss(readMatrix(y), batch, quantiles)
    const matrices = backwardNetwork(matrix(dy, TB, K), cache)
    return { loss, gradients: mapParameters((name) => readMatrix(matrices[name])) }
  })
