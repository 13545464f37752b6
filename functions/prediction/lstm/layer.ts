import { add, concat, matMul, mul, sub, sum, type Tensor2D, transpose } from '@tensorflow/tfjs-core'
import { type CellState, type CellStep, forwardCell } from './cell.ts'
import { cutSteps, stackSteps } from './tensors.ts'

/** One layer over a whole sequence, and back. The letters are those of cell.ts; d… is the loss's gradient in …. */
export type LayerWeights = { Wx: Tensor2D; Wh: Tensor2D; b: Tensor2D }

export type LayerCache = { x: Tensor2D; before: CellState[]; steps: CellStep[]; weights: LayerWeights }

/** The rows of all steps in one matrix: the inputs of all steps meet Wx in one product, only h · Wh goes step by step. */
export const forwardLayer = (
  x: Tensor2D,
  weights: LayerWeights,
  initial: CellState,
): { h: Tensor2D; cache: LayerCache } => {
  const T = (x.shape[0] as number) / (initial.h.shape[0] as number)
  const ax = cutSteps(add(matMul(x, weights.Wx), weights.b) as Tensor2D, T) // T × (B, 4H)
  const before: CellState[] = []
  const steps: CellStep[] = []
  let state = initial // (B, H) each
  for (const a of ax) {
    const step = forwardCell(a, state, weights.Wh)
    before.push(state)
    steps.push(step)
    state = step
  }
  return { h: stackSteps(steps.map(({ h }) => h)), cache: { x, before, steps, weights } } // (T·B, H)
}

export type LayerGradients = { dx: Tensor2D; dWx: Tensor2D; dWh: Tensor2D; db: Tensor2D }

/** Back-propagation through time: what each step owes, from the last to the first; then all products at once. */
export const backwardLayer = (dhOut: Tensor2D, { x, before, steps, weights }: LayerCache): LayerGradients => {
  const da = gateGradients(dhOut, { before, steps, weights }) // (T·B, 4H)
  const h = stackSteps(before.map((state) => state.h)) // (T·B, H), the h that each step saw
  return {
    dx: matMul(da, transpose(weights.Wx)), // (T·B, I)
    dWx: matMul(transpose(x), da), // (I, 4H)
    dWh: matMul(transpose(h), da), // (H, 4H)
    db: sum(da, 0, true), // (1, 4H)
  }
}

/**
 * From h = o · tanh(c) and c = f · c₋₁ + i · g, with σ′ = σ(1 − σ) and tanh′ = 1 − tanh²:
 * the factors by which dc and dh reach the pre-activations are known before the way back begins, for all steps at once.
 */
const gateGradients = (
  dhOut: Tensor2D,
  cache: Pick<LayerCache, 'before' | 'steps' | 'weights'>,
): Tensor2D => {
  const { before, steps } = cache
  const T = steps.length
  const [i, f, o, g, tanhC] = (['i', 'f', 'o', 'g', 'tanhC'] as const).map((name) =>
    stackSteps(steps.map((step) => step[name])),
  ) as [Tensor2D, Tensor2D, Tensor2D, Tensor2D, Tensor2D] // (T·B, H) each
  const cBefore = stackSteps(before.map(({ c }) => c)) // (T·B, H)
  const cut = (tensor: unknown) => cutSteps(tensor as Tensor2D, T)
  const di = cut(mul(g, sigmoidSlope(i))) // T × (B, H): ∂c/∂a of the gate i
  const df = cut(mul(cBefore, sigmoidSlope(f)))
  const dg = cut(mul(i, tanhSlope(g)))
  const d_o = cut(mul(tanhC, sigmoidSlope(o))) // ∂h/∂a of the gate o
  const dcOfDh = cut(mul(o, tanhSlope(tanhC))) // ∂h/∂c
  const dhAbove = cutSteps(dhOut, T)
  const WhT = transpose(cache.weights.Wh) // (4H, H)
  const da: Tensor2D[] = []
  let dhNext: Tensor2D | undefined
  let dcNext: Tensor2D | undefined
  for (let t = T - 1; t >= 0; t--) {
    const at = (steps: Tensor2D[]) => steps[t] as Tensor2D
    const dh = dhNext ? add(at(dhAbove), dhNext) : at(dhAbove) // (B, H)
    const dcHere = mul(dh, at(dcOfDh)) // (B, H)
    const dc = dcNext ? add(dcHere, dcNext) : dcHere // (B, H)
    da[t] = concat([mul(dc, at(di)), mul(dc, at(df)), mul(dh, at(d_o)), mul(dc, at(dg))] as Tensor2D[], 1)
    dhNext = matMul(da[t] as Tensor2D, WhT) // (B, H)
    dcNext = mul(dc, (steps[t] as CellStep).f) as Tensor2D // (B, H)
  }
  return stackSteps(da)
}

const sigmoidSlope = (s: Tensor2D) => mul(s, sub(1, s))
const tanhSlope = (s: Tensor2D) => sub(1, mul(s, s))
