import { setTimeout as delay } from 'node:timers/promises'
import type { Run } from '../db/query.ts'
import {
  type Claim,
  type ClaimedJob,
  type EndedAttempt,
  type Exchanged,
  exchange,
  readExchange,
} from '../db/queue/exchange.ts'
import type { ClaimPlanner } from './claim-planner.ts'
import { isRefused } from './database.ts'
import type { HeldJob, HeldJobs } from './held-jobs.ts'
import type { Isolation } from './isolation.ts'
import { LEASE_SECONDS } from './lease-book.ts'
import { endAttempt } from './outcome.ts'
import type { OutcomeQueue } from './outcome-queue.ts'
import { createPoller } from './poller.ts'
import type { JobTracing } from './tracing/job-tracing.ts'

export type Exchanger = {
  /** Has the claim planned, which takes a while, before the first job waits for it. */
  prepare(): Promise<void>
  start(): void
  /** Jobs have become ready, or a slot has become free. */
  wake(): void
  /** An outcome to store. */
  record(held: HeldJob): void
  /** Resolves when no claim is on its way any more. Outcomes are still stored. */
  claimNoMore(): Promise<void>
  /** When a step began last, while there should be steps. */
  turnedAtMs(): number | undefined
  /**
   * Resolves when all outcomes are stored, or when their leases may have expired and other workers may have
   * their jobs.
   */
  stop(): Promise<void>
}

/** What one exchange asked for and got. */
export type ExchangeReport = { claim: Claim } & Exchanged

/** Covers notifications that got lost. */
const IDLE_POLL_MS = 5_000
/** How often a stop checks whether the leases of unstored outcomes are still alive. */
const STOP_CHECK_MS = 250

/**
 * The conversation with the database: outcomes go there and jobs come back, in one call, and one at a time. An
 * outcome is sent at once if none is on its way; those that come meanwhile go together in the next. So one job is not
 * delayed, and many cost few round trips.
 *
 * A call with outcomes commits durably. One that only claims does not wait for the disk: if the server crashes, its jobs
 * are simply ready again.
 */
export const createExchanger = (options: {
  workerId: string
  run: Run
  jobs: HeldJobs
  planner: ClaimPlanner
  outcomes: OutcomeQueue
  isolation: Isolation
  /** Stores what must be stored while the leases are held. */
  beforeEnds: () => Promise<void>
  /** And how long the call took. */
  onExchanged: (report: ExchangeReport, tookMs: number) => void
  tracing?: JobTracing | undefined
  onError: (error: Error) => void
  now?: (() => number) | undefined
}): Exchanger => {
  const { workerId, run, jobs, planner, outcomes } = options
  const now = options.now ?? (() => performance.now())
  let wakeScheduled = false
  let stopping = false
  let turnedAtMs: number | undefined
  let allRecorded = (): void => {}

  const step = async (): Promise<number> => {
    turnedAtMs = performance.now()
    const group = outcomes.take()
    // Outcomes that found no place in the group go before more jobs do.
    const claimsNothing = stopping || options.isolation.isOn() || !outcomes.isEmpty()
    const claim = planner.plan({ stopping: claimsNothing, recording: group.length > 0 })
    if (group.length === 0 && claim.limit === 0) {
      tellIfRecorded()
      return mayRunSuspect() ? runSuspect() : IDLE_POLL_MS
    }
    try {
      if (group.length > 0) await options.beforeEnds().catch(blameNoOutcome)
      return await talk(group, claim)
    } catch (error) {
      outcomes.putBack(group, error as Error)
      return 0
    }
  }

  const talk = async (group: readonly HeldJob[], claim: Claim): Promise<number> => {
    const ended = group.flatMap(toEnd)
    const closed = jobs.leases.closedBy(group.map(({ job }) => job.token))
    const sentAtMs = performance.now()
    const rows = await run(exchange({ workerId, leaseSeconds: LEASE_SECONDS, ended, closed, claim }))
    const tookMs = performance.now() - sentAtMs
    const exchanged = readExchange(rows, { ended })
    outcomes.settle(group, exchanged.states)
    accept(exchanged.claimed, sentAtMs)
    options.onExchanged({ claim, ...exchanged }, tookMs)
    tellIfRecorded()
    return !outcomes.isEmpty() || planner.mayClaimMore() || mayRunSuspect() ? 0 : IDLE_POLL_MS
  }

  const mayRunSuspect = (): boolean => options.isolation.isOn() && !stopping && jobs.held().length === 0

  const runSuspect = async (): Promise<number> => {
    const sentAtMs = performance.now()
    const job = await options.isolation.next()
    if (!job) return 0
    accept([job], sentAtMs)
    return IDLE_POLL_MS
  }

  const accept = (claimed: readonly ClaimedJob[], sentAtMs: number): void => {
    options.tracing?.claimed(claimed, { workerId, sentAtMs })
    jobs.accept(claimed, sentAtMs)
  }

  /** What is refused then is no fault of these outcomes; what fails otherwise is tried again before them. */
  const blameNoOutcome = (error: Error): void => {
    if (!isRefused(error)) throw error
    options.onError(error)
  }

  const tellIfRecorded = (): void => {
    if (stopping && outcomes.isEmpty()) allRecorded()
  }

  const untilRecorded = async (): Promise<void> => {
    let isRecorded = false
    const recorded = new Promise<void>((resolve) => {
      allRecorded = () => {
        isRecorded = true
        resolve()
      }
    })
    // Leases are still being renewed, so their expiry moves.
    while (!isRecorded && someOutcomeIsAlive()) await Promise.race([recorded, delay(STOP_CHECK_MS)])
  }

  /** Includes outcomes that are being sent now: they may come back. */
  const someOutcomeIsAlive = (): boolean =>
    jobs
      .held()
      .some(({ job, outcome }) => outcome !== undefined && now() < jobs.leases.livesUntilMs(job.token))

  const poller = createPoller({ step, onError: options.onError })

  /** Once for all that happens in this turn of the event loop. */
  const wake = (): void => {
    if (wakeScheduled) return
    wakeScheduled = true
    setImmediate(() => {
      wakeScheduled = false
      poller.wake()
    })
  }

  const prepare = async (): Promise<void> => {
    const claim = { ...planner.plan({ stopping: true, recording: false }), limit: 1, types: [] }
    for (const newestRank of [true, false]) {
      await run(
        exchange({ workerId, leaseSeconds: 0, ended: [], closed: [], claim: { ...claim, newestRank } }),
      )
    }
  }

  return {
    prepare,
    start: poller.start,
    wake,
    record: (held) => {
      outcomes.add(held)
      wake()
    },
    claimNoMore: async () => {
      stopping = true
      await poller.stop()
      poller.start()
    },
    stop: async () => {
      stopping = true
      wake()
      await untilRecorded()
      await poller.stop()
      turnedAtMs = undefined
    },
    turnedAtMs: () => turnedAtMs,
  }
}

const toEnd = ({ job, outcome, ranMs }: HeldJob): EndedAttempt[] =>
  outcome ? [endAttempt(job, outcome, ranMs)] : []
