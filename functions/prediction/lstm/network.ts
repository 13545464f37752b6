import type { Tensor2D } from '@tensorflow/tfjs-core'
import { backwardLayer, forwardLayer, inputGradient, type LayerCache, type LayerWeights } from './layer.ts'
import { add, matMul, matrix, sumRows, transpose } from './matrix.ts'
import type { NetworkState } from './state.ts'
import { mapParameters, type ParameterName, parameterShapes, type Weights } from './weights.ts'

/**
 * Two layers and the heads: x → h1 → h2 → y, and x → y directly, because much of what there is to correct is plain
 * proportion, which bounded h learn slowly. Forward returns what backward needs, and backward takes it.
 */
export type Parameters = Record<ParameterName, Tensor2D>
export type NetworkCache = { layers: [LayerCache, LayerCache]; h2: Tensor2D; Wy: Tensor2D }

export const toMatrices = ({ shape, parameters }: Weights): Parameters => {
  const shapes = parameterShapes(shape)
  return mapParameters((name) => matrix(parameters[name], ...shapes[name]))
}

export const layersOf = ({ Wx1, Wh1, b1, Wx2, Wh2, b2 }: Parameters): [LayerWeights, LayerWeights] => [
  { Wx: Wx1, Wh: Wh1, b: b1 },
  { Wx: Wx2, Wh: Wh2, b: b2 },
]

export const forwardNetwork = (
  x: Tensor2D,
  parameters: Parameters,
  initial: NetworkState,
): { y: Tensor2D; cache: NetworkCache } => {
  const [layer1, layer2] = layersOf(parameters)
  const { h: h1, cache: cache1 } = forwardLayer(x, layer1, initial[0]) // (T·B, H)
  const { h: h2, cache: cache2 } = forwardLayer(h1, layer2, initial[1]) // (T·B, H)
  const { Wy, Wd, by } = parameters
  const y = add(add(matMul(h2, Wy), matMul(x, Wd)), by) // (T·B, K)
  return { y, cache: { layers: [cache1, cache2], h2, Wy } }
}

/** dy (T·B, K) → the gradient of each parameter, in its shape. */
export const backwardNetwork = (dy: Tensor2D, { layers, h2, Wy }: NetworkCache): Parameters => {
  const dh2 = matMul(dy, transpose(Wy)) // (T·B, H)
  const layer2 = backwardLayer(dh2, layers[1])
  const dh1 = inputGradient(layer2.da, layers[1]) // (T·B, H)
  const layer1 = backwardLayer(dh1, layers[0])
  return {
    Wx1: layer1.dWx,
    Wh1: layer1.dWh,
    b1: layer1.db,
    Wx2: layer2.dWx,
    Wh2: layer2.dWh,
    b2: layer2.db,
    Wy: matMul(transpose(h2), dy), // (H, K)
    Wd: matMul(transpose(layers[0].x), dy), // (I, K)
    by: sumRows(dy), // (1, K)
  }
}
