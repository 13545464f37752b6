import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { Run } from '../../db/query.ts'
import { DatabaseUnavailable, NotEntered } from '../database-errors.ts'
import type { Hold } from '../http/background.ts'
import { createFaults, type Faults, type PredictionFault } from './faults.ts'
import { createInputCache, type InputCache, type Inputs, InputsTimeout } from './inputs.ts'
import { createModelStore, type ModelStore } from './model-store.ts'
import type { OrgQueues } from './org-queues.ts'
import { type JobToPredict, predictAll } from './predictor.ts'
import { ESTIMATE_MODEL, type RuntimeModel } from './runtime-model.ts'

export type JobPredictions = {
  /** For each job, in their order. Null: the statement that stores it goes by what it finds. Never throws. */
  predict(jobs: readonly JobToPredict[], member: Asking): Promise<(JobPrediction | null)[]>
  /** Counts a submission that the database rejected with its predictions and accepted without them. */
  refused(error: unknown, hold: Hold): void
}

/** Who asks. `dryRun`: the jobs are not going to be submitted. */
type Asking = { run: Run; orgId: string; hold: Hold; dryRun?: boolean }

type Parts = { inputs: InputCache; models: ModelStore; faults: Faults; now: () => number }

/** What one isolate keeps for predictions. `run` is for what belongs to no organisation. */
export const createJobPredictions = (run: Run, queues?: OrgQueues): JobPredictions => {
  const faults = createFaults(run)
  return joinParts({
    inputs: createInputCache(queues && { queues }),
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

  /** With the network, with the other experts, by the running estimate; after that it is left to the statement. */
  const fallbacks = (model: RuntimeModel): { model: RuntimeModel; fault: PredictionFault }[] => [
    ...(model === models.plain ? [] : [{ model, fault: 'model-error' as const }]),
    { model: models.plain, fault: 'experts-error' },
    { model: ESTIMATE_MODEL, fault: 'experts-error' },
  ]

  const predict: JobPredictions['predict'] = async (jobs, member) => {
    const seen = await look(jobs, member)
    if (!seen) return jobs.map(() => null)
    const at = now()
    for (const { model, fault } of fallbacks(models.get(seen.champion, member.hold))) {
      try {
        const { predictions, arriving } = predictAll(jobs, seen, model, at)
        if (!member.dryRun) {
          seen.arrive(arriving)
          seen.submitted(jobs, at)
        }
        return predictions
      } catch (error) {
        faults.count(fault, error, member.hold)
      }
    }
    return jobs.map(() => null)
  }

  return {
    predict: async (jobs, member) => {
      try {
        return await predict(jobs, member)
      } catch (error) {
        faults.count('model-error', error, member.hold)
        return jobs.map(() => null)
      }
    },
    refused: (error, hold) => faults.count('refused', error, hold),
  }
}
