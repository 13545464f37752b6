import { setTimeout as delay } from 'node:timers/promises'
import { type Claim, type EndedAttempt, exchangeJobs } from '../db/queries/exchange.ts'
import {
  type ClaimedJob,
  type ExchangeNews,
  type ExchangeRow,
  readExchange,
} from '../db/queries/exchange-news.ts'
import { claimLoneJob, readLoneJob } from '../db/queries/lone-claim.ts'
import type { Run } from '../db/query.ts'
import { type ClaimPlanner, rankAgain } from './claim-planner.ts'
import { isRefused } from './database.ts'
import type { HeldJob, HeldJobs } from './held-jobs.ts'
import type { Isolation } from './isolation.ts'
import { LEASE_SECONDS } from './lease-book.ts'
import type { OutcomeQueue } from './outcome-queue.ts'
import { planExchanges } from './plan-exchanges.ts'
import { createPoller } from './poller.ts'
import type { JobTracing } from './tracing/job-tracing.ts'

export type Exchanger = {
  /** Has the statement planned, which takes a while, before the first job waits for it. */
  prepare(): Promise<void>
  start(): void
  /** Jobs have become ready, or a slot has become free. */
  wake(): void
  /** An outcome to store. */
  record(held: HeldJob): void
  /** A job that was claimed ahead has been started: the database is told, if it runs long enough. */
  announceSoon(): void
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
export type Exchanged = { claim: Claim; claimed: readonly ClaimedJob[]; news: ExchangeNews }

type Exchange = { group: HeldJob[]; ended: EndedAttempt[]; started: HeldJob[]; claim: Claim }

/** Covers notifications that got lost. */
const IDLE_POLL_MS = 5_000
/** A job that runs shorter than this is announced and ended by the same statement. */
const ANNOUNCE_MS = 100
/** How often a stop checks whether the leases of unstored outcomes are still alive. */
const STOP_CHECK_MS = 250

/**
 * The conversation with the database: outcomes go there and jobs come back, in one statement, and one at a time. An
 * outcome is sent at once if none is on its way; those that come meanwhile go together in the next. So one job is not
 * delayed, and many cost few round trips.
 *
 * A statement with outcomes commits durably. One that only claims does not wait for the disk: if the server crashes,
 * its jobs are simply ready again.
 */
export const createExchanger = (options: {
  workerId: string
  runDurable: Run
  runRelaxed: Run
  jobs: HeldJobs
  planner: ClaimPlanner
  outcomes: OutcomeQueue
  isolation: Isolation
  /** What becomes of the jobs of a group, one end for each. */
  decide: (group: readonly HeldJob[]) => Promise<EndedAttempt[]>
  /** Stores what must be stored while the leases are held. */
  beforeEnds: () => Promise<void>
  /** And how long the statement took. */
  onExchanged: (exchange: Exchanged, tookMs: number) => void
  tracing?: JobTracing | undefined
  onError: (error: Error) => void
  now?: (() => number) | undefined
}): Exchanger => {
  const { workerId, runDurable, runRelaxed, jobs, planner, outcomes } = options
  const now = options.now ?? (() => performance.now())
  const traced = options.tracing !== undefined
  let wakeScheduled = false
  let announceTimer: NodeJS.Timeout | undefined
  let stopping = false
  let turnedAtMs: number | undefined
  let allRecorded = (): void => {}

  const step = async (): Promise<number> => {
    turnedAtMs = performance.now()
    const group = outcomes.take()
    // Outcomes that found no place in the group go before more jobs do.
    const claimsNothing = stopping || options.isolation.isOn() || !outcomes.isEmpty()
    let claim = planner.plan({ stopping: claimsNothing, recording: group.length > 0 })
    const started = jobs.unannounced()
    if (group.length === 0 && started.length === 0 && claim.limit === 0) {
      tellIfRecorded()
      return mayRunSuspect() ? runSuspect() : IDLE_POLL_MS
    }
    try {
      if (started.length === 0 && mayClaimLone(group, claim)) {
        const delayMs = await claimLone(claim)
        if (delayMs !== undefined) return delayMs
        // It may have left a job that turned out slower than its place says.
        claim = rankAgain(claim)
      }
      const ended = group.length > 0 ? await end(group) : []
      const sentAtMs = performance.now()
      const rows = await send({ group, ended, started, claim })
      return apply({ group, ended, started, claim, rows, sentAtMs })
    } catch (error) {
      outcomes.putBack(group, error as Error)
      return 0
    }
  }

  const mayRunSuspect = (): boolean => options.isolation.isOn() && !stopping && jobs.held().length === 0

  const runSuspect = async (): Promise<number> => {
    const sentAtMs = performance.now()
    const job = await options.isolation.next()
    if (!job) return 0
    accept([job], sentAtMs)
    return IDLE_POLL_MS
  }

  const mayClaimLone = (group: readonly HeldJob[], { limit, sized, restricted }: Claim): boolean =>
    group.length === 0 && limit > 0 && sized === null && !restricted && jobs.held().length === 0

  /** For a worker without any: a lone job starts sooner by a short statement, and others follow by the long one. */
  const claimLone = async (claim: Claim): Promise<number | undefined> => {
    const sentAtMs = performance.now()
    const [row] = await runRelaxed(claimLoneJob({ ...claim, workerId, leaseSeconds: LEASE_SECONDS }))
    if (!row) return undefined
    const claimed = [readLoneJob(row)]
    accept(claimed, sentAtMs)
    const { predicted_ms, more: several } = row
    const oldest_ms = several ? 0 : predicted_ms
    const news = { ...NO_NEWS, predicted_ms, several, oldest_ms }
    options.onExchanged({ claim, claimed, news }, performance.now() - sentAtMs)
    return row.more && !stopping ? 0 : IDLE_POLL_MS
  }

  const accept = (claimed: readonly ClaimedJob[], sentAtMs: number): void => {
    options.tracing?.claimed(claimed, { workerId, sentAtMs })
    jobs.accept(claimed, sentAtMs)
  }

  const end = async (group: readonly HeldJob[]): Promise<EndedAttempt[]> => {
    await options.beforeEnds().catch(blameNoOutcome)
    return options.decide(group)
  }

  const send = ({ group, ended, started, claim }: Exchange): Promise<ExchangeRow[]> => {
    const tokens = group.map(({ job }) => job.token)
    const run = ended.length > 0 ? runDurable : runRelaxed
    return run(
      exchangeJobs({
        workerId,
        leaseSeconds: LEASE_SECONDS,
        ended,
        started: started.map(toStart),
        closed: jobs.leases.closedBy(tokens),
        leaseJobs: outcomes.isDoubtful() ? null : jobs.leases.jobsOf(tokens),
        traced,
        claim,
      }),
    )
  }

  /** What is refused then is no fault of these outcomes; what fails otherwise is tried again before them. */
  const blameNoOutcome = (error: Error): void => {
    if (!isRefused(error)) throw error
    options.onError(error)
  }

  const apply = (answer: Exchange & { rows: ExchangeRow[]; sentAtMs: number }): number => {
    const { group, ended, claim } = answer
    const tookMs = performance.now() - answer.sentAtMs
    const { news, claimed } = readExchange(answer.rows)
    for (const entry of answer.started) entry.announced = true
    outcomes.settle(group, ended, news)
    accept(claimed, answer.sentAtMs)
    options.onExchanged({ claim, claimed, news }, tookMs)
    tellIfRecorded()
    return !outcomes.isEmpty() || planner.mayClaimMore() || mayRunSuspect() ? 0 : IDLE_POLL_MS
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

  const prepare = (): Promise<void> => {
    const claim = planner.plan({ stopping: true, recording: false })
    return planExchanges({ workerId, runDurable, runRelaxed, claim, traced })
  }

  return {
    prepare,
    start: poller.start,
    wake,
    record: (held) => {
      outcomes.add(held)
      wake()
    },
    announceSoon: () => {
      announceTimer ??= setTimeout(() => {
        announceTimer = undefined
        if (jobs.unannounced().length > 0) wake()
      }, ANNOUNCE_MS)
    },
    claimNoMore: async () => {
      stopping = true
      await poller.stop()
      poller.start()
    },
    stop: async () => {
      stopping = true
      clearTimeout(announceTimer)
      wake()
      await untilRecorded()
      await poller.stop()
      turnedAtMs = undefined
    },
    turnedAtMs: () => turnedAtMs,
  }
}

const NO_NEWS = { floors: {}, big_waiting: false, restricted: false }

const toStart = ({ job, startedAtMs = 0 }: HeldJob) => ({
  job_id: job.job_id,
  token: job.token,
  ranMs: performance.now() - startedAtMs,
})
