import type { Predictor } from '../../../functions/prediction/lstm/predictor.ts'
import type { Encoder } from './encoder.ts'
import { combsOf, inputsAt, isAhead, stepOf, stepsOf, type Window } from './windows.ts'

/** Heads of the network: the median, and eight of ten values between the other two. */
export const QUANTILES = [0.1, 0.5, 0.9]
const K = QUANTILES.length

/** One answer: what the heads say of a lead, least first, in the encoder's units. */
export type Answer = { origin: number; lead: number; heads: Float32Array }

/** Lets others have a turn, and throws if the job should stop. */
export type Pause = () => Promise<void>

/** What the network says of all leads of the windows, all windows at once. */
export async function answerWindows(
  predictor: Predictor,
  encoder: Encoder,
  windows: readonly Window[],
  pause: Pause,
): Promise<Answer[]> {
  const answers: Answer[] = []
  let state: Float32Array<ArrayBuffer> = new Float32Array(windows.length * predictor.width)
  for (let step = 0; step < stepsOf(encoder.horizon); step++) {
    const after = predictor.step(inputsAt(encoder, windows, step), state)
    state = after.state
    if (isAhead(step)) {
      for (const [row, window] of windows.entries()) {
        const seen = stepOf(window, step, encoder)
        // Sorted: nothing keeps heads of their own from crossing.
        if (seen) answers.push({ ...seen, heads: after.outputs.slice(row * K, (row + 1) * K).sort() })
      }
    }
    await pause()
  }
  return answers
}

/** All leads from each origin. */
export const answerOrigins = (
  predictor: Predictor,
  encoder: Encoder,
  origins: readonly number[],
  pause: Pause,
): Promise<Answer[]> => {
  const combs = Array.from({ length: combsOf(encoder.horizon) }, (_, comb) => comb)
  const windows = origins.flatMap((origin) => combs.map((comb) => ({ origin, comb })))
  return answerWindows(predictor, encoder, windows, pause)
}
