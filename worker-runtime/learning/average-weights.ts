import { copyWeights, PARAMETERS, type Weights } from '../../functions/prediction/lstm/weights.ts'

/**
 * The mean of the weights over the last steps of training (Polyak averaging): what single batches pull to and fro evens out,
 * which is worth a lower learning rate without its slowness.
 */
export const createAverage = (first: Weights) => {
  const average = copyWeights(first)
  let steps = 0
  return {
    add: (weights: Weights): void => {
      steps++
      const kept = Math.min(KEPT, steps / (steps + 10))
      for (const name of PARAMETERS) fold(average.parameters[name], weights.parameters[name], kept)
    },
    weights: (): Weights => copyWeights(average),
  }
}

/** About the last hundred steps. */
const KEPT = 0.99

const fold = (into: Float32Array, values: Float32Array, kept: number): void => {
  for (let n = 0; n < into.length; n++)
    into[n] = kept * (into[n] as number) + (1 - kept) * (values[n] as number)
}
