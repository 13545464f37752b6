import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { YOUNG_GENERATION } from '../../../worker-runtime/local/worker-process.ts'
import type { Contender } from './contender.ts'
import { type Curve, createCurve } from './curve.ts'
import type { FromWorker, Mode, ToWorker } from './worker-side.ts'

export type WorkerProcesses = {
  readonly curve: Curve
  /** Opens the gate of all of them. */
  open(): void
  /** CPU time since the gate opened. */
  cpuMs(): number
  /** Hears of the next start of a job, as the worker saw it. */
  nextStart(): Promise<number>
  /** Rejects if one of them ends by itself. */
  readonly failed: Promise<never>
  stop(): Promise<void>
}

const START_MS = 30_000

/** Real processes, each with one worker of the contender. Resolves when all of them are at work. */
export const startWorkers = async (
  contender: Contender,
  options: { url: string; count: number; mode: Mode },
): Promise<WorkerProcesses> => {
  const curve = createCurve()
  const cpu = new Map<number, { first: number; last: number }>()
  let hearStart = (_atMs: number): void => {}
  let stopping = false
  const children = Array.from({ length: options.count }, () => spawnWorker(contender, options))

  const hear = (worker: number, message: FromWorker): void => {
    if (message.kind === 'started') hearStart(message.atMs)
    if (message.kind !== 'progress') return
    curve.record(worker, message.atMs, message.done)
    cpu.set(worker, { first: cpu.get(worker)?.first ?? message.cpuMs, last: message.cpuMs })
  }
  children.forEach((child, worker) => {
    child.on('message', (message: FromWorker) => hear(worker, message))
  })
  const stop = async (): Promise<void> => {
    stopping = true
    await Promise.all(children.map(end))
  }
  const failed = Promise.race(children.map((child) => once(child, 'exit'))).then(([code, signal]) => {
    if (stopping) return new Promise<never>(() => {})
    throw new Error(`A worker of ${contender.name} ended with ${code ?? signal}`)
  })
  // Reported by whoever waits; unheard, it would end the benchmark without its clean-up.
  failed.catch(() => {})
  try {
    await Promise.race([Promise.all(children.map(untilReady)), failed, giveUp(contender)])
  } catch (error) {
    await stop()
    throw error
  }
  return {
    curve,
    failed,
    stop,
    open: () => {
      for (const child of children) child.send({ kind: 'open' } satisfies ToWorker)
    },
    cpuMs: () => [...cpu.values()].reduce((sum, { first, last }) => sum + last - first, 0),
    nextStart: () =>
      new Promise((resolve) => {
        hearStart = resolve
      }),
  }
}

const spawnWorker = (
  contender: Contender,
  options: { url: string; count: number; mode: Mode },
): ChildProcess =>
  fork(fileURLToPath(contender.worker.file), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    // As SmartQueue's own workers run; it does every contender good.
    execArgv: [...process.execArgv, YOUNG_GENERATION],
    env: {
      ...process.env,
      NODE_ENV: 'production',
      NODE_NO_WARNINGS: '1',
      ...contender.worker.env,
      BENCH_URL: options.url,
      BENCH_MODE: options.mode,
      BENCH_WORKERS: String(options.count),
    },
  })

const untilReady = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    child.on('message', (message: FromWorker) => {
      if (message.kind === 'ready') resolve()
    })
  })

/** With too few jobs queued, one worker may hold all of them while another waits for its first. */
const giveUp = async (contender: Contender): Promise<never> => {
  await delay(START_MS, undefined, { ref: false })
  throw new Error(`Not all workers of ${contender.name} hold a job after ${START_MS} ms`)
}

/** At once: its database is thrown away, and a worker that drains would still be measured by the next one. */
const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
