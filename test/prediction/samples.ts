import { createRandom } from '../../functions/prediction/lstm/random.ts'
import type { Batch } from '../../functions/prediction/lstm/trainer.ts'
import {
  createWeights,
  mapParameters,
  type NetworkShape,
  type Weights,
} from '../../functions/prediction/lstm/weights.ts'

/** Small, and no two widths alike: a matrix the wrong way round does not fit. */
export const SMALL: NetworkShape = { inputs: 3, hidden: 4, heads: 2 }

/** Numbers in ±`range` that the seed decides. */
export const numbers = (count: number, seed: number, range = 1): Float32Array<ArrayBuffer> => {
  const random = createRandom(seed)
  return new Float32Array(count).map(() => (2 * random() - 1) * range)
}

/** Weights without a zero: those that training starts from would hide errors behind their zero heads. */
export const trainedWeights = (shape: NetworkShape, seed: number): Weights => {
  const weights = createWeights(shape, seed)
  const parameters = mapParameters((name) =>
    numbers(weights.parameters[name].length, seed + name.length, 0.8),
  )
  return { ...weights, parameters }
}

export const sampleBatch = (shape: NetworkShape, steps: number, size: number, seed: number): Batch => ({
  steps,
  size,
  inputs: numbers(steps * size * shape.inputs, seed),
  targets: numbers(steps * size, seed + 1),
  weights: numbers(steps * size, seed + 2).map(Math.abs),
  initialState: numbers(size * 4 * shape.hidden, seed + 3),
})
