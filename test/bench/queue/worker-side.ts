import { sharedNowMs } from './clock.ts'

/** What a worker process and the benchmark tell each other. */
export type FromWorker =
  /** Claims; in a drain it is told only once a job waits at the gate. */
  | { kind: 'ready' }
  | { kind: 'progress'; atMs: number; done: number; cpuMs: number }
  | { kind: 'started'; atMs: number }
export type ToWorker = { kind: 'open' }
/** `drain`: jobs wait at a gate until all workers hold some. `pickup`: each start is told at once. */
export type Mode = 'drain' | 'pickup'

/** The handler of every contender; `jobs` is how many one call stands for. */
export type Handle = (jobs?: number) => Promise<void> | undefined

const PROGRESS_MS = 50

/**
 * The inside of a worker process, the same for every contender: `start` makes the library's worker call `handle`.
 * Counting is an addition in memory, told every 50 ms, so that it costs all of them the same next to nothing.
 */
export const runWorker = (start: (url: string, handle: Handle) => Promise<unknown>): void => {
  const url = process.env.BENCH_URL ?? ''
  const mode = process.env.BENCH_MODE as Mode
  const tell = (message: FromWorker): void => void process.send?.(message)
  process.once('disconnect', () => process.exit())
  const handle = mode === 'drain' ? gatedHandle(tell) : tellingHandle(tell)
  start(url, handle).then(
    () => mode === 'pickup' && tell({ kind: 'ready' }),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
}

const tellingHandle =
  (tell: (message: FromWorker) => void): Handle =>
  () => {
    tell({ kind: 'started', atMs: sharedNowMs() })
    return undefined
  }

const gatedHandle = (tell: (message: FromWorker) => void): Handle => {
  let done = 0
  let held = false
  let open = false
  const gate = Promise.withResolvers<void>()
  const tellProgress = (): void => {
    const { user, system } = process.cpuUsage()
    tell({ kind: 'progress', atMs: sharedNowMs(), done, cpuMs: (user + system) / 1000 })
  }
  process.on('message', (_message: ToWorker) => {
    open = true
    tellProgress()
    setInterval(tellProgress, PROGRESS_MS)
    gate.resolve()
  })
  const waitAtGate = async (jobs: number): Promise<void> => {
    if (!held) tell({ kind: 'ready' })
    held = true
    await gate.promise
    done += jobs
  }
  return (jobs = 1) => {
    if (!open) return waitAtGate(jobs)
    done += jobs
    return undefined
  }
}
