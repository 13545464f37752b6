/**
 * The workers, and the queue as each organisation sees it, kept for each isolate: submissions predict waits by it, and ETAs
 * of single jobs are computed from it. Between two looks at the database the queue is brought up to date by computation.
 */

import { type LiveWorker, type QueueSums, refreshQueueSums } from '../../db/queries/queue-facts.ts'
import type { Run } from '../../db/query.ts'
import type { Hold } from '../http/background.ts'
import { logFailure } from '../http/log.ts'
import { addToQueue, advanceQueue, type QueueSnapshot } from './eta/queue-snapshot.ts'
import { areSumsDue, toSnapshot } from './eta/queue-sums.ts'

export type OrgQueue = {
  workers: readonly LiveWorker[]
  /** Undefined right after a crash of the server. */
  queue: QueueSnapshot | undefined
  /** Ready jobs of all organisations. */
  queueDepth: number
}

export type OrgQueues = {
  /** As it is now, or undefined if it was never looked at. */
  get(orgId: string): OrgQueue | undefined
  /** Whether it was looked at less than a second ago. */
  isFresh(orgId: string): boolean
  /** It has been looked at. Has the sums taken again if it is time. */
  keep(orgId: string, seen: { workers: LiveWorker[]; queue: QueueSums | null }, run: Run, hold: Hold): void
  /** Tells of jobs that are about to join the queue: the next look may not see them yet. */
  arrive(orgId: string, jobs: readonly { lane: number; p50Ms: number }[]): void
}

/** `arrived`: jobs that the sums of the queue may not count yet, because they were taken before. */
type Kept = OrgQueue & {
  loadedAt: number
  advancedAt: number
  arrived: { at: number; lane: number; p50Ms: number }[]
}

const FRESH_MS = 1_000
/** Bringing the queue up to date takes as long as a tenth of a request, so it is done in steps. */
const STEP_MS = 50
/** From the prediction of a job to its commit. */
const COMMIT_MS = 20
/** More make no difference to a wait, and would take memory. */
const MAX_ARRIVED = 10_000
const MAX_KEPT = 2_000

export const createOrgQueues = (now: () => number = Date.now): OrgQueues => {
  const kept = new Map<string, Kept>()

  return {
    get: (orgId) => {
      const org = kept.get(orgId)
      if (!org) return undefined
      const at = now()
      if (org.queue && at - org.advancedAt >= STEP_MS) {
        org.queue = advanceQueue(org.queue, at - org.advancedAt)
        org.advancedAt = at
      }
      return org
    },
    isFresh: (orgId) => now() - (kept.get(orgId)?.loadedAt ?? Number.NEGATIVE_INFINITY) < FRESH_MS,
    keep: (orgId, { workers, queue }, run, hold) => {
      const loadedAt = now()
      const takenAt = loadedAt - (queue?.age_ms ?? 0) - COMMIT_MS
      const arrived = (kept.get(orgId)?.arrived ?? []).filter(({ at }) => at > takenAt).slice(-MAX_ARRIVED)
      kept.delete(orgId)
      kept.set(orgId, {
        workers,
        queue: queue ? addToQueue(toSnapshot(queue, workers), arrived) : undefined,
        queueDepth: queue?.depth ?? 0,
        loadedAt,
        advancedAt: loadedAt,
        arrived,
      })
      for (const [oldest] of kept) {
        if (kept.size <= MAX_KEPT) break
        kept.delete(oldest)
      }
      if (queue && areSumsDue(queue)) hold(run(refreshQueueSums()).catch(logFailure))
    },
    arrive: (orgId, jobs) => {
      const org = kept.get(orgId)
      if (!org?.queue) return
      org.queue = addToQueue(org.queue, jobs)
      org.arrived.push(...jobs.map(({ lane, p50Ms }) => ({ lane, p50Ms, at: now() })))
    },
  }
}
