import { type AgeShare, createAgeShare } from '../age-share.ts'
import { type Charge, createShares } from '../shares.ts'
import type { Ticket } from './policies.ts'
import type { Queued, ReadyQueue } from './ready-queue.ts'

/** A job that may be started. */
export type StartableJob = Queued & { flow: number; weight: number; ticket: Ticket }

/** A job that was started, and what it was charged to. */
export type Started<Job> = {
  job: Job
  startedAtMs: number
  charge: Charge
  age: AgeShare
  order: 'rank' | 'age'
}

/**
 * A worker as the simulation needs it. It divides its time between flows, and a flow's time between its oldest jobs and
 * the first by rank, with the arithmetic of the product.
 */
export type SimulatedWorker<Job> = {
  /** The flow has ready jobs, or none any more. */
  flowChanged(flow: number, waits: boolean): void
  /** Takes the next job out of its queue. At least one flow must wait. */
  start(nowMs: number): Started<Job>
  end(started: Started<Job>, ranMs: number): void
  /** It has a free slot and there is nothing to run. */
  foundNothing(): void
}

export const createSimulatedWorker = <Job extends StartableJob>(
  ageShare: number,
  queueOf: (flow: number) => ReadyQueue<Job>,
): SimulatedWorker<Job> => {
  const shares = createShares()
  const ages = new Map<number, AgeShare>()
  const running = new Set<Started<Job>>()

  const ageOf = (flow: number): AgeShare => {
    const age = ages.get(flow) ?? createAgeShare(ageShare)
    ages.set(flow, age)
    return age
  }

  /** As the claim planner does: a job that runs for longer than predicted is charged at once. */
  const chargeOverdue = (nowMs: number): void =>
    shares.overdue(
      [...running].flatMap(({ job, startedAtMs, charge }) => {
        const byMs = nowMs - startedAtMs - job.ticket.predictedMs
        return byMs > 0 ? [{ charge, byMs }] : []
      }),
    )

  const start: SimulatedWorker<Job>['start'] = (nowMs) => {
    chargeOverdue(nowMs)
    const flow = shares.next(1).turns[0]?.flow as number
    const queue = queueOf(flow)
    const age = ageOf(flow)
    const order = age.isDue() ? 'age' : 'rank'
    const oldest = queue.oldest()
    const job = (order === 'age' ? queue.takeOldest() : queue.takeFirst()) as Job
    const { predictedMs } = job.ticket
    age.observe(order, predictedMs, job === oldest ? predictedMs : 0)
    const charge = shares.charge(flow, { jobs: 1, ms: predictedMs, weight: job.weight })
    const started: Started<Job> = { job, startedAtMs: nowMs, charge, age, order }
    running.add(started)
    return started
  }

  const end: SimulatedWorker<Job>['end'] = (started, ranMs) => {
    running.delete(started)
    const byMs = ranMs - started.job.ticket.predictedMs
    shares.correct(started.charge, byMs)
    started.age.correct(started.order, byMs)
  }

  return {
    flowChanged: (flow, waits) => (waits ? shares.waits(flow) : shares.isEmpty(flow)),
    start,
    end,
    foundNothing: shares.forget,
  }
}
