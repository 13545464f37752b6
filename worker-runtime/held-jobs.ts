import type { ClaimedJob, LeaseKey } from '../db/queue/exchange.ts'
import { parseTraceparent } from '../functions/tracing/traceparent.ts'
import type { Capacity } from './capacity.ts'
import { type Execution, type ExecutionTools, startExecution } from './executor.ts'
import type { JobHandler } from './handler-api.ts'
import { createLeaseBook, type Departure, type LeaseBook } from './lease-book.ts'
import type { Logger } from './logger.ts'
import { type EndedOutcome, ExecutionAborted, type Outcome } from './outcome.ts'
import { createWaitingLine } from './waiting-line.ts'

/** A job in this worker's hands, from the claim until its outcome is stored. */
export type HeldJob = {
  readonly job: ClaimedJob
  startedAtMs: number | undefined
  execution: Execution | undefined
  /** How it ended, and after how long. */
  outcome: EndedOutcome | undefined
  ranMs: number
}

export type HeldJobs = {
  running(): number
  unstarted(): number
  held(): HeldJob[]
  /** Starts what can start, in the order given, and keeps the rest. */
  accept(jobs: readonly ClaimedJob[], sentAtMs: number): void
  /** Still this very lease, and not a later one of the same job. */
  holds(held: HeldJob): boolean
  readonly leases: Omit<LeaseBook, 'open' | 'leave'>
  /** The outcome is stored. */
  letGo(held: HeldJob): void
  /** The job is no longer ours, although the database may not know it: its lease must live on until it does. */
  abandon(held: HeldJob): void
  /** The lease is gone. */
  lose(key: LeaseKey, why: 'lease_lost' | 'cancelled'): void
  /** Takes jobs that were not started out of our hands, the last first. */
  takeUnstarted(count: number): ClaimedJob[]
  takeUnstartedWhere(wanted: (job: ClaimedJob) => boolean): ClaimedJob[]
  startWaiting(): void
  /** Lets jobs finish until `patienceEnds`, then stops them. Answers those to give back. */
  drain(patienceEnds: Promise<void>): Promise<ClaimedJob[]>
}

