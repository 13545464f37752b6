import type { Batch } from '../../functions/prediction/lstm/trainer.ts'
import type { Weights } from '../../functions/prediction/lstm/weights.ts'

/**
 * The network and its loss once more, number by number, in 64 bits and without a tensor: slow and plain. The product's
 * numbers have 32 bits, too few for the difference of two almost equal losses.
 */
export const referenceLoss = (weights: Weights, batch: Batch, quantiles: readonly number[]): number => {
  const { outputs } = referenceForward(weights, batch)
  const totalWeight = batch.weights.reduce((sum, weight) => sum + weight, 0)
  let loss = 0
  for (const [n, y] of outputs.entries()) {
    for (const [k, q] of quantiles.entries()) {
      const e = at(batch.targets, n) - at(y, k)
      if (e < 0 && batch.censored?.[n] === 1) continue
      loss += (at(batch.weights, n) / totalWeight) * Math.max(q * e, (q - 1) * e)
    }
  }
  return loss
}

/** The heads' answers of each step and row, steps first, and each row's state after the last step. */
export const referenceForward = ({ shape, parameters }: Weights, batch: Batch) => {
  const { inputs: I, hidden: H } = shape
  const { Wx1, Wh1, b1, Wx2, Wh2, b2, Wy, Wd, by } = parameters
  const outputs: number[][] = []
  const states = Array.from({ length: batch.size }, (_, row) =>
    Array.from(batch.initialState.subarray(row * 4 * H, (row + 1) * 4 * H)),
  )
  for (let n = 0; n < batch.steps * batch.size; n++) {
    const row = n % batch.size
    const state = states[row] as number[]
    const x = Array.from(batch.inputs.subarray(n * I, (n + 1) * I))
    const [h1, c1] = cell(x, state.slice(0, H), state.slice(H, 2 * H), [Wx1, Wh1, b1])
    const [h2, c2] = cell(h1, state.slice(2 * H, 3 * H), state.slice(3 * H), [Wx2, Wh2, b2])
    states[row] = [...h1, ...c1, ...h2, ...c2]
    outputs.push(Array.from(by, (bias, k) => bias + dot(h2, Wy, k) + dot(x, Wd, k)))
  }
  return { outputs, states }
}

type Layer = [Wx: ArrayLike<number>, Wh: ArrayLike<number>, b: ArrayLike<number>]

const cell = (
  x: number[],
  hBefore: number[],
  cBefore: number[],
  [Wx, Wh, b]: Layer,
): [number[], number[]] => {
  const H = hBefore.length
  const a = Array.from({ length: 4 * H }, (_, k) => at(b, k) + dot(x, Wx, k) + dot(hBefore, Wh, k))
  const sigmoid = (value: number) => 1 / (1 + Math.exp(-value))
  const c = cBefore.map((before, k) => {
    const [i, f, g] = [sigmoid(at(a, k)), sigmoid(at(a, H + k)), Math.tanh(at(a, 3 * H + k))]
    return f * before + i * g
  })
  const h = c.map((memory, k) => sigmoid(at(a, 2 * H + k)) * Math.tanh(memory))
  return [h, c]
}

/** A row times column k of a matrix. */
const dot = (row: number[], matrix: ArrayLike<number>, k: number): number => {
  const columns = matrix.length / row.length
  return row.reduce((sum, value, n) => sum + value * at(matrix, n * columns + k), 0)
}

const at = (values: ArrayLike<number>, n: number): number => values[n] as number
