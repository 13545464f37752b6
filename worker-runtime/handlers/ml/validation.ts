import { pinballLoss } from '../../../functions/prediction/lstm/pinball.ts'
import { createPredictor } from '../../../functions/prediction/lstm/predictor.ts'
import type { Weights } from '../../../functions/prediction/lstm/weights.ts'
import { type Answer, answerWindows, type Pause, QUANTILES } from './answers.ts'
import { quantileOf } from './naive.ts'
import { spreadOrigins } from './origins.ts'
import type { Plan } from './plan.ts'
import { combsOf } from './windows.ts'

/** How much wider than the heads say the interval must be on either side of the median. */
export type Calibration = { below: number; above: number }

export type Validation = {
  loss(weights: Weights): Promise<number>
  calibrate(weights: Weights): Promise<Calibration>
}

/** After every epoch so many windows are answered: as long as a few steps of training take. */
const WINDOWS = 64
/**
 * Few values say little of a tenth of them: the interval is never made wider than this, and never narrower than the heads say.
 * On 39 series it has 79 % of the held-out values, with down to half the width 73 %.
 */
const WIDEST = 3

/** Windows whose leads lie between `fitEnd` and `trainEnd`: the network has not been trained on them. */
export function createValidation({ encoder, horizon, fitEnd, trainEnd }: Plan, pause: Pause): Validation {
  const windows = spreadOrigins(fitEnd - 1, trainEnd - 1 - horizon, WINDOWS).map((origin, n) => ({
    origin,
    comb: n % combsOf(horizon),
  }))

  const answer = async (weights: Weights): Promise<Answer[]> => {
    const predictor = createPredictor(weights)
    try {
      return await answerWindows(predictor, encoder, windows, pause)
    } finally {
      predictor.dispose()
    }
  }

  return {
    loss: async (weights) => {
      const answers = await answer(weights)
      const y = new Float32Array(answers.length * QUANTILES.length)
      for (const [n, { heads }] of answers.entries()) y.set(heads, n * QUANTILES.length)
      const targets = Float32Array.from(answers, ({ origin, lead }) => encoder.target(origin, lead))
      return pinballLoss(y, { targets, weights: targets.map(() => 1) }, QUANTILES).loss
    },
    calibrate: async (weights) => {
      const answers = await answer(weights)
      // How far a value is from the median, as a share of how far its head is.
      const share = (head: number): number => {
        const shares = answers.map(({ origin, lead, heads }) => {
          const median = heads[1] as number
          const width = (heads[head] as number) - median
          return width === 0 ? 0 : (encoder.target(origin, lead) - median) / width
        })
        const needed = quantileOf(shares.sort(ascending), 0.9)
        return Math.min(Math.max(needed, 1), WIDEST)
      }
      return { below: share(0), above: share(2) }
    },
  }
}

const ascending = (a: number, b: number): number => a - b
