import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type ProcessGroup, trackGroup } from './process-group.ts'

export type WorkerReady = { kind: 'ready'; workerId: string; types: string[] }

export type WorkerProcess = ProcessGroup & { readonly ready: Promise<WorkerReady> }

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))

/** A worker in a process of its own, as in a pod. It also stops by itself when this process vanishes. */
export const spawnWorker = (options: { env: NodeJS.ProcessEnv; drainSeconds: number }): WorkerProcess => {
  const child = fork(MAIN, {
    detached: true,
    env: options.env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  // A handler that ignores the end of the drain time gets a few seconds more before it is left behind.
  const group = trackGroup(child, { signal: 'SIGTERM', graceMs: (options.drainSeconds + 10) * 1000 })
  const ready = once(child, 'message').then(([message]) => message as WorkerReady)
  return { ...group, ready }
}
