import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { Run } from '../../db/query.ts'
import { DatabaseUnavailable, NotEntered } from '../database.ts'
import type { Hold } from '../http/background.ts'
import { createFaults, type Faults } from './faults.ts'
import { createInputCache, type InputCache, type Inputs, InputsTimeout } from './inputs.ts'
import { createModelStore, type ModelStore } from './model-store.ts'
import { type JobToPredict, predictAll } from './predictor.ts'

export type JobPredictions = {
  /** For each job, in their order. Null: the statement that stores it goes by what it finds. Never throws. */
  predict(jobs: readonly JobToPredict[], member: Asking): Promise<(JobPrediction | null)[]>
}

/** Who asks. `dryRun`: the jobs are not going to be submitted. */
type Asking = { run: Run; orgId: string; hold: Hold; dryRun?: boolean }

type Parts = { inputs: InputCache; models: ModelStore; faults: Faults; now: () => number }

/** What one isolate keeps for predictions. `run` is for what belongs to no organisation. */
export const createJobPredictions = (run: Run): JobPredictions => {
  const faults = createFaults(run)
  return joinParts({
    inputs: createInputCache(),
    models: createModelStore({ run, faults }),
    faults,
    now: Date.now,
  })
}

export const joinParts = ({ inputs, models, faults, now }: Parts): JobPredictions => {
  const look = async (
    jobs: readonly JobToPredict[],
    { run, orgId, hold }: Asking,
  ): Promise<Inputs | undefined> => {
    try {
      return await inputs.get(run, orgId, jobs, hold)
    } catch (error) {
      // The submission itself will say so.
      if (error instanceof NotEntered || error instanceof DatabaseUnavailable) return undefined
      faults.count(error instanceof InputsTimeout ? 'timeout' : 'inputs-error', error, hold)
      return undefined
    }
  }

  return {
    predict: async (jobs, member) => {
      const seen = await look(jobs, member)
      if (!seen) return jobs.map(() => null)
      for (const model of [models.get(seen.champion, member.hold), models.plain]) {
        try {
          const { predictions, arriving } = predictAll(jobs, seen, model, now())
          if (!member.dryRun) seen.arrive(arriving)
          return predictions
        } catch (error) {
          faults.count('model-error', error, member.hold)
        }
      }
      return jobs.map(() => null)
    },
  }
}
