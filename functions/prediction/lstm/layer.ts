import type { Tensor2D } from '@tensorflow/tfjs-core'
import { backwardCell, type CellState, type CellStep, forwardCell } from './cell.ts'
import { add, matMul, matrix, readMatrix, sumRows, transpose } from './matrix.ts'

/** One layer over a whole sequence, and back. The letters are those of cell.ts; d… is the loss's gradient in …. */
export type LayerWeights = { Wx: Tensor2D; Wh: Tensor2D; b: Tensor2D } // (I, 4H), (H, 4H), (1, 4H)

export type LayerCache = { x: Tensor2D; steps: CellStep[]; weights: LayerWeights }

/** The inputs of all steps meet Wx in one product; only h · Wh has to go step by step. */
export const forwardLayer = (
  x: Tensor2D,
  weights: LayerWeights,
  initial: CellState,
): { h: Tensor2D; cache: LayerCache } => {
  const H = weights.Wh.shape[0]
  const B = initial.h.length / H
  const ax = readMatrix(add(matMul(x, weights.Wx), weights.b)) // (T·B, 4H)
  const steps: CellStep[] = []
  for (const axHere of cut(ax, B * 4 * H)) {
    steps.push(forwardCell(matrix(axHere, B, 4 * H), steps.at(-1) ?? initial, weights.Wh))
  }
  const h = stack(steps.map((step) => step.h)) // (T·B, H)
  return { h: matrix(h, x.shape[0], H), cache: { x, steps, weights } }
}

export type LayerGradients = { da: Tensor2D; dWx: Tensor2D; dWh: Tensor2D; db: Tensor2D }

/**
 * Back-propagation through time: what the gates of each step owe, from the last step to the first; then the weights'
 * gradients of all steps in one product each. (They share the right factor, which WASM packs once.)
 */
export const backwardLayer = (dhOut: Tensor2D, cache: LayerCache): LayerGradients => {
  const [rows, H] = dhOut.shape
  const da = matrix(backThroughTime(readMatrix(dhOut), cache), rows, 4 * H) // (T·B, 4H)
  const h = matrix(stack(cache.steps.map(({ before }) => before.h)), rows, H) // (T·B, H): what each step saw
  return {
    da,
    dWx: matMul(transpose(cache.x), da), // (I, 4H)
    dWh: matMul(transpose(h), da), // (H, 4H)
    db: sumRows(da), // (1, 4H)
  }
}

/** The gradient in a layer's input. */
export const inputGradient = (da: Tensor2D, { weights }: LayerCache): Tensor2D =>
  matMul(da, transpose(weights.Wx)) // (T·B, I)

/** dh of each step as the layer above wants it (T·B, H) → da of each step (T·B, 4H). */
const backThroughTime = (dhOut: Float32Array, { steps, weights }: LayerCache): Float32Array => {
  const H = weights.Wh.shape[0]
  const BH = dhOut.length / steps.length
  const B = BH / H
  const WhT = transpose(weights.Wh) // (4H, H)
  const all = new Float32Array(4 * dhOut.length) // (T·B, 4H)
  const dc = new Float32Array(BH) // (B, H): what the step after asks of c
  let dhNext: Float32Array = new Float32Array(BH) // (B, H): what it asks of h
  for (const [t, step] of [...steps.entries()].reverse()) {
    const dh = sum(dhOut.subarray(t * BH, (t + 1) * BH), dhNext) // (B, H)
    const da = all.subarray(t * 4 * BH, (t + 1) * 4 * BH) // (B, 4H)
    backwardCell(step, { dh, dc, da }, H)
    dhNext = readMatrix(matMul(matrix(da, B, 4 * H), WhT)) // (B, H)
  }
  return all
}

const sum = (a: Float32Array, b: Float32Array): Float32Array => {
  const values = new Float32Array(a.length)
  for (let n = 0; n < values.length; n++) values[n] = (a[n] as number) + (b[n] as number)
  return values
}

/** Pieces of `length`, without a copy. Tensors are not cut with tfjs: slice on WASM copies all of its source each time. */
const cut = (values: Float32Array, length: number): Float32Array[] =>
  Array.from({ length: values.length / length }, (_, n) => values.subarray(n * length, (n + 1) * length))

const stack = (pieces: readonly Float32Array[]): Float32Array => {
  const length = pieces[0]?.length ?? 0
  const all = new Float32Array(pieces.length * length)
  for (const [n, piece] of pieces.entries()) all.set(piece, n * length)
  return all
}
