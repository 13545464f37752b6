import { laneOf } from '../../db/rules/lanes.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import { type Eta, estimateEtas, type QueuedJob } from './eta/eta.ts'
import { etaBehind } from './eta/place.ts'
import { isRunnable } from './eta/queue-sums.ts'
import type { Inputs } from './inputs.ts'
import type { JobToPredict } from './predictor.ts'
import type { RuntimePrediction } from './runtime-model.ts'

export type Waits = {
  /** When each will start. Null: nothing can run it now, or it waits for jobs that are not looked at here. */
  etas: (Eta | null)[]
  /** Those that join the queue at once. */
  arriving: QueuedJob[]
}

export const predictWaits = (
  jobs: readonly JobToPredict[],
  runtimes: readonly (RuntimePrediction | null)[],
  inputs: Inputs,
  nowMs: number,
): Waits => {
  const { queue, workers } = inputs
  if (!queue) return { etas: jobs.map(() => null), arriving: [] }
  const queued = jobs.map((job, n) => toQueued(job, runtimes[n] ?? null, nowMs))
  const etas = estimateEtas(queue, queued)
  const can = jobs.map(
    (job, n) =>
      runtimes[n] !== null &&
      !inputs.series(job)?.paused &&
      isRunnable({ type: job.type, cpu_units: job.cpuUnits, memory_mb: job.memoryMb }, workers),
  )
  const settled = new Map<number, Eta | null>()
  const settle = (n: number): Eta | null => {
    const known = settled.get(n)
    if (known !== undefined) return known
    const alone = can[n] ? etas[n] : null
    const parents = jobs[n]?.parents?.map(settle)
    const job = queued[n]
    const eta = alone && job && parents?.every((one) => one !== null) ? etaBehind(alone, parents, job) : null
    settled.set(n, eta)
    return eta
  }
  const arriving = queued.filter((job, n) => can[n] && !job.isLater && job.notBeforeMs === 0)
  return { etas: jobs.map((_, n) => settle(n)), arriving }
}

/** Somebody whom nothing is known of stands nowhere in the way. */
const toQueued = (job: JobToPredict, runtime: RuntimePrediction | null, nowMs: number): QueuedJob => {
  const { rank_base, rank_slope } = rankTerms(job.priority, job.timeoutSeconds, runtime?.spreadLog)
  const notBeforeMs = job.runAtMs === null ? 0 : Math.max(0, job.runAtMs - nowMs)
  return {
    lane: laneOf(rank_base + rank_slope * (runtime?.p50Log ?? 0)),
    p50Ms: runtime ? Math.exp(runtime.p50Log) : 0,
    p90Ms: runtime ? Math.exp(runtime.p90Log) : 0,
    notBeforeMs,
    isLater: job.parents?.length !== 0,
  }
}
