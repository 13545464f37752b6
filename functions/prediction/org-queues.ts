/**
 * Caches, for each isolate, the workers and each organisation's view of the queue. Submissions and ETAs use it to estimate
 * waits. Between reads from the database the queue is extrapolated.
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
}

/** With the jobs that this isolate is submitting. */
export type ArrivingQueue = OrgQueue & {
  /** Ready jobs of all organisations. */
  queueDepth: number
}

export type OrgQueues = {
  /** Whether it was loaded less than a second ago. */
  isFresh(orgId: string): boolean
  /** The stored jobs, as they are now; undefined if they were never loaded. */
  stored(orgId: string): OrgQueue | undefined
  /** The stored jobs and those that are about to be. */
  arriving(orgId: string): ArrivingQueue | undefined
  /** Stores what was just loaded, and refreshes the sums if they are due. */
  keep(orgId: string, seen: { workers: LiveWorker[]; queue: QueueSums | null }, run: Run, hold: Hold): void
  /** Adds jobs that are about to join the queue: the next load may not see them yet. */
  arrive(orgId: string, jobs: readonly { lane: number; p50Ms: number }[]): void
}

/** `arrived`: jobs that the sums of the queue may not count yet, because the sums are older. */
type Kept = {
  workers: readonly LiveWorker[]
  stored: Moving | undefined
  arriving: Moving | undefined
  queueDepth: number
  loadedAt: number
  arrived: { at: number; lane: number; p50Ms: number }[]
}

/** A queue as it was at some time. */
type Moving = { queue: QueueSnapshot; at: number }

const FRESH_MS = 1_000
/** Extrapolating takes a tenth of a request, so reads reuse the result for this long. */
const STEP_MS = 50
/** From the prediction of a job to its commit. */
const COMMIT_MS = 20
/** More make no difference to a wait, and would take memory. */
const MAX_ARRIVED = 10_000
const MAX_KEPT = 2_000

export const createOrgQueues = (now: () => number = Date.now): OrgQueues => {
  const kept = new Map<string, Kept>()

  return {
    isFresh: (orgId) => now() - (kept.get(orgId)?.loadedAt ?? Number.NEGATIVE_INFINITY) < FRESH_MS,
    stored: (orgId) => {
      const org = kept.get(orgId)
      if (!org) return undefined
      if (org.stored && now() - org.stored.at >= STEP_MS) org.stored = advance(org.stored, now())
      return { workers: org.workers, queue: org.stored?.queue }
    },
    arriving: (orgId) => {
      const org = kept.get(orgId)
      if (!org) return undefined
      if (org.arriving) org.arriving = advance(org.arriving, now())
      return { workers: org.workers, queue: org.arriving?.queue, queueDepth: org.queueDepth }
    },
    keep: (orgId, { workers, queue }, run, hold) => {
      const at = now()
      const takenAt = at - (queue?.age_ms ?? 0) - COMMIT_MS
      const arrived = (kept.get(orgId)?.arrived ?? []).filter((job) => job.at > takenAt).slice(-MAX_ARRIVED)
      const stored = queue ? toSnapshot(queue, workers) : undefined
      kept.delete(orgId)
      kept.set(orgId, {
        workers,
        stored: stored && { queue: stored, at },
        arriving: stored && { queue: addToQueue(stored, arrived), at },
        queueDepth: queue?.depth ?? 0,
        loadedAt: at,
        arrived,
      })
      for (const oldest of kept.keys()) {
        if (kept.size <= MAX_KEPT) break
        kept.delete(oldest)
      }
      if (queue && areSumsDue(queue)) hold(run(refreshQueueSums()).catch(logFailure))
    },
    arrive: (orgId, jobs) => {
      const org = kept.get(orgId)
      if (!org?.arriving) return
      org.arriving.queue = addToQueue(org.arriving.queue, jobs)
      org.arrived.push(...jobs.map(({ lane, p50Ms }) => ({ lane, p50Ms, at: now() })))
    },
  }
}

const advance = ({ queue, at }: Moving, now: number): Moving => ({
  queue: advanceQueue(queue, now - at),
  at: now,
})
