import { engine, type Tensor2D } from '@tensorflow/tfjs-core'
import type { CellState } from './cell.ts'
import { columns, matrix, sideBySide } from './matrix.ts'
import { mapParameters, type ParameterName, parameterShapes, type Weights } from './weights.ts'

/**
 * Tensors with a parameter's values. Make new ones for new values: the WASM backend keeps a packed copy of a matrix that
 * it has multiplied by, and would not notice an edit.
 */
export const toTensors = ({ shape, parameters }: Weights): Record<ParameterName, Tensor2D> => {
  const shapes = parameterShapes(shape)
  return mapParameters((name) => matrix(parameters[name], ...shapes[name]))
}

/**
 * (T·B, N) → T × (B, N). Read once and cut here, because slice on WASM copies all of its source for each piece.
 */
export const cutSteps = (x: Tensor2D, T: number): Tensor2D[] => {
  const [rows, N] = x.shape
  return cutArray(x.dataSync() as Float32Array, T, [rows / T, N])
}

/** T·B·N values, step by step → T × (B, N). */
export const cutArray = (values: Float32Array, T: number, [B, N]: [number, number]): Tensor2D[] =>
  Array.from({ length: T }, (_, t) => matrix(values.subarray(t * B * N, (t + 1) * B * N), B, N))

export const onesRow = (n: number): Tensor2D => matrix(new Float32Array(n).fill(1), 1, n)

/** (B, 4H), a row of which is h1 c1 h2 c2 → the states of both layers. */
export const cutState = (state: Float32Array, B: number, H: number): [CellState, CellState] => {
  const all = matrix(state, B, 4 * H)
  const part = (n: number) => columns(all, n * H, H) // (B, H)
  return [
    { h: part(0), c: part(1) },
    { h: part(2), c: part(3) },
  ]
}

export const joinState = ([layer1, layer2]: [CellState, CellState]): Tensor2D =>
  sideBySide([layer1.h, layer1.c, layer2.h, layer2.c]) // (B, 4H)

/** A copy: on the CPU backend dataSync gives the tensor's own memory. */
export const readTensor = (tensor: Tensor2D): Float32Array<ArrayBuffer> =>
  (tensor.dataSync() as Float32Array<ArrayBuffer>).slice()

/** tidy, for work that leaves plain data and no tensor. */
export const tidyData = <Data>(work: () => Data): Data => {
  let data: Data | undefined
  engine().tidy(() => {
    data = work()
  })
  return data as Data
}
