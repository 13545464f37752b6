import { createPredictor } from './lstm/predictor.ts'
import { CorruptWeights, parseWeights } from './lstm/weights-format.ts'
import { INPUTS } from './model/encoder.ts'
import type { Consideration, Residuals } from './model/predict-runtime.ts'

export type OpenNetwork = {
  /** What it says of each job, all in one step. */
  advise(jobs: readonly Consideration[]): Residuals[]
  /** Frees the weights; twice is safe. */
  dispose(): void
}

/** p50 and p90. */
const HEADS = 2

/** Throws CorruptWeights, also if they are of a network that looks at something else than this release does. */
export const openNetwork = (bytes: Uint8Array): OpenNetwork => {
  const weights = parseWeights(bytes)
  const { inputs, heads } = weights.shape
  if (inputs !== INPUTS || heads !== HEADS) {
    throw new CorruptWeights(`A network of ${inputs} inputs and ${heads} heads, not ${INPUTS} and ${HEADS}`)
  }
  const { width, step, dispose } = createPredictor(weights)

  const advise = (jobs: readonly Consideration[]): Residuals[] => {
    const x = new Float32Array(jobs.length * INPUTS) // (n, I)
    const state = new Float32Array(jobs.length * width) // (n, 4H)
    jobs.forEach((job, n) => {
      x.set(job.x, n * INPUTS)
      const carried = job.view.memory.state
      // Nothing has run through the network yet, or it was one of another width: the series begins anew.
      if (carried.length === width) state.set(carried, n * width)
    })
    const { outputs } = step(x, state) // (n, K)
    return jobs.map((_, n) => ({
      p50: outputs[n * HEADS] ?? Number.NaN,
      p90: outputs[n * HEADS + 1] ?? Number.NaN,
    }))
  }

  return { advise, dispose }
}
