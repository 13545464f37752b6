import type { Claim, ClaimOrder } from '../db/queue/exchange.ts'
import { AGE_SHARE } from '../db/rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../db/rules/resources.ts'
import { createAgeShare } from './age-share.ts'
import type { Capacity } from './capacity.ts'
import type { ExchangeReport } from './exchanger.ts'
import type { HeldJobs } from './held-jobs.ts'
import { createLaneFloors } from './lane-floors.ts'

export type Policy = 'learned' | 'fifo'

export type ClaimPlanner = {
  plan(state: { stopping: boolean; recording: boolean }): Claim
  observe(report: Pick<ExchangeReport, 'claim' | 'claimed' | 'news'>): void
  /** How long jobs run here decides how many are held ahead. */
  attemptEnded(ranMs: number, token?: string): void
  /** The last claim was full, or had to leave jobs aside, and there is room for another. */
  mayClaimMore(): boolean
  /** Other workers have nothing to do: for a while, nothing is claimed ahead. */
  othersAreIdle(): void
}

const MODEST_MS = 2_000
/**
 * Jobs held ahead should start within this time. They stand behind nothing that comes later, however urgent, and a
 * round trip takes a few milliseconds: holding long jobs ahead would only upset the order.
 */
const AHEAD_MS = 100
/** The weight of one attempt in the mean. */
const NEWEST = 0.1
/** The order of shorter jobs matters little, and ranking them again takes as long as running them. */
const WORTH_RANKING_MS = 10
/** In a bigger claim each job takes milliseconds, and the order within it is immaterial. */
const MOST_RERANKED = 32
/** A claim is answered as one text: with payloads of 256 KiB each, so many of them still fit. */
const MAX_CLAIM = 1_000

/**
 * How much to claim, and from where. Always as much as can start now. As much again to hold ahead, or less if jobs run
 * long, while the queue is so deep that claims come back full, and no other worker is idle.
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
  let contended = false
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
      now: Math.max(0, free - unstarted),
      ahead: mayHoldAhead ? Math.max(0, ahead - Math.max(0, unstarted - free)) : 0,
    }
  }

  const orderOf = (limit: number): ClaimOrder => {
    if (age.isDue()) return 'age'
    const worthRanking = (meanRunMs ?? WORTH_RANKING_MS) >= WORTH_RANKING_MS
    return worthRanking && limit <= MOST_RERANKED ? 'newest_rank' : 'rank'
  }

  const plan: ClaimPlanner['plan'] = ({ stopping, recording }) => {
    const { now: startNow, ahead } = room()
    // To hold more ahead is worth no call of its own.
    const wanted = stopping || (startNow === 0 && !recording) ? 0 : startNow + ahead
    const limit = Math.min(wanted, MAX_CLAIM)
    const { cpuUnits: freeCpuUnits, memoryMb: freeMemoryMb } = capacity.free()
    return {
      limit,
      types: options.types,
      order: orderOf(limit),
      floors: floors.floors(),
      ageFloor: floors.ageFrom(),
      freeCpuUnits,
      freeMemoryMb,
      ahead,
    }
  }

  return {
    plan,
    observe: ({ claim, claimed, news }) => {
      if (claim.limit === 0) return
      const { predicted_ms: predictedMs, oldest_ms: oldestMs, oldest_left: oldestLeft } = news
      const order = claim.order === 'age' ? 'age' : 'rank'
      deep = claimed.length >= claim.limit
      contended = news.contended
      reserved = news.reserved
      floors.observe({ order, floors: news.floors ?? {}, oldestLeft }, !deep || news.careful)
      age.observe(order, predictedMs ?? 0, oldestMs ?? 0)
      claims.open(order, claimed, predictedMs ?? 0)
    },
    attemptEnded: (ranMs, token) => {
      const claim = claims.endOne(token)
      if (claim) age.correct(claim.order, ranMs - claim.meanMs)
      meanRunMs = meanRunMs === undefined ? ranMs : meanRunMs + NEWEST * (ranMs - meanRunMs)
    },
    mayClaimMore: () => (deep || contended) && room().now > 0,
    othersAreIdle: () => {
      modestUntilMs = now() + MODEST_MS
    },
  }
}

type Order = 'rank' | 'age'

/** Claims of which jobs may still run: how each was ordered, and what was predicted of one of its jobs on average. */
const createOpenClaims = () => {
  const open = new Map<string, { order: Order; meanMs: number; left: number }>()
  return {
    open: (order: Order, claimed: ExchangeReport['claimed'], predictedMs: number): void => {
      const token = claimed[0]?.token
      if (token === undefined) return
      open.set(token, { order, meanMs: predictedMs / claimed.length, left: claimed.length })
      // Nothing more is heard of claims whose jobs were given back or lost.
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

/** How many jobs of the default size fit. */
const fitting = ({ slots, cpuUnits, memoryMb }: ReturnType<Capacity['free']>): number =>
  Math.max(
    0,
    Math.floor(
      Math.min(slots, cpuUnits / DEFAULT_RESOURCES.cpu_units, memoryMb / DEFAULT_RESOURCES.memory_mb),
    ),
  )
