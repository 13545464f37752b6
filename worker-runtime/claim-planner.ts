import type { Claim } from '../db/queries/exchange.ts'
import { MOST_RERANKED } from '../db/queries/exchange-rerank.ts'
import { AGE_SHARE } from '../db/rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../db/rules/resources.ts'
import { createAgeShare } from './age-share.ts'
import type { Capacity } from './capacity.ts'
import type { Exchanged } from './exchanger.ts'
import type { HeldJobs } from './held-jobs.ts'
import { createLaneFloors } from './lane-floors.ts'

export type Policy = 'learned' | 'fifo'

export type ClaimPlanner = {
  plan(state: { stopping: boolean; recording: boolean }): Claim
  observe(exchanged: Exchanged): void
  /** How long jobs run here decides how many are held ahead. */
  attemptEnded(ranMs: number, token?: string): void
  /** The last claim was full, or left bigger jobs out, and there is room for another. */
  mayClaimMore(): boolean
  /** Other workers have nothing to do: for a while, nothing is claimed ahead. */
  othersAreIdle(): void
}

const MODEST_MS = 2_000
/**
 * What is held ahead should start within this time. It stands behind nothing that comes later, however urgent, and a
 * round trip takes a few milliseconds: to hold long jobs ahead would only upset the order.
 */
const AHEAD_MS = 100
/** The weight of one attempt in the mean. */
const NEWEST = 0.1
/** Of shorter jobs it matters little which goes first, and to rank them again takes as long as to run them. */
const WORTH_RANKING_MS = 10
/** A claim is answered as one text: with payloads of 256 KiB each, so many of them still fit. */
const MAX_CLAIM = 1_000

/**
 * How much to claim, and from where. What can start now, always. As much again to hold ahead, or less if jobs run long,
 * while the queue is so deep that claims come back full, and nobody else is idle.
 */
export const createClaimPlanner = (options: {
  types: readonly string[]
  policy: Policy
  capacity: Capacity
  jobs: () => HeldJobs
  now: () => number
}): ClaimPlanner => {
  const { capacity, now } = options
  const floors = createLaneFloors(now)
  const age = createAgeShare(options.policy === 'fifo' ? 1 : AGE_SHARE)
  let deep = false
  /** There is something to choose from. */
  let several = false
  /** There are jobs that only a claim by size takes. */
  let bigWaiting = false
  let restricted = false
  let passedOver = false
  let reserved = false
  let modestUntilMs = Number.NEGATIVE_INFINITY
  let meanRunMs: number | undefined
  const claims = createOpenClaims()

  /** How many more jobs can start, and how many may be held beyond those: as many as can run at the same time. */
  const room = (): { now: number; ahead: number } => {
    const unstarted = options.jobs().unstarted()
    const free = fitting(capacity.free())
    const mayHoldAhead = deep && !reserved && now() > modestUntilMs
    const ahead = Math.floor(fitting(capacity) * Math.min(1, AHEAD_MS / (meanRunMs ?? 1)))
    return {
      // A claim by size looks itself at what fits.
      now: Math.max(0, (bigWaiting ? capacity.free().slots : free) - unstarted),
      ahead: mayHoldAhead ? Math.max(0, ahead - Math.max(0, unstarted - free)) : 0,
    }
  }

  const plan: ClaimPlanner['plan'] = ({ stopping, recording }) => {
    const { now: startNow, ahead } = room()
    // To hold more ahead is worth no statement of its own.
    const wanted = stopping || (startNow === 0 && !recording) ? 0 : startNow + ahead
    const limit = Math.min(wanted, MAX_CLAIM)
    const { cpuUnits: freeCpuUnits, memoryMb: freeMemoryMb } = capacity.free()
    const order = age.isDue() ? 'age' : 'rank'
    return {
      limit,
      // What waits for room already goes first.
      starts: limit <= startNow && options.jobs().unstarted() === 0,
      types: options.types,
      restricted,
      order,
      reranked: several && (meanRunMs ?? WORTH_RANKING_MS) >= WORTH_RANKING_MS && mayRerank(order, limit),
      segments: limit > 0 && order === 'rank' ? floors.segments() : [],
      ageFromKey: floors.ageFrom(),
      sized: bigWaiting ? { freeCpuUnits, freeMemoryMb, ahead } : null,
    }
  }

  return {
    plan,
    observe: ({ claim, claimed, news }) => {
      // A claim by size ends at the first job that does not fit beside those before it; the next leaves it aside.
      const leftBigOnesOut = news.big_waiting && (claim.sized === null || claimed.length > 0)
      // A restricted claim may have taken as many of one organisation as may run, and left those of others behind it.
      const leftOthersOut =
        news.restricted && (!claim.restricted || (claimed.length > 0 && claimed.length < claim.limit))
      passedOver = leftBigOnesOut || leftOthersOut || news.contended === true
      restricted = news.restricted
      bigWaiting = news.big_waiting || news.reserved === true
      if (claim.limit === 0) return
      // What a reranked claim looked at others may have locked: the next goes past that, in the order of the index.
      const outrun = news.window_full === true && claimed.length < claim.limit
      deep = claimed.length >= claim.limit || outrun
      several = (deep && !outrun) || news.several === true
      reserved = news.reserved === true
      floors.observe(
        { order: claim.order, floors: news.floors, oldestLeft: news.oldest_left },
        !deep || news.big_waiting || news.restricted || reserved,
      )
      age.observe(claim.order, news.predicted_ms ?? 0, news.oldest_ms ?? 0)
      claims.open(claim.order, claimed, news.predicted_ms ?? 0)
    },
    attemptEnded: (ranMs, token) => {
      const claim = claims.endOne(token)
      if (claim) age.correct(claim.order, ranMs - claim.meanMs)
      meanRunMs = meanRunMs === undefined ? ranMs : meanRunMs + NEWEST * (ranMs - meanRunMs)
    },
    mayClaimMore: () => (deep || passedOver) && room().now > 0,
    othersAreIdle: () => {
      modestUntilMs = now() + MODEST_MS
    },
  }
}

/** Claims of which jobs may still run: how each was ordered, and what was predicted of one of its jobs on average. */
const createOpenClaims = () => {
  const open = new Map<string, { order: Claim['order']; meanMs: number; left: number }>()
  return {
    open: (order: Claim['order'], claimed: Exchanged['claimed'], predictedMs: number): void => {
      const token = claimed[0]?.token
      if (token === undefined) return
      open.set(token, { order, meanMs: predictedMs / claimed.length, left: claimed.length })
      // Of those whose jobs were given back or lost nothing is heard any more.
      const [oldest] = open.keys()
      if (open.size > MOST_OPEN && oldest !== undefined) open.delete(oldest)
    },
    endOne: (token: string | undefined) => {
      const claim = token === undefined ? undefined : open.get(token)
      if (claim && token !== undefined && --claim.left === 0) open.delete(token)
      return claim
    },
  }
}

const MOST_OPEN = 2_000

/** The same claim by the newest estimates, where that is worth it. */
export const rankAgain = (claim: Claim): Claim => ({
  ...claim,
  reranked: mayRerank(claim.order, claim.limit),
})

const mayRerank = (order: Claim['order'], limit: number): boolean =>
  order === 'rank' && limit > 0 && limit <= MOST_RERANKED

/** How many jobs of the default size fit. */
const fitting = ({ slots, cpuUnits, memoryMb }: ReturnType<Capacity['free']>): number =>
  Math.max(
    0,
    Math.floor(
      Math.min(slots, cpuUnits / DEFAULT_RESOURCES.cpu_units, memoryMb / DEFAULT_RESOURCES.memory_mb),
    ),
  )
