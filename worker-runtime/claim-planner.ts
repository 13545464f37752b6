import type { Claim } from '../db/queries/exchange.ts'
import { createAgeShare } from './age-share.ts'
import type { Capacity } from './capacity.ts'
import type { Exchanged } from './exchanger.ts'
import type { HeldJobs } from './held-jobs.ts'
import { createLaneFloors } from './lane-floors.ts'

export type Policy = 'learned' | 'fifo'

export type ClaimPlanner = {
  plan(state: { stopping: boolean; recording: boolean }): Claim
  observe(exchanged: Exchanged): void
  /** The last claim was full, or stopped at a big job, and there is room for another. */
  mayClaimMore(): boolean
  /** Other workers have nothing to do: for a while, nothing is claimed ahead. */
  othersAreIdle(): void
}

/** The share of the work that goes to the oldest jobs, whatever their rank. */
const AGE_SHARE = 0.25
const MODEST_MS = 2_000
const EVERYTHING_MS = 1e300

/**
 * How much to claim, and from where. What can start now, always. As much again to hold ahead, while the queue is so
 * deep that claims come back full, and nobody else is idle.
 */
export const createClaimPlanner = (options: {
  types: readonly string[]
  policy: Policy
  capacity: Capacity
  jobs: () => HeldJobs
  now: () => number
}): ClaimPlanner => {
  const { capacity, now } = options
  const fifo = options.policy === 'fifo'
  const floors = createLaneFloors(now)
  const age = createAgeShare(AGE_SHARE)
  let deep = false
  let passedOver = false
  let reserved = false
  let modestUntilMs = Number.NEGATIVE_INFINITY

  const room = (): { now: number; ahead: number } => {
    const jobs = options.jobs()
    const startNow = Math.max(0, capacity.free().slots - jobs.unstarted())
    const mayHoldAhead = deep && !reserved && now() > modestUntilMs
    const ahead = mayHoldAhead ? Math.max(0, capacity.slots - Math.max(0, jobs.unstarted() - capacity.free().slots)) : 0
    return { now: startNow, ahead }
  }

  const plan: ClaimPlanner['plan'] = ({ stopping, recording }) => {
    const { now: startNow, ahead } = room()
    // To hold more ahead is worth no statement of its own.
    const limit = stopping || (startNow === 0 && !recording) ? 0 : startNow + ahead
    const free = capacity.free()
    return {
      limit,
      startNow,
      ahead: limit - startNow > 0 ? ahead : 0,
      types: options.types,
      freeCpuUnits: free.cpuUnits,
      freeMemoryMb: free.memoryMb,
      segments: fifo || limit === 0 ? [] : floors.segments(),
      ageAllowanceMs: fifo ? EVERYTHING_MS : age.allowanceMs(limit),
      ageLimit: fifo || limit === 0 ? limit : Math.ceil(limit * AGE_SHARE),
      ageFromKey: floors.ageFrom(),
    }
  }

  return {
    plan,
    observe: ({ claim, claimed, news }) => {
      if (claim.limit === 0) return
      deep = claimed.length >= claim.limit
      // A claim ends at the first job that does not fit beside those before it. The next one leaves it aside.
      passedOver = claimed.length > 0 && news.big_waiting
      reserved = news.reserved
      floors.observe(news, !deep || news.big_waiting)
      age.observe({ jobs: claimed.length, predictedMs: news.predicted_ms, agedMs: news.aged_ms })
    },
    mayClaimMore: () => (deep || passedOver) && room().now > 0,
    othersAreIdle: () => {
      modestUntilMs = now() + MODEST_MS
    },
  }
}
