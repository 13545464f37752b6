import {
  type Claim,
  type ClaimedJob,
  type ExchangeNews,
  type ExchangeRow,
  exchangeJobs,
  readExchange,
} from '../db/queries/exchange.ts'
import type { Run } from '../db/query.ts'
import type { ClaimPlanner } from './claim-planner.ts'
import { isRefused } from './database.ts'
import { describe, type HeldJob, type HeldJobs } from './held-jobs.ts'
import { LEASE_SECONDS } from './lease-keeper.ts'
import type { Logger } from './logger.ts'
import { createPoller } from './poller.ts'

export type Exchanger = {
  start(): void
  /** Jobs have become ready, or a slot has become free. */
  wake(): void
  /** An outcome to store. */
  record(held: HeldJob): void
  /** A job that was claimed ahead has been started: the database is told, if it runs long enough. */
  announceSoon(): void
  /** Resolves when no claim is on its way any more. Outcomes are still stored. */
  claimNoMore(): Promise<void>
  /** Resolves when all outcomes are stored. */
  stop(): Promise<void>
}

/** What one exchange asked for and got. */
export type Exchanged = { claim: Claim; claimed: readonly ClaimedJob[]; news: ExchangeNews }

/** Covers notifications that got lost. */
const IDLE_POLL_MS = 5_000
/** A job that runs shorter than this is announced and ended by the same statement. */
const ANNOUNCE_MS = 100
const MAX_GROUP = 500

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
  /** Stores what must be stored while the leases are held. */
  beforeEnds: () => Promise<void>
  onExchanged: (exchange: Exchanged) => void
  onRecorded: (held: HeldJob) => void
  logger: Logger
  onError: (error: Error) => void
}): Exchanger => {
  const { jobs, planner, logger } = options
  let ends: HeldJob[] = []
  /** Outcomes of a group that Postgres refused: sent one by one, to find the one it objects to. */
  const suspects: HeldJob[] = []
  let wakeScheduled = false
  let announceTimer: NodeJS.Timeout | undefined
  let stopping = false
  let allRecorded = (): void => {}

  const step = async (): Promise<number> => {
    const group = (suspects.length > 0 ? suspects.splice(0, 1) : ends.splice(0, MAX_GROUP)).filter(jobs.holds)
    const claim = planner.plan({ stopping: stopping || suspects.length > 0, recording: group.length > 0 })
    const started = jobs.unannounced()
    if (group.length === 0 && started.length === 0 && claim.limit === 0) return IDLE_POLL_MS
    const sentAtMs = performance.now()
    let rows: ExchangeRow[]
    try {
      rows = await send(group, started, claim)
    } catch (error) {
      return putBack(group, error as Error)
    }
    return apply({ group, started, claim, rows, sentAtMs })
  }

  const send = async (group: HeldJob[], started: HeldJob[], claim: Claim): Promise<ExchangeRow[]> => {
    if (group.length > 0) await options.beforeEnds()
    const run = group.length > 0 ? options.runDurable : options.runRelaxed
    // Asked now and not when it ended: the statement before this one may have announced it since.
    const ended = group.flatMap(({ ended, announced }) => (ended ? [{ ...ended, announced }] : []))
    return run(
      exchangeJobs({
        workerId: options.workerId,
        leaseSeconds: LEASE_SECONDS,
        ended,
        started: started.map(toStart),
        closed: jobs.leasesClosedBy(group),
        claim,
      }),
    )
  }

  const apply = (answer: {
    group: HeldJob[]
    started: HeldJob[]
    claim: Claim
    rows: ExchangeRow[]
    sentAtMs: number
  }): number => {
    const { group, claim } = answer
    const { news, claimed } = readExchange(answer.rows)
    for (const entry of answer.started) entry.announced = true
    const lost = new Set(news.lost ?? [])
    for (const held of group) {
      jobs.letGo(held)
      if (lost.has(held.job.job_id)) logger.warn('lease lost, outcome dropped', describe(held.job))
      else options.onRecorded(held)
    }
    jobs.accept(claimed, answer.sentAtMs)
    options.onExchanged({ claim, claimed, news })
    if (stopping && ends.length === 0 && suspects.length === 0) allRecorded()
    return ends.length > 0 || suspects.length > 0 || planner.mayClaimMore() ? 0 : IDLE_POLL_MS
  }

  /** Until it is stored, or until the lease has run out and the job is someone else's anyway. */
  const putBack = (group: HeldJob[], error: Error): number => {
    if (isRefused(error) && group.length > 0) {
      options.onError(error)
      suspects.push(...group.flatMap((held) => (group.length > 1 ? [held] : withoutResult(held))))
      return 0
    }
    const deadline = performance.now() - LEASE_SECONDS * 1000
    const [late, rest] = [
      group.filter((held) => endedAtMs(held) < deadline),
      group.filter((held) => endedAtMs(held) >= deadline),
    ]
    for (const held of late) {
      logger.error('the outcome could not be stored in time', describe(held.job))
      jobs.letGo(held)
    }
    ends = [...rest, ...ends]
    throw error
  }

  /** The result is what Postgres objects to: the job fails for it. Without one there is nothing left to leave out. */
  const withoutResult = (held: HeldJob): HeldJob[] => {
    if (held.ended?.state !== 'completed') {
      logger.error('the outcome cannot be stored', describe(held.job))
      jobs.letGo(held)
      return []
    }
    const { resultJson: _, ...end } = held.ended
    const message = 'The result of the handler cannot be stored as JSON.'
    held.ended = { ...end, state: 'failed', error: { code: 'unstorable_result', message } }
    return [held]
  }

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

  return {
    start: poller.start,
    wake,
    record: (held) => {
      ends.push(held)
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
      const recorded = new Promise<void>((resolve) => {
        allRecorded = resolve
      })
      // Also one that is on its way now: it may come back.
      if (jobs.held().some(({ ended }) => ended !== undefined)) {
        wake()
        await Promise.race([recorded, giveUp(LEASE_SECONDS * 1000)])
      }
      await poller.stop()
    },
  }
}

const toStart = ({ job, startedAtMs = 0 }: HeldJob) => ({
  job_id: job.job_id,
  token: job.token,
  ranMs: performance.now() - startedAtMs,
})

const endedAtMs = ({ startedAtMs = 0, ended }: HeldJob): number => startedAtMs + (ended?.ranMs ?? 0)

const giveUp = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())
