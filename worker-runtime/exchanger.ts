import { type Claim, type EndedAttempt, exchangeJobs } from '../db/queries/exchange.ts'
import {
  type ClaimedJob,
  type ExchangeNews,
  type ExchangeRow,
  readExchange,
} from '../db/queries/exchange-news.ts'
import { claimLoneJob, readLoneJob } from '../db/queries/lone-claim.ts'
import type { Run } from '../db/query.ts'
import type { ClaimPlanner } from './claim-planner.ts'
import { isDuplicate, isRefused } from './database.ts'
import { describe, type HeldJob, type HeldJobs } from './held-jobs.ts'
import { LEASE_SECONDS } from './lease-keeper.ts'
import type { Logger } from './logger.ts'
import { createPoller } from './poller.ts'

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
  /** Resolves when all outcomes are stored. */
  stop(): Promise<void>
}

/** What one exchange asked for and got. */
export type Exchanged = { claim: Claim; claimed: readonly ClaimedJob[]; news: ExchangeNews }

/** Covers notifications that got lost. */
const IDLE_POLL_MS = 5_000
/** A job that runs shorter than this is announced and ended by the same statement. */
const ANNOUNCE_MS = 100
const MAX_GROUP = 1_000

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
  /** What becomes of the jobs of a group, one end for each. */
  decide: (group: readonly HeldJob[]) => Promise<EndedAttempt[]>
  /** Stores what must be stored while the leases are held. */
  beforeEnds: () => Promise<void>
  onExchanged: (exchange: Exchanged) => void
  onRecorded: (job: ClaimedJob, ended: EndedAttempt | undefined) => void
  logger: Logger
  onError: (error: Error) => void
}): Exchanger => {
  const { jobs, planner, logger } = options
  let ends: HeldJob[] = []
  /** Outcomes of a group that Postgres refused: sent one by one, to find the one it objects to. */
  const suspects: HeldJob[] = []
  /** The last group was not recorded, because jobs have left its leases: each outcome is checked. */
  let doubtful = false
  let wakeScheduled = false
  let announceTimer: NodeJS.Timeout | undefined
  let stopping = false
  let allRecorded = (): void => {}

  const step = async (): Promise<number> => {
    const group = (suspects.length > 0 ? suspects.splice(0, 1) : ends.splice(0, MAX_GROUP)).filter(jobs.holds)
    // Outcomes that found no place in the group go before more jobs do.
    const behind = suspects.length > 0 || ends.length > 0
    const claim = planner.plan({ stopping: stopping || behind, recording: group.length > 0 })
    const started = jobs.unannounced()
    if (group.length === 0 && started.length === 0 && claim.limit === 0) {
      tellIfRecorded()
      return IDLE_POLL_MS
    }
    try {
      if (started.length === 0 && mayClaimLone(group, claim)) {
        const delayMs = await claimLone(claim)
        if (delayMs !== undefined) return delayMs
      }
      const ended = group.length > 0 ? await end(group) : []
      const sentAtMs = performance.now()
      const closed = jobs.leasesClosedBy(group)
      const leaseJobs = doubtful ? null : jobs.leaseJobsOf(group)
      const rows = await send({ ended, started, closed, leaseJobs, claim })
      return apply({ group, ended, started, claim, rows, sentAtMs })
    } catch (error) {
      return putBack(group, error as Error)
    }
  }

  const mayClaimLone = (group: readonly HeldJob[], { limit, sized, gated }: Claim): boolean =>
    group.length === 0 && limit > 0 && sized === null && !gated && jobs.held().length === 0

  /** For a worker without any: a lone job starts sooner by a short statement, and others follow by the long one. */
  const claimLone = async (claim: Claim): Promise<number | undefined> => {
    const { workerId } = options
    const sentAtMs = performance.now()
    const [row] = await options.runRelaxed(claimLoneJob({ ...claim, workerId, leaseSeconds: LEASE_SECONDS }))
    if (!row) return undefined
    const claimed = [readLoneJob(row)]
    jobs.accept(claimed, sentAtMs)
    options.onExchanged({ claim, claimed, news: { ...NO_NEWS, predicted_ms: row.predicted_ms } })
    return row.more && !stopping ? 0 : IDLE_POLL_MS
  }

  const end = async (group: readonly HeldJob[]): Promise<EndedAttempt[]> => {
    await options.beforeEnds().catch(blameNoOutcome)
    return options.decide(group)
  }

  const send = (exchange: {
    ended: EndedAttempt[]
    started: HeldJob[]
    closed: string[]
    leaseJobs: number | null
    claim: Claim
  }): Promise<ExchangeRow[]> => {
    const run = exchange.ended.length > 0 ? options.runDurable : options.runRelaxed
    const { workerId } = options
    const started = exchange.started.map(toStart)
    return run(exchangeJobs({ ...exchange, workerId, leaseSeconds: LEASE_SECONDS, started }))
  }

  /** What is refused then is no fault of these outcomes; what fails otherwise is tried again before them. */
  const blameNoOutcome = (error: Error): void => {
    if (!isRefused(error)) throw error
    options.onError(error)
  }

  const apply = (answer: {
    group: HeldJob[]
    ended: EndedAttempt[]
    started: HeldJob[]
    claim: Claim
    rows: ExchangeRow[]
    sentAtMs: number
  }): number => {
    const { group, ended, claim } = answer
    const { news, claimed } = readExchange(answer.rows)
    for (const entry of answer.started) entry.announced = true
    doubtful = news.recorded === false
    if (doubtful) ends = [...group, ...ends]
    else letGo(group, ended, new Set(news.lost ?? []))
    jobs.accept(claimed, answer.sentAtMs)
    options.onExchanged({ claim, claimed, news })
    tellIfRecorded()
    return ends.length > 0 || suspects.length > 0 || planner.mayClaimMore() ? 0 : IDLE_POLL_MS
  }

  const letGo = (group: HeldJob[], ended: EndedAttempt[], lost: ReadonlySet<string>): void => {
    for (const [n, held] of group.entries()) {
      jobs.letGo(held)
      if (lost.has(held.job.job_id)) logger.warn('lease lost, outcome dropped', describe(held.job))
      else options.onRecorded(held.job, ended[n])
    }
  }

  const tellIfRecorded = (): void => {
    if (stopping && ends.length === 0 && suspects.length === 0) allRecorded()
  }

  /** Until it is stored, or until the lease has run out and the job is someone else's anyway. */
  const putBack = (group: HeldJob[], error: Error): number => {
    if (isRefused(error) && group.length > 0) {
      // The answer to the first try got lost, and now it is found to be recorded.
      const [only] = group
      if (only && group.length === 1 && isDuplicate(error)) {
        jobs.letGo(only)
        return 0
      }
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
      jobs.abandon(held)
    }
    ends = [...rest, ...ends]
    throw error
  }

  /** The result is what Postgres objects to: the job fails for it. Without one there is nothing left to leave out. */
  const withoutResult = (held: HeldJob): HeldJob[] => {
    if (held.outcome?.kind !== 'done') {
      logger.error('the outcome cannot be stored', describe(held.job))
      jobs.abandon(held)
      return []
    }
    const message = 'The result of the handler cannot be stored as JSON.'
    held.outcome = { kind: 'failed', error: { code: 'unstorable_result', message }, permanent: true }
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

  /** The texts that an ordinary day needs. Nobody holds the lease that the outcomes name: nothing is stored. */
  const prepare = async (): Promise<void> => {
    const { workerId } = options
    const nothing = { workerId, leaseSeconds: 0, ended: [], started: [], closed: [], leaseJobs: 1 }
    const claim = planner.plan({ stopping: true, recording: false })
    const plan = (run: Run, order: Claim['order'], ended: EndedAttempt[]) =>
      run(exchangeJobs({ ...nothing, ended, claim: { ...claim, order } }))
    for (const order of ['rank', 'age'] as const) {
      await Promise.all([plan(options.runRelaxed, order, []), plan(options.runDurable, order, [NOBODYS])])
      await plan(options.runDurable, order, [{ ...NOBODYS, resultJson: 'true' }])
      await options.runRelaxed(claimLoneJob({ workerId, leaseSeconds: 0, types: [], order }))
    }
  }

  return {
    prepare,
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
      if (jobs.held().some(({ outcome }) => outcome !== undefined)) {
        wake()
        await Promise.race([recorded, giveUp(LEASE_SECONDS * 1000)])
      }
      await poller.stop()
    },
  }
}

const NO_NEWS = { floors: {}, big_waiting: false, paused: false }

const NIL = '00000000-0000-0000-0000-000000000000'
const NOBODYS: Extract<EndedAttempt, { state: 'completed' }> = {
  job_id: NIL,
  org_id: NIL,
  token: '0',
  stream_id: '0',
  attempt: 1,
  ranMs: 0,
  announced: true,
  state: 'completed',
  resultJson: null,
}

const toStart = ({ job, startedAtMs = 0 }: HeldJob) => ({
  job_id: job.job_id,
  token: job.token,
  ranMs: performance.now() - startedAtMs,
})

const endedAtMs = ({ startedAtMs = 0, ranMs }: HeldJob): number => startedAtMs + ranMs

const giveUp = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref())
