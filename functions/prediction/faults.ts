import { countFaults } from '../../db/queries/prediction-inputs.ts'
import type { Run } from '../../db/query.ts'
import type { Hold } from '../http/background.ts'
import { log, logFailure } from '../http/log.ts'

/**
 * Why the functions predicted without the model. `refused`: the database accepted the submission only without
 * predictions.
 */
export const PREDICTION_FAULTS = [
  'timeout',
  'inputs-error',
  'corrupt-weights',
  'model-error',
  'experts-error',
  'refused',
] as const

export type PredictionFault = (typeof PREDICTION_FAULTS)[number]

export type Faults = { count(reason: PredictionFault, error: unknown, hold: Hold): void }

/** Between two writes, and two lines of the log, of one reason: what fails may fail a thousand times a second. */
const REST_MS = 10_000

/** Counts in the database why predictions were made without the model, or not at all. */
export const createFaults = (run: Run, now: () => number = Date.now): Faults => {
  const pending = new Map<PredictionFault, { faults: number; writtenAt: number }>()

  return {
    count: (reason, error, hold) => {
      const one = pending.get(reason) ?? { faults: 0, writtenAt: Number.NEGATIVE_INFINITY }
      pending.set(reason, one)
      one.faults++
      if (now() - one.writtenAt < REST_MS) return
      const { faults } = one
      Object.assign(one, { faults: 0, writtenAt: now() })
      log('warn', 'predicted without the model', { reason, faults, error: String(error) })
      hold(run(countFaults(reason, faults)).catch(logFailure))
    },
  }
}
