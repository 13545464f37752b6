import { add, matMul, mul, sigmoid, slice, type Tensor2D, tanh } from '@tensorflow/tfjs-core'

/**
 * The long short-term memory cell (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000).
 *
 *   a  pre-activations of the four gates, side by side: i f o g
 *   i  input gate: how much of g is written        f  forget gate: how much of c is kept
 *   o  output gate: how much of c is shown         g  what would be written
 *   c  the cell's memory                           h  what the cell shows, to its own next step as well
 *   B  rows at once   H  hidden units   I  inputs   T  steps   K  heads
 */
export type CellState = { h: Tensor2D; c: Tensor2D }

/** What backward needs of one step. */
export type CellStep = CellState & Record<'i' | 'f' | 'o' | 'g' | 'tanhC', Tensor2D>

/** One step: the input's part of the pre-activations and the state before → the gates and the state after. */
export const forwardCell = (ax: Tensor2D, before: CellState, Wh: Tensor2D): CellStep => {
  const [B, H] = before.h.shape
  const a = add(ax, matMul(before.h, Wh)) as Tensor2D // (B, 4H)
  const s = sigmoid(a) // (B, 4H); its last quarter is not used
  const i = slice(s, [0, 0], [B, H]) // (B, H)
  const f = slice(s, [0, H], [B, H]) // (B, H)
  const o = slice(s, [0, 2 * H], [B, H]) // (B, H)
  const g = tanh(slice(a, [0, 3 * H], [B, H])) // (B, H)
  const c = add(mul(f, before.c), mul(i, g)) as Tensor2D // (B, H)
  const tanhC = tanh(c) // (B, H)
  const h = mul(o, tanhC) as Tensor2D // (B, H)
  return { i, f, o, g, c, tanhC, h }
}
