import { freePort } from './ports.ts'
import type { Reaper } from './reaper-link.ts'
import { spawnWorker, type WorkerProcess } from './worker-process.ts'

export type PoolWorker = { readonly workerId: string; readonly types: string[]; readonly metricsPort: number }

export type WorkerPool = {
  /** Workers that are ready and were not asked to go, the oldest first. */
  workers(): PoolWorker[]
  /** Starts one more. Throws if it ends instead. */
  add(): Promise<PoolWorker>
  /** Has one of them finish what it runs, and then go. */
  retire(worker: PoolWorker): void
  /** Stops all at once, also those that are retiring or have not started yet. Twice is safe. */
  stop(): Promise<void>
}

/** A worker told by its closed channel that the runner is gone is stopping already: the signal ends it at once. */
const ORPHAN_GRACE_MS = 2_000

/** Real worker processes, more or fewer. One that ends without being asked to is told to `onDeath`. */
export const createWorkerPool = (options: {
  env: NodeJS.ProcessEnv
  drainSeconds: number
  reaper: Pick<Reaper, 'guard' | 'forget'>
  onDeath: (how: string) => void
}): WorkerPool => {
  const { env, drainSeconds, reaper } = options
  const processes = new Set<WorkerProcess>()
  const ready = new Map<PoolWorker, WorkerProcess>()
  const retiring = new Set<WorkerProcess>()
  /** A port is free until it is bound, which takes a second: of workers that start together none gets that of another. */
  const ports = new Set<number>()
  let stopping: Promise<void> | undefined

  const spawn = (metricsPort: number): WorkerProcess => {
    const worker = spawnWorker({
      env: { ...env, SMARTQUEUE_METRICS_PORT: String(metricsPort) },
      drainSeconds,
    })
    processes.add(worker)
    reaper.guard({ pid: worker.pid, signal: 'SIGTERM', graceMs: ORPHAN_GRACE_MS })
    worker.exited.then((how) => {
      const asked = stopping !== undefined || (retiring.has(worker) && how === 'exited with code 0')
      processes.delete(worker)
      retiring.delete(worker)
      ports.delete(metricsPort)
      reaper.forget(worker.pid)
      if (!asked) options.onDeath(how)
    })
    return worker
  }

  const ownPort = async (): Promise<number> => {
    for (;;) {
      const port = await freePort()
      if (ports.has(port)) continue
      ports.add(port)
      return port
    }
  }

  return {
    workers: () => [...ready.keys()],
    add: async () => {
      const metricsPort = await ownPort()
      if (stopping) throw new Error('The workers are being stopped.')
      const worker = spawn(metricsPort)
      const first = await Promise.race([worker.ready, worker.exited])
      if (typeof first === 'string') throw new Error(`The worker ${first}.`)
      const added = { workerId: first.workerId, types: first.types, metricsPort }
      ready.set(added, worker)
      worker.exited.then(() => ready.delete(added))
      return added
    },
    retire: (worker) => {
      const process = ready.get(worker)
      if (!process) return
      ready.delete(worker)
      retiring.add(process)
      process.retire()
    },
    stop: () => {
      // Together: one after the other, each would claim what the one before gave back.
      stopping ??= Promise.all([...processes].map((worker) => worker.stop())).then(() => {})
      return stopping
    },
  }
}
