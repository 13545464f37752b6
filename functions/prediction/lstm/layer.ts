import type { Tensor2D } from '@tensorflow/tfjs-core'
import { type CellState, type CellStep, forwardCell } from './cell.ts'
import { add, matMul, mul, one, oneBelowAnother, sideBySide, sub, transpose } from './matrix.ts'
import { cutSteps, onesRow } from './tensors.ts'

/** One layer over a whole sequence, and back. The letters are those of cell.ts; d… is the loss's gradient in …. */
export type LayerWeights = { Wx: Tensor2D; Wh: Tensor2D; b: Tensor2D } // (I, 4H), (H, 4H), (1, 4H)

export type LayerCache = { x: Tensor2D; initial: CellState; steps: CellStep[]; weights: LayerWeights }

/** The inputs of all steps meet Wx in one product; only h · Wh has to go step by step. */
export const forwardLayer = (
  x: Tensor2D,
  weights: LayerWeights,
  initial: CellState,
): { h: Tensor2D; cache: LayerCache } => {
  const T = x.shape[0] / initial.h.shape[0]
  const ax = cutSteps(add(matMul(x, weights.Wx), weights.b), T) // T × (B, 4H)
  const steps: CellStep[] = []
  for (const a of ax) steps.push(forwardCell(a, steps.at(-1) ?? initial, weights.Wh))
  const h = oneBelowAnother(steps.map((step) => step.h)) // (T·B, H)
  return { h, cache: { x, initial, steps, weights } }
}

export type LayerGradients = { da: Tensor2D; dWx: Tensor2D; dWh: Tensor2D; db: Tensor2D }

/**
 * Back-propagation through time: what the gates of each step owe, from the last step to the first; then the weights'
 * gradients of all steps in one product each. (They share the right factor, which WASM packs once.)
 */
export const backwardLayer = (dh: Tensor2D, cache: LayerCache): LayerGradients => {
  const before = [cache.initial, ...cache.steps.slice(0, -1)]
  const da = backThroughTime(dh, cache, before) // (T·B, 4H)
  const h = oneBelowAnother(before.map((state) => state.h)) // (T·B, H): what each step saw
  return {
    da,
    dWx: matMul(transpose(cache.x), da), // (I, 4H)
    dWh: matMul(transpose(h), da), // (H, 4H)
    db: matMul(onesRow(da.shape[0]), da), // (1, 4H): the sum over rows, fifty times faster than sum on WASM
  }
}

/** The gradient in a layer's input. */
export const inputGradient = (da: Tensor2D, { weights }: LayerCache): Tensor2D =>
  matMul(da, transpose(weights.Wx)) // (T·B, I)

const backThroughTime = (dhOfLayer: Tensor2D, cache: LayerCache, before: CellState[]): Tensor2D => {
  const T = cache.steps.length
  const { gates, shown } = slopes(cache.steps, before)
  const gatesAt = cutSteps(gates, T) // T × (B, 4H)
  const shownAt = cutSteps(shown, T) // T × (B, H)
  const dhAt = cutSteps(dhOfLayer, T) // T × (B, H)
  const WhT = transpose(cache.weights.Wh) // (4H, H)
  const da: Tensor2D[] = []
  let later: CellState | undefined // what the step after asks of this one: dh and dc
  for (let t = T - 1; t >= 0; t--) {
    const at = <Step>(steps: readonly Step[]): Step => steps[t] as Step
    const dh = later ? add(at(dhAt), later.h) : at(dhAt) // (B, H)
    const dcShown = mul(dh, at(shownAt)) // (B, H)
    const dc = later ? add(dcShown, later.c) : dcShown // (B, H)
    const daHere = mul(at(gatesAt), sideBySide([dc, dc, dh, dc])) // (B, 4H)
    da[t] = daHere
    later = { h: matMul(daHere, WhT), c: mul(dc, at(cache.steps).f) } // (B, H) each
  }
  return oneBelowAnother(da) // (T·B, 4H)
}

/**
 * From c = f · c₋₁ + i · g and h = o · tanh(c), with σ′ = σ(1 − σ) and tanh′ = 1 − tanh², for all steps at once:
 * `gates` is ∂c/∂a of i, f and g and ∂h/∂a of o; `shown` is ∂h/∂c.
 */
const slopes = (steps: readonly CellStep[], before: readonly CellState[]) => {
  const all = (name: keyof CellStep) => oneBelowAnother(steps.map((step) => step[name])) // (T·B, H)
  const [i, f, o, g, tanhC] = [all('i'), all('f'), all('o'), all('g'), all('tanhC')]
  const cBefore = oneBelowAnother(before.map(({ c }) => c)) // (T·B, H)
  const sigmoidSlope = (s: Tensor2D) => mul(s, sub(one(), s))
  const tanhSlope = (s: Tensor2D) => sub(one(), mul(s, s))
  const gates = sideBySide([
    mul(g, sigmoidSlope(i)), // i
    mul(cBefore, sigmoidSlope(f)), // f
    mul(tanhC, sigmoidSlope(o)), // o
    mul(i, tanhSlope(g)), // g
  ]) // (T·B, 4H)
  return { gates, shown: mul(o, tanhSlope(tanhC)) } // (T·B, H)
}
