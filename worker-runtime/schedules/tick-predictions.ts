/**
 * The predictor of the edge, in a pod: jobs of schedules are predicted by what predicts all others, and are learned from in the
 * same way. It is loaded when the first tick is near, because it brings tfjs along: workers that fire nothing do without.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { Run } from '../../db/query.ts'
import type { ScheduledJob } from '../../db/rules/scheduled-job.ts'
import type { JobPredictions } from '../../functions/prediction/job-predictions.ts'
import type { JobToPredict } from '../../functions/prediction/predictor.ts'

export type TickPredictions = {
  /** Loads what there is to load, in the background. */
  prepare(): void
  /** For `count` jobs that are alike. Null where there is none, or not in time. Never throws. */
  predict(orgId: string, job: ScheduledJob, count: number): Promise<(JobPrediction | null)[]>
  /** Counts ticks that the database rejected with their predictions and accepted without them. */
  refused(error: unknown): Promise<void>
}

/** A tick waits for this long at most until the predictor is there, and then as long as a submission would. */
const PATIENCE_MS = 250

export const createTickPredictions = (options: {
  run: Run
  load?: (run: Run) => Promise<JobPredictions>
  onError: (error: Error) => void
}): TickPredictions => {
  const { run, load = loadPredictor, onError } = options
  let predictor: Promise<JobPredictions | undefined> | undefined

  const get = (): Promise<JobPredictions | undefined> => {
    predictor ??= load(run).catch((error: Error) => {
      onError(error)
      predictor = undefined
      return undefined
    })
    return predictor
  }

  return {
    prepare: () => void get(),
    predict: async (orgId, job, count) => {
      const jobs = Array.from({ length: count }, () => toPredict(job))
      const ready = await Promise.race([get(), delay(PATIENCE_MS, undefined, { ref: false })])
      return ready ? ready.predict(jobs, { run, orgId, hold: () => {} }) : jobs.map(() => null)
    },
    refused: async (error) => (await get())?.refused(error, () => {}),
  }
}

const loadPredictor = async (run: Run): Promise<JobPredictions> => {
  const [{ useWasmBackend }, { createJobPredictions }] = await Promise.all([
    import('../learning/wasm-backend.ts'),
    import('../../functions/prediction/job-predictions.ts'),
  ])
  await useWasmBackend()
  return createJobPredictions(run)
}

const toPredict = (job: ScheduledJob): JobToPredict => ({
  type: job.type,
  name: job.name,
  priority: job.priority,
  payload: job.payload,
  timeoutSeconds: job.timeout_seconds,
  cpuUnits: job.resources.cpu_units,
  memoryMb: job.resources.memory_mb,
  runAtMs: null,
  parents: [],
})
