/**
 * How a series becomes sequences for the network. A window is an origin, the steps that lead up to it, and those ahead of it:
 *
 *   context   (origin − 23, lead 1) … (origin, lead 1)     what there was to be said one step ahead, as time passed
 *   ahead     (origin, l₁) … (origin, l₂₄)                 what is to be said now, of each lead directly
 *
 * No answer is fed back, so errors do not build up with the lead. Leads of a longer horizon are dealt out to several windows
 * like the teeth of combs (1, 4, 7, …; 2, 5, 8, …; 3, 6, 9, …): a window costs the same whatever the horizon.
 */
import type { Batch } from '../../../functions/prediction/lstm/trainer.ts'
import { type Encoder, INPUTS } from './encoder.ts'

export type Window = { origin: number; comb: number }

const CONTEXT_STEPS = 24
const MOST_STEPS_AHEAD = 24
/** Steps of the context are lessons too, but not what counts: they teach what to remember. */
const CONTEXT_WEIGHT = 0.2

export const combsOf = (horizon: number): number => Math.ceil(horizon / MOST_STEPS_AHEAD)

/** One step of a window. It is empty before the first value of the series, and behind the last lead. */
export type WindowStep = { origin: number; lead: number } | undefined

export const stepsOf = (horizon: number): number => CONTEXT_STEPS + Math.ceil(horizon / combsOf(horizon))

export const isAhead = (step: number): boolean => step >= CONTEXT_STEPS

export function stepOf(
  { origin, comb }: Window,
  step: number,
  { firstOrigin, horizon }: Pick<Encoder, 'firstOrigin' | 'horizon'>,
): WindowStep {
  if (isAhead(step)) {
    const lead = 1 + comb + (step - CONTEXT_STEPS) * combsOf(horizon)
    return lead <= horizon ? { origin, lead } : undefined
  }
  const before = origin - CONTEXT_STEPS + 1 + step
  return before >= firstOrigin ? { origin: before, lead: 1 } : undefined
}

/** What the network sees at one step of all windows; zeros where a window has none. */
export function inputsAt(encoder: Encoder, windows: readonly Window[], step: number): Float32Array {
  const inputs = new Float32Array(windows.length * INPUTS) // (B, I)
  for (const [row, window] of windows.entries()) {
    const seen = stepOf(window, step, encoder)
    if (seen) encoder.write(seen.origin, seen.lead, inputs, row * INPUTS)
  }
  return inputs
}

export function makeBatch(encoder: Encoder, windows: readonly Window[], hidden: number): Batch {
  const [steps, size] = [stepsOf(encoder.horizon), windows.length]
  const batch = {
    steps,
    size,
    inputs: new Float32Array(steps * size * INPUTS),
    targets: new Float32Array(steps * size),
    weights: new Float32Array(steps * size),
    initialState: new Float32Array(size * 4 * hidden),
  }
  for (let step = 0; step < steps; step++) {
    batch.inputs.set(inputsAt(encoder, windows, step), step * size * INPUTS)
    for (const [row, window] of windows.entries()) {
      const seen = stepOf(window, step, encoder)
      if (!seen) continue
      batch.targets[step * size + row] = encoder.target(seen.origin, seen.lead)
      batch.weights[step * size + row] = isAhead(step) ? 1 : CONTEXT_WEIGHT
    }
  }
  return batch
}
