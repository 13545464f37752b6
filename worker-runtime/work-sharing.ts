import { setTimeout as delay } from 'node:timers/promises'
import { JOBS_READY, notify } from '../db/queries/notifications.ts'
import { askForWork } from '../db/queries/workers.ts'
import type { Run } from '../db/query.ts'
import type { ClaimedJob } from '../db/queue/exchange.ts'
import { releaseJobs } from '../db/queue/leases.ts'
import type { Capacity } from './capacity.ts'
import type { ClaimPlanner } from './claim-planner.ts'
import { retryFor } from './database.ts'
import type { ExchangeReport } from './exchanger.ts'
import type { HeldJobs } from './held-jobs.ts'
import { LEASE_SECONDS } from './lease-book.ts'

export type WorkSharing = {
  /** Notified that jobs became ready. */
  jobsAreReady(): void
  /** Notified that another worker has nothing to do. */
  workerIsIdle(): void
  /** Notified that an organisation, or one type of it, is paused. */
  queueIsPaused(payload: string): void
  observe(report: Pick<ExchangeReport, 'claim' | 'claimed' | 'becameReady'>): void
  giveBack(jobs: readonly ClaimedJob[], reason: string): Promise<void>
  stop(): void
}

/** A worker whose slots are all but full leaves a new job to emptier ones for this long. */
const YIELD_MS = 15
/** What a claim brings that was on its way when the queue was paused is given back too. */
const PAUSE_AGAIN_MS = 1_000
/** An idle worker asks the others no more often than this. */
const ASK_MS = 500

const UUID_LENGTH = 36

/**
 * Work goes to the least loaded worker. All hear of a new job at the same moment; an idle one claims at once, a busy
 * one a little later, the more it has to do. And who has nothing left asks for what others hold and have not started:
 * they give half of it back.
 */
export const createWorkSharing = (options: {
  run: Run
  workerId: string
  jobs: HeldJobs
  planner: ClaimPlanner
  capacity: Capacity
  wake: () => void
  onError: (error: Error) => void
}): WorkSharing => {
  const { run, jobs, capacity } = options
  let askedAtMs = Number.NEGATIVE_INFINITY
  let yielding = false
  let stopped = false

  const jobsAreReady = async (): Promise<void> => {
    const load = jobs.running() / capacity.slots
    if (load >= 1 || yielding) return
    yielding = true
    if (load > 0) await delay(YIELD_MS * load)
    yielding = false
    options.wake()
  }

  const giveBack = async (held: readonly ClaimedJob[], reason: string): Promise<void> => {
    if (held.length === 0) return
    try {
      const released = await retryFor(LEASE_SECONDS * 1000, () => run(releaseJobs(held, reason)))
      await run(notify(JOBS_READY, [...new Set(released.map(({ type }) => type))]))
    } catch (error) {
      // They are taken over when their leases run out.
      options.onError(error as Error)
    }
  }

  const givePausedBack = (payload: string): void => {
    const [orgId, type] = [payload.slice(0, UUID_LENGTH), payload.slice(UUID_LENGTH + 1)]
    const isPaused = (job: ClaimedJob): boolean => job.org_id === orgId && (type === '' || job.type === type)
    void giveBack(jobs.takeUnstartedWhere(isPaused), 'paused')
  }

  return {
    queueIsPaused: (payload) => {
      givePausedBack(payload)
      setTimeout(() => {
        if (!stopped) givePausedBack(payload)
      }, PAUSE_AGAIN_MS).unref()
    },
    jobsAreReady: () => void jobsAreReady(),
    workerIsIdle: () => {
      options.planner.othersAreIdle()
      if (!stopped) void giveBack(jobs.takeUnstarted(Math.ceil(jobs.unstarted() / 2)), 'shared')
    },
    observe: ({ claim, claimed, becameReady }) => {
      // Jobs that this worker's own outcomes released, and perhaps more than it can take.
      if (becameReady > 0) void run(notify(JOBS_READY, [''])).catch(options.onError)
      const foundNothing = claim.limit > 0 && claim.everywhere && claimed.length === 0
      const idle = foundNothing && jobs.running() === 0
      if (!idle || stopped || performance.now() - askedAtMs < ASK_MS) return
      askedAtMs = performance.now()
      void run(askForWork(options.workerId)).catch(options.onError)
    },
    giveBack,
    stop: () => {
      stopped = true
    },
  }
}
