import { type ClaimedJob, claimJobs } from '../db/queries/leases.ts'
import type { Run } from '../db/query.ts'
import { LEASE_SECONDS } from './lease-keeper.ts'
import { createPoller } from './poller.ts'

/** Covers notifications that got lost. */
const IDLE_POLL_MS = 5_000

export type Claimer = {
  start(): void
  /** Jobs have become ready. */
  notify(): void
  /** A slot has become free. */
  slotFreed(): void
  stop(): Promise<void>
}

/** Claims as many jobs as there are free slots, whenever there may be some. */
export const createClaimer = (options: {
  run: Run
  workerId: string
  types: string[]
  freeSlots: () => number
  onClaimed: (job: ClaimedJob, claimedAtMs: number) => void
  onError: (error: Error) => void
}): Claimer => {
  let mayHaveMore = true

  const claim = async (): Promise<number> => {
    const limit = options.freeSlots()
    if (limit <= 0) return IDLE_POLL_MS
    mayHaveMore = false
    const { workerId, types } = options
    const claimedAtMs = performance.now()
    const jobs = await options.run(claimJobs({ workerId, types, limit, leaseSeconds: LEASE_SECONDS }))
    for (const job of jobs) options.onClaimed(job, claimedAtMs)
    if (jobs.length < limit) return IDLE_POLL_MS
    mayHaveMore = true
    // A slot that became free during the claim did not wake anyone; from here on slotFreed() does.
    return options.freeSlots() > 0 ? 0 : IDLE_POLL_MS
  }

  const poller = createPoller({ step: claim, onError: options.onError })
  return {
    start: poller.start,
    stop: poller.stop,
    notify: () => {
      mayHaveMore = true
      if (options.freeSlots() > 0) poller.wake()
    },
    slotFreed: () => {
      if (mayHaveMore) poller.wake()
    },
  }
}
