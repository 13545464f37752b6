import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type ProcessGroup, trackGroup } from './process-group.ts'

export type WorkerReady = { kind: 'ready'; workerId: string; types: string[] }

/** What a worker is told by whoever has started it. */
export type WorkerOrder = { kind: 'retire' }

export type WorkerProcess = ProcessGroup & {
  readonly ready: Promise<WorkerReady>
  /** Has it finish what it runs, however long that takes, and then exit with code 0. */
  retire(): void
}

/**
 * Room for what jobs in flight leave behind: with the default of 16 MiB the collector copies them again and again, and
 * takes a fifth of a worker's time under load.
 */
export const YOUNG_GENERATION = '--max-semi-space-size=64'

/**
 * What is freed goes back to the system. By default glibc keeps it, in an arena for each thread, and V8's compilers free a
 * lot: a worker took 160 MB when idle instead of 140, and 215 instead of 190 while an etl job reads a million rows.
 */
export const FRUGAL_MALLOC = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
}

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))

/** A worker in a process of its own, as in a pod. It also stops by itself when this process vanishes. */
export const spawnWorker = (options: { env: NodeJS.ProcessEnv; drainSeconds: number }): WorkerProcess => {
  // Nobody beyond this machine has anything to ask it.
  const child = fork(MAIN, ['--ip', '127.0.0.1'], {
    detached: true,
    execArgv: [...process.execArgv, YOUNG_GENERATION],
    env: { ...FRUGAL_MALLOC, ...options.env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  // A handler that ignores the end of the drain time gets a few seconds more before it is left behind.
  const group = trackGroup(child, { signal: 'SIGTERM', graceMs: (options.drainSeconds + 10) * 1000 })
  const ready = once(child, 'message').then(([message]) => message as WorkerReady)
  const retire = (): void => {
    // One that dies at this moment does not hear it, and its end is told anyway: an error that nobody takes would end this process.
    if (child.connected) child.send({ kind: 'retire' } satisfies WorkerOrder, () => {})
  }
  return { ...group, ready, retire }
}