export const createHeldJobs = (options: {
  handlers: ReadonlyMap<string, JobHandler>
  capacity: Capacity
  tools: ExecutionTools
  logger: Logger
  /** An attempt has ended; its slot is free. */
  onEnded: (held: HeldJob) => void
  /** A slot is free without an outcome to store. */
  onFreed: () => void
  /** A job has left without an outcome to store, after it ran for `ranMs`. */
  onLeft: (job: ClaimedJob, how: 'lost' | 'cancelled' | 'given_back', ranMs: number) => void
}): HeldJobs => {
  const { capacity, logger } = options
  const held = new Map<string, HeldJob>()
  const leases = createLeaseBook()
  const waiting = createWaitingLine<HeldJob>()
  const unfinished: ClaimedJob[] = []
  let inExecution = 0
  let draining = false
  let allSettled = (): void => {}

  const accept = (jobs: readonly ClaimedJob[], sentAtMs: number): void => {
    for (const { job_id } of jobs) {
      // After a lost lease this very worker may claim the same job again while the lost attempt has not ended yet.
      const former = held.get(job_id)
      if (former?.outcome) abandon(former)
      else if (former) lose(former.job, 'lease_lost')
    }
    for (const job of jobs) {
      const entry = { job, startedAtMs: undefined, execution: undefined, outcome: undefined, ranMs: 0 }
      held.set(job.job_id, entry)
      waiting.add(entry)
    }
    const [first] = jobs
    if (first) leases.open(first.token, jobs.length, sentAtMs)
    startWaiting()
  }

  const startWaiting = (): void => {
    for (;;) {
      const entry = waiting.first()
      if (!entry || draining || !capacity.fits(entry.job)) return
      waiting.shift()
      start(entry)
    }
  }

  const start = (entry: HeldJob): void => {
    const { job } = entry
    const handler = options.handlers.get(job.type)
    if (!handler) throw new Error(`Claimed a job of type ${job.type}, which has no handler`)
    logger.debug('job started', describe(job))
    capacity.take(job)
    inExecution++
    entry.startedAtMs = performance.now()
    entry.execution = startExecution(job, handler, options.tools, (outcome) => settle(entry, outcome))
  }

  const settle = (entry: HeldJob, outcome: Outcome): void => {
    capacity.release(entry.job)
    inExecution--
    conclude(entry, outcome)
    startWaiting()
    if (inExecution === 0) allSettled()
  }

  const conclude = (entry: HeldJob, outcome: Outcome): void => {
    const { job } = entry
    const ranMs = performance.now() - (entry.startedAtMs ?? 0)
    switch (outcome.kind) {
      case 'lost':
        if (outcome.cancelled) logger.info('job cancelled', describe(job))
        else logger.warn('lease lost, outcome dropped', describe(job))
        abandon(entry)
        options.onLeft(job, outcome.cancelled ? 'cancelled' : 'lost', ranMs)
        options.onFreed()
        break
      case 'released':
        unfinished.push(job)
        options.onLeft(job, 'given_back', ranMs)
        break
      case 'done':
      case 'snoozed':
      case 'failed': {
        if (outcome.kind === 'failed') {
          options.tools.logFor(job).error(`${outcome.error.code}: ${outcome.error.message}`)
        }
        entry.outcome = outcome
        entry.ranMs = ranMs
        options.onEnded(entry)
      }
    }
  }

  const leave = (entry: HeldJob, how: Departure): void => {
    const { job_id, token } = entry.job
    if (held.get(job_id) === entry) held.delete(job_id)
    leases.leave(token, how)
  }

  const letGo = (entry: HeldJob): void => leave(entry, 'recorded')

  const abandon = (entry: HeldJob): void => leave(entry, 'abandoned')

  const lose = (key: LeaseKey, why: 'lease_lost' | 'cancelled'): void => {
    const entry = held.get(key.job_id)
    if (!entry || entry.job.token !== key.token) return
    if (entry.execution) {
      entry.execution.abort(why === 'cancelled' ? cancelled() : leaseLost())
      return
    }
    waiting.remove(entry)
    abandon(entry)
    options.onLeft(entry.job, why === 'cancelled' ? 'cancelled' : 'lost', 0)
  }

  const handOver = (entries: HeldJob[]): ClaimedJob[] => {
    for (const entry of entries) {
      abandon(entry)
      options.onLeft(entry.job, 'given_back', 0)
    }
    return entries.map(({ job }) => job)
  }

  const takeUnstarted = (count: number): ClaimedJob[] => handOver(waiting.takeLast(count))

  const drain = async (patienceEnds: Promise<void>): Promise<ClaimedJob[]> => {
    draining = true
    const unstarted = takeUnstarted(waiting.length())
    const settled = new Promise<void>((resolve) => {
      allSettled = resolve
      if (inExecution === 0) resolve()
    })
    await Promise.race([settled, patienceEnds])
    const shutdown = new ExecutionAborted('shutdown', 'The worker is shutting down.')
    for (const { execution } of held.values()) execution?.abort(shutdown)
    await settled
    return [...unstarted, ...unfinished]
  }

  return {
    running: () => inExecution,
    unstarted: waiting.length,
    held: () => [...held.values()],
    accept,
    leases,
    holds: (entry) => held.get(entry.job.job_id) === entry,
    letGo,
    abandon,
    lose,
    takeUnstarted,
    takeUnstartedWhere: (wanted) => handOver(waiting.takeWhere(({ job }) => wanted(job))),
    startWaiting,
    drain,
  }
}

const leaseLost = (): ExecutionAborted =>
  new ExecutionAborted('lease_lost', 'The lease of this attempt was lost.')

const cancelled = (): ExecutionAborted => new ExecutionAborted('cancelled', 'The job was cancelled.')

/** What a line about a job says of it. Of a job in a trace also of which, whether or not this worker exports spans. */
export const describe = ({ job_id, type, name, attempt, trace }: ClaimedJob) => {
  const traceId = trace ? parseTraceparent(trace.traceparent)?.traceId : undefined
  return { job_id, type, name, attempt, ...(traceId !== undefined && { trace_id: traceId }) }
}
