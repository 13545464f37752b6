import { createRandom } from '../../functions/prediction/lstm/random.ts'
import { createTrainer } from '../../functions/prediction/lstm/trainer.ts'
import type { Weights } from '../../functions/prediction/lstm/weights.ts'
import { createAverage } from '../learning/average-weights.ts'
import type { Encoder } from './encoder.ts'
import { makeBatch, QUANTILES } from './windows.ts'

/** Lets others have a turn. Throws if this should stop. */
export type Pause = () => Promise<void>

const BATCH = 32
/** Half of the windows end in so many newest days, half anywhere: habits change. */
const RECENT_DAYS = 2

/**
 * Some steps of training on all that is known, from `weights` on. The optimiser begins anew each time: so whoever goes on from
 * stored weights gets to the same ones.
 */
export const train = async (
  encoder: Encoder,
  weights: Weights,
  options: { steps: number; learningRate: number; seed: number; day: number; pause: Pause },
): Promise<Weights> => {
  const random = createRandom(options.seed)
  const last = encoder.length - 1 - (encoder.horizon.spans[0] as number)
  if (last < 0) return weights
  const trainer = createTrainer({ weights, quantiles: QUANTILES, learningRate: options.learningRate })
  const average = createAverage(weights)
  for (let step = 0; step < options.steps; step++) {
    const origins = Array.from({ length: BATCH }, (_, n) => {
      const among = n % 2 === 0 ? Math.min(RECENT_DAYS * options.day, last + 1) : last + 1
      return last - Math.floor(random() * among)
    })
    trainer.step(makeBatch(encoder, origins, weights.shape.hidden))
    average.add(trainer.weights())
    await options.pause()
  }
  return average.weights()
}
