import { setTimeout as delay } from 'node:timers/promises'
import { type Arena, withQueue } from './arena.ts'
import { sharedNowMs } from './clock.ts'
import type { Contender, QueueClient } from './contender.ts'
import { type Curve, rateBetween } from './curve.ts'
import { startWorkers, type WorkerProcesses } from './worker-processes.ts'

export type DrainOptions = {
  url: string
  workers: number
  /** How many are queued, and how many of them are run before the measurement ends: all, unless given. */
  jobs: number
  measured?: number
  /** Ends it early; the shares are then of what was run by then. */
  capMs?: number
}

export type Drain = {
  /** From the opening of the gate until the queue itself says that nothing is left; NaN if some was left. */
  jobsPerSecond: number
  /** Between a tenth and nine tenths of what was measured: comparable between drains that end and that do not. */
  steadyPerSecond: number
  /** How fast it was in the end, as a share of how fast it began: last fifth to first fifth. */
  lastToFirst: number
  perJob: { serverCpuMicros?: number; nodeCpuMicros?: number; walBytes?: number }
}

const CONFIRM_MS = 10
const DEADLINE_MS = 180_000

/**
 * Runs what is queued. One rule for everyone: the workers start, claim, and their handlers wait at a gate; once
 * each worker holds a job the gate opens, and the clock starts. What was claimed by then counts too: that is in
 * favour of whoever fetches much ahead, which is the peers, and at most a few per cent.
 */
export const drain = async (arena: Arena, contender: Contender, options: DrainOptions): Promise<Drain> => {
  const { url, jobs, measured = jobs } = options
  const store = arena.storeOf(contender)
  const workers = await startWorkers(contender, { url, count: options.workers, mode: 'drain' })
  try {
    return await withQueue(contender, { url, connections: 1 }, async (queue) => {
      const before = await store.usage(url)
      const openedMs = sharedNowMs()
      workers.open()
      const finished = await untilRun(workers, measured, options.capMs)
      const endedMs = finished && measured === jobs ? await untilEmpty(queue) : Number.NaN
      const after = await store.usage(url)
      const run = workers.curve.total()
      return {
        jobsPerSecond: (jobs / (endedMs - openedMs)) * 1000,
        ...shape(workers.curve, Math.min(measured, run)),
        perJob: {
          ...perJob('serverCpuMicros', before.cpuMs, after.cpuMs, run / 1000),
          ...perJob('nodeCpuMicros', 0, workers.cpuMs(), run / 1000),
          ...perJob('walBytes', before.walBytes, after.walBytes, run),
        },
      }
    })
  } finally {
    await workers.stop()
  }
}

const untilRun = async (workers: WorkerProcesses, jobs: number, capMs = DEADLINE_MS): Promise<boolean> => {
  const timer = new AbortController()
  const finished = await Promise.race([
    workers.curve.until(jobs).then(() => true),
    delay(capMs, false, { signal: timer.signal }).catch(() => false),
    workers.failed,
  ])
  timer.abort()
  return finished
}

/** The handlers have run; the queue has the last word. Answers the time at which it was first seen empty. */
const untilEmpty = async (queue: QueueClient): Promise<number> => {
  const deadline = sharedNowMs() + DEADLINE_MS
  for (;;) {
    const askedMs = sharedNowMs()
    const left = await queue.unfinished()
    if (left === 0) return askedMs
    if (askedMs > deadline) throw new Error(`All handlers have run, yet ${left} jobs are unfinished`)
    await delay(CONFIRM_MS)
  }
}

const shape = (curve: Curve, jobs: number) => ({
  steadyPerSecond: rateBetween(curve, jobs, 0.1, 0.9),
  // Without the first twentieth, of which some waited at the gate.
  lastToFirst: rateBetween(curve, jobs, 0.8, 1) / rateBetween(curve, jobs, 0.05, 0.2),
})

const perJob = <Name extends string>(
  name: Name,
  before: number | undefined,
  after: number | undefined,
  jobs: number,
): Partial<Record<Name, number>> =>
  before === undefined || after === undefined
    ? {}
    : ({ [name]: (after - before) / jobs } as Partial<Record<Name, number>>)
