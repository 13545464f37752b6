import type { Claim, KnownFlow, Turn } from '../db/queue/exchange.ts'
import { ALL_FLOWS } from '../db/rules/flows.ts'
import { AGE_SHARE } from '../db/rules/lanes.ts'
import { DEFAULT_RESOURCES } from '../db/rules/resources.ts'
import { type AgeShare, createAgeShare } from './age-share.ts'
import type { Capacity } from './capacity.ts'
import type { ExchangeReport } from './exchanger.ts'
import type { HeldJob, HeldJobs } from './held-jobs.ts'
import { createLaneFloors, type LaneFloors } from './lane-floors.ts'
import { type Charge, createShares, type Turn as NextTurn } from './shares.ts'

export type Policy = 'learned' | 'fifo'

export type ClaimPlanner = {
  plan(state: { stopping: boolean; recording: boolean }): Claim
  observe(report: Pick<ExchangeReport, 'claim' | 'claimed' | 'news'>): void
  /** How long jobs run here decides how many are held ahead. */
  attemptEnded(ranMs: number, turn?: Turn | null): void
  /** The worker gave up the job, or lost its lease, after running it for this long. */
  left(ranMs: number, turn: Turn | null): void
  /** The last claim was full, or had to leave jobs aside, and there is room for another. */
  mayClaimMore(): boolean
  /** Other workers have nothing to do: for a while, nothing is claimed ahead. */
  othersAreIdle(): void
}

const MODEST_MS = 2_000
/**
 * Jobs held ahead should start within this time, which is two or three round trips: enough to keep the slots busy. A
 * held job starts before anything that arrives later, however urgent that is and whoever owns it.
 */
const AHEAD_MS = 10
/** The weight of the newest attempt in the running mean. */
const NEWEST = 0.1
/** The order of shorter jobs matters little, and ranking them again takes as long as running them. */
const WORTH_RANKING_MS = 10
/** In a bigger claim each job takes milliseconds, and the order within it is immaterial. */
const MOST_RERANKED = 32
/** A claim's answer is a single text value, into which this many payloads of 256 KiB still fit. */
const MAX_CLAIM = 1_000
/**
 * In one turn, a flow gets the work that all slots do in this time. Jobs of one flow are claimed and recorded together,
 * which costs less than half of what jobs of many flows cost, and nobody notices a wait of 50 ms.
 */
const TURN_MS = 50
/** The assumed runtime until the first attempt has ended on this worker. */
const UNKNOWN_MS = 1_000
/** Until one of its jobs has ended here, a flow gets at most 1/8 of the slots in a turn. */
const NEW_FLOW_SLOTS = 8
/** How often the runtimes of running jobs are compared with their predictions. */
const OVERDUE_EVERY_MS = 200
/** A claim looks for unknown flows around at most this many organisations. Each gap takes one index probe. */
const MOST_PLACES = 16
/** A claim names at least this many flows, if that many wait. */
const LEAST_NAMED = 32
/** Beyond this many flows, the least recently used are forgotten. */
const MOST_MEMORIES = 4_096

/** What is remembered of a flow besides its share. */
type FlowMemory = { age: AgeShare; floors: LaneFloors; meanRunMs: number | undefined }

/** A turn of which jobs may still run. */
type OpenTurn = { charge: Charge; memory: FlowMemory; order: 'rank' | 'age'; meanMs: number }

