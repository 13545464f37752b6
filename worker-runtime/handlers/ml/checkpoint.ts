/**
 * Training in a checkpoint. Four sets of weights (those that train, the best so far, and the optimiser's two means) are most of
 * it: with 24 hidden units they take three quarters of the 256 KiB that a checkpoint may have, with 32 they would not fit.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Weights } from '../../../functions/prediction/lstm/weights.ts'
import {
  CorruptWeights,
  parseWeights,
  serializeWeights,
} from '../../../functions/prediction/lstm/weights-format.ts'
import type { TrainingState } from './training.ts'

/** Changes with whatever makes the same data and settings train otherwise: an older checkpoint is of no use then. */
const VERSION = 1

/** What a checkpoint must agree on to be gone on from: the settings and every value. */
export const fingerprint = (settings: Record<string, unknown>, values: Float64Array): string =>
  createHash('sha256')
    .update(JSON.stringify({ VERSION, ...settings }))
    .update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    .digest('hex')

const schema = z.object({
  of: z.string(),
  stage: z.enum(['fit', 'finish']),
  validation_losses: z.array(z.number()).min(1),
  train_losses: z.array(z.number()),
  best: z.object({ epoch: z.int().min(0), loss: z.number(), weights: z.string() }),
  finished: z.int().min(0),
  weights: z.string(),
  optimiser: z.object({ steps: z.int().min(1), m: z.string(), v: z.string() }).nullable(),
})

export function toCheckpoint(state: TrainingState, of: string): z.input<typeof schema> {
  const { stage, best, finished, learner } = state
  const { weights, optimiser } = learner
  const { shape } = weights
  return {
    of,
    stage,
    validation_losses: state.validationLosses.map(short),
    train_losses: state.trainLosses.map(short),
    best: { ...best, weights: pack(best.weights) },
    finished,
    weights: pack(weights),
    optimiser: optimiser
      ? {
          steps: optimiser.steps,
          m: pack({ shape, parameters: optimiser.m }),
          v: pack({ shape, parameters: optimiser.v }),
        }
      : null,
  }
}

/** Undefined if it is of other data or settings, of another release, or damaged. */
export function fromCheckpoint(checkpoint: unknown, of: string): TrainingState | undefined {
  const parsed = schema.safeParse(checkpoint)
  if (!parsed.success || parsed.data.of !== of) return undefined
  const { stage, best, finished, weights, optimiser, ...losses } = parsed.data
  try {
    return {
      stage,
      validationLosses: losses.validation_losses,
      trainLosses: losses.train_losses,
      best: { ...best, weights: unpack(best.weights) },
      finished,
      learner: {
        weights: unpack(weights),
        optimiser: optimiser
          ? { steps: optimiser.steps, m: unpack(optimiser.m).parameters, v: unpack(optimiser.v).parameters }
          : undefined,
      },
    }
  } catch (error) {
    if (error instanceof CorruptWeights) return undefined
    throw error
  }
}

const pack = (weights: Weights): string => Buffer.from(serializeWeights(weights)).toString('base64')
const unpack = (text: string): Weights => parseWeights(Buffer.from(text, 'base64'))

/** Losses are shown, and not gone on from. */
const short = (loss: number): number => Number(loss.toPrecision(6))
