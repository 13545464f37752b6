/**
 * `npm run dev` in the place of Kubernetes: as many workers as the leader's snapshot asks for, by the rules of its
 * HorizontalPodAutoscaler, but looked at more often: here a worker starts in a second.
 */
import { readAutoscale, STALE_SECONDS } from '../../db/queries/autoscale.ts'
import { getLeader, listWorkers } from '../../db/queries/registry.ts'
import type { Run } from '../../db/query.ts'
import type { ScalingSignal } from '../../db/rules/autoscale.ts'
import { scalingSignal } from '../../db/rules/autoscale.ts'
import { createReplicaScaler, type ReplicaRange } from '../autoscale/replicas.ts'
import { describeError } from '../describe-error.ts'
import { createPoller, type Poller } from '../poller.ts'
import type { PoolWorker, WorkerPool } from './worker-pool.ts'

const LOOK_MS = 2_000
/** More workers than any local system has. */
const LISTED = 1_000

export type Autoscaler = Pick<Poller, 'start' | 'stop'> & {
  /** One look, and what follows from it. */
  look(): Promise<void>
}

export const createAutoscaler = (options: {
  run: Run
  pool: WorkerPool
  range: ReplicaRange
  say: (line: string) => void
  /** A worker could not be started. */
  onFailure: (error: Error) => void
  /** Seconds, from any beginning. */
  now?: () => number
}): Autoscaler => {
  const { run, pool, now = () => performance.now() / 1_000 } = options
  const scaler = createReplicaScaler(options.range)
  let blind = false

  const look = async (): Promise<void> => {
    const [row] = await run(readAutoscale())
    const signal = row && row.age_seconds <= STALE_SECONDS ? scalingSignal(row) : undefined
    const current = pool.workers().length
    const needed = signal && [signal.needed.B, signal.needed.R, signal.needed.F]
    const next = scaler.next({ nowSeconds: now(), current, needed })
    if (next === current) return
    if (next > current) await grow(next - current)
    else await shrink(current - next)
    if (signal)
      options.say(`Scaled ${current} → ${next} ${next === 1 ? 'worker' : 'workers'}: ${reasonOf(signal)}`)
  }

  /** Side by side, as pods start. */
  const grow = async (count: number): Promise<void> => {
    try {
      await Promise.all(Array.from({ length: count }, () => pool.add()))
    } catch (error) {
      options.onFailure(error as Error)
    }
  }

  const shrink = async (count: number): Promise<void> => {
    const [[leader], registered] = await Promise.all([
      run(getLeader()),
      run(listWorkers(null, { after: null, limit: LISTED })),
    ])
    const running = new Map(registered.map((worker) => [worker.worker_id, worker.running]))
    const load = { leader: leader?.worker_id, runningOf: (id: string) => running.get(id) ?? 0 }
    for (const worker of dispensable(pool.workers(), load).slice(0, count)) pool.retire(worker)
  }

  const poller = createPoller({
    step: async () => {
      await look()
      blind = false
      return LOOK_MS
    },
    // Whether the database lives is watched by others.
    onError: (error) => {
      if (!blind) options.say(`The number of workers stays as it is: ${describeError(error)}`)
      blind = true
    },
  })
  return { look, start: poller.start, stop: poller.stop }
}

/**
 * Those that can best be done without first: idle ones before busy ones, new ones before old ones, and last of all the leader,
 * whose duties would have to be taken over.
 */
export const dispensable = (
  workers: readonly PoolWorker[],
  load: { leader: string | undefined; runningOf: (workerId: string) => number },
): PoolWorker[] => {
  const rank = ({ workerId }: PoolWorker): number =>
    workerId === load.leader ? Number.POSITIVE_INFINITY : load.runningOf(workerId)
  const newestFirst = [...workers].reverse()
  return newestFirst.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)))
}

/** By what asks for the most: `812 s of predicted work queued and running (B 1.7, R 1.2, F 0.0 workers)`. */
export const reasonOf = ({ B, R, F, needed }: ScalingSignal): string => {
  const seconds = (work: number): string => `${Math.round(work)} s of predicted work`
  const most = Math.max(needed.B, needed.R, needed.F)
  const [asked, what] =
    most === needed.B
      ? [B, 'queued and running']
      : most === needed.R
        ? [R, 'queued and arriving']
        : [F, 'on its way']
  const each = [`B ${needed.B.toFixed(1)}`, `R ${needed.R.toFixed(1)}`, `F ${needed.F.toFixed(1)}`].join(', ')
  return `${seconds(asked)} ${what} (${each} workers)`
}