/**
 * Decides how many jobs to claim, and from which flows. The planner always asks for as many jobs as can start now. While
 * claims come back full and no other worker is idle, it asks for up to as many again to hold ahead, and for fewer the
 * longer jobs run.
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
  const shares = createShares()
  const memories = createFlowMemories(fifo ? 1 : AGE_SHARE, now)
  const openTurns = new WeakMap<Turn, OpenTurn>()
  let deep = false
  /**
   * The last claim may have left claimable jobs: it did not look everywhere, or a concurrent claim was counting the
   * running jobs of their organisation.
   */
  let someLeft = false
  /** The last claim came back short without having looked everywhere. */
  let lookEverywhere = false
  let reserved = false
  let modestUntilMs = Number.NEGATIVE_INFINITY
  let overdueAtMs = Number.NEGATIVE_INFINITY
  let meanRunMs: number | undefined

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

  /** A job that runs for longer than predicted is charged at once, not only when it ends. */
  const chargeOverdue = (): void => {
    if (now() - overdueAtMs < OVERDUE_EVERY_MS) return
    overdueAtMs = now()
    shares.overdue(
      options
        .jobs()
        .held()
        .flatMap((held) => toOverdue(held, now())),
    )
  }

  const toOverdue = ({ job, startedAtMs, outcome }: HeldJob, nowMs: number) => {
    const open = job.turn && openTurns.get(job.turn)
    if (!open || outcome || startedAtMs === undefined) return []
    const byMs = nowMs - startedAtMs - open.meanMs
    return byMs > 0 ? [{ charge: open.charge, byMs }] : []
  }

  const flowsOf = (limit: number): Pick<Claim, 'flows' | 'gaps' | 'everywhere'> => {
    if (lookEverywhere) return EVERYWHERE
    chargeOverdue()
    const waiting = shares.next(limit)
    const named = firstOf(waiting.turns, limit)
    const { gaps, idle, all } = shares.look(Math.min(limit + 1, MOST_PLACES))
    const everywhere = waiting.all && named.length === waiting.turns.length && all
    return { flows: [...named, ...idle.map(toKnown)], gaps, everywhere }
  }

  const turnOf = (meanMs = UNKNOWN_MS): number =>
    Math.max(1, Math.floor(Math.min((TURN_MS * fitting(capacity)) / meanMs, MAX_CLAIM)))

  /** The turn of a flow whose runtimes are unknown. They may be long, however short other jobs are. */
  const newTurn = (): number =>
    Math.max(1, Math.min(turnOf(meanRunMs), Math.floor(fitting(capacity) / NEW_FLOW_SLOTS)))

  const toKnown = (turn: NextTurn): KnownFlow => {
    const { age, floors, meanRunMs: meanMs } = memories.of(turn.flow)
    return {
      ...turn,
      turn: meanMs === undefined ? newTurn() : turnOf(meanMs),
      oldestFirst: age.isDue(),
      ageFloor: floors.ageFrom(),
      floors: floors.floors(),
    }
  }

  /** Enough flows that one turn of each probably fills the claim, even if other workers claim from the same flows. */
  const firstOf = (turns: readonly NextTurn[], limit: number): KnownFlow[] => {
    const named: KnownFlow[] = []
    let jobs = 0
    for (const turn of turns) {
      if (jobs >= 2 * limit && named.length >= LEAST_NAMED) break
      const known = toKnown(turn)
      named.push(known)
      jobs += known.turn
    }
    return named
  }

  const plan: ClaimPlanner['plan'] = ({ stopping, recording }) => {
    const { now: startNow, ahead } = room()
    // Do not call only to hold more jobs ahead.
    const wanted = stopping || (startNow === 0 && !recording) ? 0 : startNow + ahead
    const limit = Math.min(wanted, MAX_CLAIM)
    const { cpuUnits: freeCpuUnits, memoryMb: freeMemoryMb } = capacity.free()
    return {
      limit,
      types: options.types,
      newestRank: limit <= MOST_RERANKED && (meanRunMs ?? WORTH_RANKING_MS) >= WORTH_RANKING_MS,
      fifo,
      newTurn: newTurn(),
      ...(limit > 0 ? flowsOf(limit) : EVERYWHERE),
      freeCpuUnits,
      freeMemoryMb,
      ahead,
    }
  }

  const observeTurn = (turn: Turn, claim: Claim): void => {
    const memory = memories.of(turn.flow)
    const known = claim.flows.find(({ flow }) => flow === turn.flow)
    const order = (known?.oldestFirst ?? fifo) ? 'age' : 'rank'
    const charge = shares.charge(turn.flow, { jobs: turn.jobs, ms: turn.predicted_ms, weight: turn.weight })
    openTurns.set(turn, { charge, memory, order, meanMs: turn.predicted_ms / turn.jobs })
    memory.age.observe(order, turn.predicted_ms, turn.oldest_ms ?? 0)
    memory.floors.observe({ order, floors: turn.floors ?? {}, oldestLeft: turn.oldest_left }, !turn.floors)
  }

  const observe: ClaimPlanner['observe'] = ({ claim, claimed, news }) => {
    if (claim.limit === 0) return
    const full = claimed.length >= claim.limit
    lookEverywhere = !full && !claim.everywhere
    if (!lookEverywhere) deep = full
    someLeft = news.contended || lookEverywhere
    reserved = news.reserved
    for (const turn of news.turns) observeTurn(turn, claim)
    for (const flow of news.found ?? []) shares.waits(flow)
    if (news.looked_up_to !== null) shares.lookAfter(news.looked_up_to)
    for (const flow of news.emptied ?? []) {
      shares.isEmpty(flow)
      memories.of(flow).floors.clear()
    }
    if (!full && claim.everywhere && !news.careful) shares.forget()
  }

  /** Replaces the predicted runtime by the actual one. */
  const correct = (ranMs: number, turn: Turn | null | undefined): OpenTurn | undefined => {
    const open = turn ? openTurns.get(turn) : undefined
    if (open) {
      shares.correct(open.charge, ranMs - open.meanMs)
      open.memory.age.correct(open.order, ranMs - open.meanMs)
    }
    return open
  }

  return {
    plan,
    observe,
    attemptEnded: (ranMs, turn) => {
      const memory = correct(ranMs, turn)?.memory
      if (memory) memory.meanRunMs = nextMean(memory.meanRunMs, ranMs)
      meanRunMs = nextMean(meanRunMs, ranMs)
    },
    left: correct,
    mayClaimMore: () => (deep || someLeft) && room().now > 0,
    othersAreIdle: () => {
      modestUntilMs = now() + MODEST_MS
    },
  }
}

/** Names no flows and searches the whole index. */
const EVERYWHERE = { flows: [], gaps: [ALL_FLOWS], everywhere: true }

const nextMean = (mean: number | undefined, newest: number): number =>
  mean === undefined ? newest : mean + NEWEST * (newest - mean)

const createFlowMemories = (ageShare: number, now: () => number) => {
  const memories = new Map<number, FlowMemory>()
  return {
    of: (flow: number): FlowMemory => {
      const known = memories.get(flow)
      const memory = known ?? {
        age: createAgeShare(ageShare),
        floors: createLaneFloors(now),
        meanRunMs: undefined,
      }
      if (known && memories.size <= MOST_MEMORIES / 2) return known
      // The map is ordered by insertion.
      memories.delete(flow)
      memories.set(flow, memory)
      const [oldest] = memories.keys()
      if (memories.size > MOST_MEMORIES && oldest !== undefined) memories.delete(oldest)
      return memory
    },
  }
}

/** How many jobs of the default size fit. */
const fitting = ({ slots, cpuUnits, memoryMb }: ReturnType<Capacity['free']>): number =>
  Math.max(
    0,
    Math.floor(
      Math.min(slots, cpuUnits / DEFAULT_RESOURCES.cpu_units, memoryMb / DEFAULT_RESOURCES.memory_mb),
    ),
  )
