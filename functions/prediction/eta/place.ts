import { type Eta, estimateEtas, etaAfter, type QueuedJob } from './eta.ts'
import type { LaneSum, QueueSnapshot } from './queue-snapshot.ts'

/** What is ahead of one job, by its lane. */
export type Ahead = { jobs: number; predictedMs: number; counted: boolean }

/** Beyond what was counted: the lower lanes, and of its own what comes before its place. */
export const sumAhead = (lanes: readonly LaneSum[], lane: number, position: number): Ahead => {
  const ahead = { jobs: 0, predictedMs: 0, counted: false }
  for (const one of lanes) {
    const share = one.lane < lane ? 1 : one.lane === lane ? position : 0
    ahead.jobs += Math.round(one.jobs * share)
    ahead.predictedMs += one.predictedMs * share
  }
  return ahead
}

/** Of a job that stands in the queue itself: what is ahead of it was counted, and the rest is behind. */
export const etaInQueue = (snapshot: QueueSnapshot, job: QueuedJob, ahead: Ahead): Eta | null => {
  const totalMs = snapshot.lanes.reduce((sum, { predictedMs }) => sum + predictedMs, 0)
  const behindMs = Math.max(0, totalMs - ahead.predictedMs - job.p50Ms)
  const lanes = [
    { lane: job.lane, jobs: ahead.jobs, predictedMs: ahead.predictedMs },
    { lane: job.lane + 1, jobs: 1, predictedMs: behindMs },
  ]
  return estimateEtas({ ...snapshot, lanes }, [job])[0] ?? null
}

/** Of a job that runs, from now. */
export const etaOfRunning = (ranMs: number, { p50Ms, p90Ms }: { p50Ms: number; p90Ms: number }): Eta => ({
  startP50Ms: -ranMs,
  finishP50Ms: Math.max(0, p50Ms - ranMs),
  finishP90Ms: Math.max(0, p90Ms - ranMs),
})

/** After others have finished, and not before its own turn. */
export const etaBehind = (own: Eta, others: readonly Eta[], job: QueuedJob): Eta =>
  etaAfter(Math.max(own.startP50Ms, ...others.map(({ finishP50Ms }) => finishP50Ms)), job)
