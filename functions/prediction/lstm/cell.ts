import type { Tensor2D } from '@tensorflow/tfjs-core'
import { add, matMul, matrix, readMatrix, sigmoid } from './matrix.ts'

/**
 * The long short-term memory cell (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000).
 *
 *   a  pre-activations of the four gates, side by side: i f o g
 *   i  input gate: how much of g is written        f  forget gate: how much of c is kept
 *   o  output gate: how much of c is shown         g  what would be written
 *   c  the cell's memory                           h  what the cell shows, to its own next step as well
 *   B  rows at once   H  hidden units   I  inputs   T  steps   K  heads
 *
 * Products and σ are tfjs's; what follows σ goes number by number, here and on the way back. As tensor operations it
 * would be thirty calls a step for a few numbers each: a prediction takes a third of that time, training two thirds.
 */
export type CellState = { h: Float32Array; c: Float32Array } // (B, H) each

/** A step as backward needs it. */
export type CellStep = CellState & {
  gates: Float32Array // (B, 4H): i f o g
  tanhC: Float32Array // (B, H)
  before: CellState
}

/**
 * One step: the input's part of the pre-activations, and the state before → the gates and the state after.
 * `n` counts the cells of (B, H); `at` is where a cell has its i in (B, 4H), and its f, o and g follow, H apart.
 */
export const forwardCell = (ax: Tensor2D, before: CellState, Wh: Tensor2D): CellStep => {
  const [B, H] = [ax.shape[0], Wh.shape[0]]
  const a = add(ax, matMul(matrix(before.h, B, H), Wh)) // (B, 4H)
  const gates = readMatrix(sigmoid(a)) // (B, 4H)
  const c = new Float32Array(B * H) // (B, H)
  for (let row = 0, n = 0; row < B; row++) {
    for (let at = row * 4 * H; n < (row + 1) * H; at++, n++) {
      const i = gates[at] as number
      const f = gates[at + H] as number
      const g = tanhOf(gates[at + 3 * H] as number)
      gates[at + 3 * H] = g
      c[n] = f * (before.c[n] as number) + i * g
    }
  }
  const tanhC = readMatrix(sigmoid(matrix(c, B, H))) // (B, H)
  const h = new Float32Array(B * H) // (B, H)
  for (let row = 0, n = 0; row < B; row++) {
    for (let at = row * 4 * H; n < (row + 1) * H; at++, n++) {
      const o = gates[at + 2 * H] as number
      tanhC[n] = tanhOf(tanhC[n] as number)
      h[n] = o * (tanhC[n] as number)
    }
  }
  return { gates, c, tanhC, h, before }
}

/**
 * The same step on the way back: from the loss's gradients dh and dc in what it left, those in its pre-activations,
 * written to da, and in the c that it found, written over dc. With σ′ = σ(1 − σ) and tanh′ = 1 − tanh².
 */
export const backwardCell = (
  { gates, tanhC, before }: CellStep,
  { dh, dc, da }: { dh: Float32Array; dc: Float32Array; da: Float32Array }, // (B, H), (B, H), (B, 4H)
  H: number,
): void => {
  for (let row = 0, n = 0; n < dh.length; row++) {
    for (let at = row * 4 * H; n < (row + 1) * H; at++, n++) {
      const i = gates[at] as number
      const f = gates[at + H] as number
      const o = gates[at + 2 * H] as number
      const g = gates[at + 3 * H] as number
      const shown = tanhC[n] as number
      const dhHere = dh[n] as number
      const dcHere = (dc[n] as number) + dhHere * o * (1 - shown * shown)
      da[at] = dcHere * g * i * (1 - i)
      da[at + H] = dcHere * (before.c[n] as number) * f * (1 - f)
      da[at + 2 * H] = dhHere * shown * o * (1 - o)
      da[at + 3 * H] = dcHere * i * (1 - g * g)
      dc[n] = dcHere * f
    }
  }
}

/** tanh x from s = σ(x), by e²ˣ = (s / (1 − s))²: tfjs's own tanh on WASM takes six times as long as its σ. */
const tanhOf = (s: number): number => (2 * s - 1) / (1 - 2 * s * (1 - s))
