import type { Tensor2D } from '@tensorflow/tfjs-core'
import { type CellState, forwardCell } from './cell.ts'
import type { LayerWeights } from './layer.ts'
import { add, matMul, matrix } from './matrix.ts'
import { layersOf } from './network.ts'
import { cutState, joinState, readTensor, tidyData, toTensors } from './tensors.ts'
import type { Weights } from './weights.ts'

export type Predictor = {
  /** How many numbers the state of a row has. */
  readonly width: number
  /** One step for n rows at once: inputs (n, I) and states (n, 4H) → outputs (n, K) and the states after. */
  step(
    x: Float32Array,
    state: Float32Array,
  ): { outputs: Float32Array<ArrayBuffer>; state: Float32Array<ArrayBuffer> }
  /** Frees the weights' tensors; twice is safe. */
  dispose(): void
}

/** The network with carried state: what a stream has been through is in its state, so a prediction is one step. */
export const createPredictor = (weights: Weights): Predictor => {
  const { inputs: I, hidden: H } = weights.shape
  const tensors = toTensors(weights)
  const [layer1, layer2] = layersOf(tensors)
  return {
    width: 4 * H,
    step: (x, state) =>
      tidyData(() => {
        const n = x.length / I
        const [before1, before2] = cutState(state, n, H)
        const after1 = stepLayer(matrix(x, n, I), layer1, before1)
        const after2 = stepLayer(after1.h, layer2, before2)
        const y = add(matMul(after2.h, tensors.Wy), tensors.by) // (n, K)
        return { outputs: readTensor(y), state: readTensor(joinState([after1, after2])) }
      }),
    dispose: () => {
      for (const tensor of Object.values(tensors)) tensor.dispose()
    },
  }
}

const stepLayer = (x: Tensor2D, { Wx, Wh, b }: LayerWeights, before: CellState): CellState =>
  forwardCell(add(matMul(x, Wx), b), before, Wh)
