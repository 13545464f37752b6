import type { Tensor2D } from '@tensorflow/tfjs-core'
import { add, columns, matMul, mul, sigmoid, tanh } from './matrix.ts'

/**
 * The long short-term memory cell (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000).
 *
 *   a  pre-activations of the four gates, side by side: i f o g
 *   i  input gate: how much of g is written        f  forget gate: how much of c is kept
 *   o  output gate: how much of c is shown         g  what would be written
 *   c  the cell's memory                           h  what the cell shows, to its own next step as well
 *   B  rows at once   H  hidden units   I  inputs   T  steps   K  heads
 */
export type CellState = { h: Tensor2D; c: Tensor2D } // (B, H) each

/** What backward needs of one step. */
export type CellStep = CellState & Record<'i' | 'f' | 'o' | 'g' | 'tanhC', Tensor2D> // (B, H) each

/** One step: the input's part of the pre-activations and the state before → the gates and the state after. */
export const forwardCell = (ax: Tensor2D, before: CellState, Wh: Tensor2D): CellStep => {
  const [, H] = before.h.shape
  const a = add(ax, matMul(before.h, Wh)) // (B, 4H)
  const s = sigmoid(a) // (B, 4H): one call for i f o; the quarter of g is not used
  const i = columns(s, 0, H) // (B, H)
  const f = columns(s, H, H) // (B, H)
  const o = columns(s, 2 * H, H) // (B, H)
  const g = tanh(columns(a, 3 * H, H)) // (B, H)
  const c = add(mul(f, before.c), mul(i, g)) // (B, H)
  const tanhC = tanh(c) // (B, H)
  const h = mul(o, tanhC) // (B, H)
  return { i, f, o, g, c, tanhC, h }
}
