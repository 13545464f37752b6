import type { Tensor2D } from '@tensorflow/tfjs-core'
import { type CellState, forwardCell } from './cell.ts'
import type { LayerWeights } from './layer.ts'
import { add, matMul, matrix, readMatrix, withMatrices } from './matrix.ts'
import { layersOf, toMatrices } from './network.ts'
import { cutState, joinState } from './state.ts'
import { copyWeights, type Weights } from './weights.ts'

export type Predictor = {
  /** How many numbers the state of a row has. */
  readonly width: number
  /** One step for n rows at once: inputs (n, I) and states (n, 4H) → outputs (n, K) and the states after. */
  step(
    x: Float32Array,
    state: Float32Array,
  ): { outputs: Float32Array<ArrayBuffer>; state: Float32Array<ArrayBuffer> }
  /** Frees the weights; twice is safe. */
  dispose(): void
}

/** The network with carried state: what a series has been through is in its state, so a prediction is one step. */
export const createPredictor = (weights: Weights): Predictor => {
  const { inputs: I, hidden: H } = weights.shape
  // A copy: on the CPU backend a matrix is the array it was made of, and whoever gave it may change it.
  const matrices = toMatrices(copyWeights(weights))
  const [layer1, layer2] = layersOf(matrices)
  const { Wy, Wd, by } = matrices
  return {
    width: 4 * H,
    step: (x, state) =>
      withMatrices(() => {
        const n = x.length / I
        const [before1, before2] = cutState(state, n, H)
        const input = matrix(x, n, I)
        const after1 = stepLayer(input, layer1, before1)
        const after2 = stepLayer(matrix(after1.h, n, H), layer2, before2)
        const y = add(add(matMul(matrix(after2.h, n, H), Wy), matMul(input, Wd)), by) // (n, K)
        return { outputs: readMatrix(y), state: joinState([after1, after2], H) }
      }),
    dispose: () => {
      for (const parameter of Object.values(matrices)) parameter.dispose()
    },
  }
}

const stepLayer = (x: Tensor2D, { Wx, Wh, b }: LayerWeights, before: CellState): CellState =>
  forwardCell(add(matMul(x, Wx), b), before, Wh)
