/**
 * How a series becomes sequences for the network. A window is an origin: the steps that lead up to it, and those ahead of it.
 *
 *   context   (origin − 23, first span) … (origin, first span)   what there was to be said, as time passed
 *   ahead     (origin, first span) … (origin, last span)         what is to be said now
 */
import type { Predictor } from '../../functions/prediction/lstm/predictor.ts'
import type { Batch } from '../../functions/prediction/lstm/trainer.ts'
import { type Encoder, INPUTS } from './encoder.ts'

/** The median, and what nine of ten windows stay below. */
export const QUANTILES = [0.5, 0.9]
const K = QUANTILES.length

const CONTEXT_STEPS = 24
/** Steps of the context are lessons too, but not what counts: they teach what to remember. */
const CONTEXT_WEIGHT = 0.2

/** What the network says of each span from each origin, all origins at once: (origins, spans, K). */
export const answerAll = (
  predictor: Predictor,
  encoder: Encoder,
  origins: readonly number[],
): Float32Array => {
  const spans = encoder.horizon.spans.length
  const answers = new Float32Array(origins.length * spans * K)
  let state: Float32Array<ArrayBuffer> = new Float32Array(origins.length * predictor.width)
  for (let step = 0; step < stepsOf(encoder); step++) {
    const after = predictor.step(inputsAt(encoder, origins, step), state)
    state = after.state
    const n = step - CONTEXT_STEPS
    for (let row = 0; n >= 0 && row < origins.length; row++) {
      answers.set(after.outputs.subarray(row * K, (row + 1) * K), (row * spans + n) * K)
    }
  }
  return answers
}

export const makeBatch = (encoder: Encoder, origins: readonly number[], hidden: number): Batch => {
  const [steps, size] = [stepsOf(encoder), origins.length]
  const batch = {
    steps,
    size,
    inputs: new Float32Array(steps * size * INPUTS),
    targets: new Float32Array(steps * size),
    weights: new Float32Array(steps * size),
    initialState: new Float32Array(size * 4 * hidden),
  }
  for (let step = 0; step < steps; step++) {
    batch.inputs.set(inputsAt(encoder, origins, step), step * size * INPUTS)
    for (const [row, origin] of origins.entries()) {
      const seen = stepOf(origin, step)
      const target = seen.origin >= 0 ? encoder.target(seen.origin, seen.n) : Number.NaN
      // One that is not over yet teaches nothing.
      if (Number.isNaN(target)) continue
      batch.targets[step * size + row] = target
      batch.weights[step * size + row] = step < CONTEXT_STEPS ? CONTEXT_WEIGHT : 1
    }
  }
  return batch
}

const stepsOf = ({ horizon }: Encoder): number => CONTEXT_STEPS + horizon.spans.length

/** The origin may be before the series. */
const stepOf = (origin: number, step: number): { origin: number; n: number } =>
  step < CONTEXT_STEPS
    ? { origin: origin - CONTEXT_STEPS + 1 + step, n: 0 }
    : { origin, n: step - CONTEXT_STEPS }

/** What the network sees at one step of all windows (B, I); zeros before the series. */
const inputsAt = (encoder: Encoder, origins: readonly number[], step: number): Float32Array => {
  const inputs = new Float32Array(origins.length * INPUTS)
  for (const [row, origin] of origins.entries()) {
    const seen = stepOf(origin, step)
    if (seen.origin >= 0) encoder.write(seen.origin, seen.n, inputs, row * INPUTS)
  }
  return inputs
}
