import type { z } from '@hono/zod-openapi'
import type { JobPlace, ParentFacts, QueuePlace } from '../../db/queries/job-facts.ts'
import type { JobSummaryRow } from '../../db/queries/jobs.ts'
import { isFinished } from '../../db/rules/job-states.ts'
import { FIRST_PARKED_LANE, laneOf } from '../../db/rules/lanes.ts'
import { type Eta, estimateEtas, etaAfter } from '../prediction/eta/eta.ts'
import { type Ahead, etaBehind, etaInQueue, etaOfRunning, sumAhead } from '../prediction/eta/place.ts'
import type { LaneSum, QueueSnapshot } from '../prediction/eta/queue-snapshot.ts'
import { isRunnable } from '../prediction/eta/queue-sums.ts'
import type { OrgQueue } from '../prediction/org-queues.ts'
import type { eta } from './schemas.ts'
import type { SubmittedRow } from './stored-job.ts'

type EtaView = z.output<typeof eta>

/** What was promised at submission: the same whenever it is asked for. */
export const viewPromise = (row: SubmittedRow): EtaView => {
  if (row.promised_wait_ms === null) return null
  const createdAt = Date.parse(row.created_at)
  const notBeforeMs = Math.max(0, (row.run_at ? Date.parse(row.run_at) : 0) - createdAt)
  return viewEta(createdAt, etaAfter(row.promised_wait_ms, { ...runtimeOf(row), notBeforeMs }))
}

/** The ETA as of now. */
export const etaOf = (row: JobSummaryRow, place: JobPlace, { workers, queue }: OrgQueue): EtaView => {
  if (isFinished(row.status)) return null
  const now = Date.parse(place.now)
  if (row.status === 'running') return viewRunning(row, now)
  if (!queue || place.pauses.length > 0 || !isRunnable(row, workers)) return null
  return viewEta(now, waitingEta(row, place, queue))
}

const viewRunning = (row: JobSummaryRow, now: number): EtaView =>
  viewEta(now, etaOfRunning(row.started_at ? now - Date.parse(row.started_at) : 0, runtimeOf(row)))

const runtimeOf = (row: { predicted_ms: number; predicted_p90_ms: number }) => ({
  p50Ms: row.predicted_ms,
  p90Ms: row.predicted_p90_ms,
})

const waitingEta = (row: JobSummaryRow, place: JobPlace, snapshot: QueueSnapshot): Eta | null => {
  const now = Date.parse(place.now)
  const until = place.wake_at ?? row.run_at
  const notBeforeMs = Math.max(0, until ? Date.parse(until) - now : 0)
  const job = { lane: laneOf(row.rank), ...runtimeOf(row), notBeforeMs }
  if (place.lane !== null) return queuedEta(job, place, snapshot)
  const own = estimateEtas(snapshot, [job])[0] ?? null
  if (row.status !== 'blocked') return own
  if (place.parents.length < place.open_parents) return null
  const parents = place.parents.map((parent) => parentEta(parent, snapshot))
  return own && parents.every((eta) => eta !== null) ? etaBehind(own, parents, job) : null
}

/** Only of one that runs or stands in the queue. What that waits for itself would be a guess. */
const parentEta = (parent: ParentFacts, snapshot: QueueSnapshot): Eta | null => {
  const job = { lane: parent.lane ?? 0, ...runtimeOf(parent) }
  if (parent.ran_ms !== null) return etaOfRunning(parent.ran_ms, job)
  return parent.lane === null ? null : queuedEta(job, parent, snapshot)
}

const queuedEta = (
  job: { lane: number; p50Ms: number; p90Ms: number },
  place: QueuePlace,
  snapshot: QueueSnapshot,
): Eta | null => {
  const ahead = aheadOf(place, snapshot.lanes)
  return ahead ? etaInQueue(snapshot, { ...job, lane: ahead.lane }, ahead) : null
}

/** Undefined: it does not stand in the queue, or is parked. Flows share equally: each is given as much as the job's own. */
export const aheadOf = (
  place: QueuePlace,
  lanes: readonly LaneSum[],
): (Ahead & { lane: number }) | undefined => {
  const { lane, ahead_jobs, ahead_ms, counted, lane_position, flows } = place
  if (lane === null || lane >= FIRST_PARKED_LANE || ahead_jobs === null) return undefined
  const own = { lane, jobs: ahead_jobs, predictedMs: ahead_ms ?? 0 }
  if (flows !== null && flows > 1) {
    const all = sumAhead(lanes, Number.POSITIVE_INFINITY, 0)
    const jobs = Math.max(own.jobs, Math.min(own.jobs * flows, all.jobs - 1))
    const predictedMs = Math.max(own.predictedMs, Math.min(own.predictedMs * flows, all.predictedMs))
    return { lane, jobs, predictedMs, counted: false }
  }
  if (counted) return { ...own, counted }
  const { jobs, predictedMs } = sumAhead(lanes, lane, lane_position ?? 0)
  return {
    lane,
    jobs: Math.max(jobs, own.jobs),
    predictedMs: Math.max(predictedMs, own.predictedMs),
    counted: false,
  }
}

export const viewEta = (now: number, eta: Eta | null): EtaView => {
  if (!eta) return null
  const at = (ms: number): string => new Date(Math.min(now + ms, LAST_TIME)).toISOString()
  return {
    start_at: at(eta.startP50Ms),
    finish_p50_at: at(eta.finishP50Ms),
    finish_p90_at: at(eta.finishP90Ms),
  }
}

/** The end of the year 9999: four digits are what clients read. */
const LAST_TIME = 253_402_300_799_000
