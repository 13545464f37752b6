import { reportWorker, type WorkerStatus } from '../db/queries/workers.ts'
import type { Run } from '../db/query.ts'
import { createPoller } from './poller.ts'

export type Heartbeat = {
  /** Resolves once the worker is in the registry. */
  start(): Promise<void>
  /** It finishes what it has and takes nothing more. */
  drain(): void
  stop(): Promise<void>
}

const BEAT_MS = 2_000

/** Keeps the worker's row in the registry: `GET /jobs/workers`. */
export const createHeartbeat = (options: {
  run: Run
  workerId: string
  hostname: string
  types: readonly string[]
  slots: number
  cpuUnits: number
  memoryMb: number
  running: () => number
  processed: () => number
  onError: (error: Error) => void
}): Heartbeat => {
  const { run, workerId, hostname, types, slots, cpuUnits, memoryMb } = options
  let status: WorkerStatus = 'online'

  const beat = async (): Promise<number> => {
    const load = { running: options.running(), jobsProcessed: options.processed() }
    await run(reportWorker({ workerId, hostname, status, types, slots, cpuUnits, memoryMb, ...load }))
    return BEAT_MS
  }

  const poller = createPoller({ step: beat, onError: options.onError })
  return {
    start: async () => {
      await beat()
      poller.start()
    },
    drain: () => {
      status = 'draining'
      poller.wake()
    },
    stop: async () => {
      await poller.stop()
      status = 'offline'
      await beat().catch(options.onError)
    },
  }
}
