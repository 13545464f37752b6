import type { JobPrediction } from '../../db/learning/prediction.ts'
import type { Run } from '../../db/query.ts'
import { INPUTS } from '../../functions/prediction/model/encoder.ts'
import { EXPERTS } from '../../functions/prediction/model/experts.ts'
import { packSample, type Sample } from '../../functions/prediction/model/sample.ts'
import { claim, completed, end, newJob, seedJobs, type Tenant } from './jobs.ts'

/** What a predictor saw that always says a second, and three at most. */
export const sampleWith = (overrides: Partial<Sample> = {}): Sample => {
  const log = Math.log(1000)
  return {
    submittedAtS: 1_800_000_000,
    baseLog: log,
    runs: 0,
    seen: 0,
    advice: Array.from({ length: EXPERTS.length + 1 }, () => log),
    ownP50Log: log,
    p50Log: log,
    spreadLog: 1,
    simpleSpreadLog: 1,
    networkSpreadLog: 1,
    p90Log: log + 1,
    sizeLog: 3,
    timeoutLog: 0,
    cpuLog: 0,
    gapLog: 0,
    x: new Float32Array(INPUTS),
    ...overrides,
  }
}

export const predictionWith = (sample: Sample): JobPrediction => ({
  p50Log: sample.p50Log,
  p90Log: sample.p90Log,
  p99Log: null,
  source: 'lstm',
  modelVersion: 1,
  residualLog: 0,
  spreadLog: 0,
  sample: Buffer.from(packSample(sample)).toString('base64'),
  promisedWaitMs: null,
})

export type Lesson = { name?: string; ranMs: number; sample?: Sample | null }

/** Jobs that are submitted with a prediction, unless without a sample, and complete after so many milliseconds. */
export const runLessons = async (run: Run, tenant: Tenant, lessons: readonly Lesson[]): Promise<void> => {
  const jobs = lessons.map(({ name, sample = sampleWith() }) =>
    newJob({ ...(name && { name }), prediction: sample && predictionWith(sample) }),
  )
  const ids = await seedJobs(run, tenant, jobs)
  const claimed = await claim(run, 'worker-1', jobs.length)
  const byId = new Map(claimed.map((job) => [job.job_id, job]))
  const ends = ids.flatMap((id, n) => {
    const job = byId.get(id)
    return job ? [completed(job, null, lessons[n]?.ranMs ?? 0)] : []
  })
  await end(run, ...ends)
}
