import { listPodLoads } from '../../db/queries/registry.ts'
import type { Run } from '../../db/query.ts'
import { ApiError } from '../cluster/api-client.ts'
import type { Logger } from '../logger.ts'
import { createPoller, type Poller } from '../poller.ts'
import { costOf, type HeldCost, holdCost } from './deletion-cost.ts'
import type { Pod, Pods } from './pods.ts'

export type CostResult = 'patched' | 'failed'

const LOOK_MS = 5_000
/** Kubernetes asks not to write costs often: each pod's at most this often, however it fares. */
const WRITE_MS = 10_000

/** A host's name ends here, a pod's may be longer. */
const HOSTNAME_LENGTH = 63

/**
 * Keeps the costs of deleting the workers' pods, by the registry. It deletes nothing and starts nothing: if it is away, the
 * costs stay as they are, and whoever scales down deletes by them.
 */
export const createDeletionCosts = (options: {
  run: Run
  pods: Pods
  logger: Logger
  now: () => number
  onResult: (result: CostResult) => void
  onError: (error: Error) => void
}): Poller & { look(): Promise<number> } => {
  const { run, pods, now } = options
  let known = new Map<string, { held: HeldCost; writtenAtMs: number }>()

  const look = async (): Promise<number> => {
    const loads = new Map((await run(listPodLoads())).map((load) => [load.hostname, load]))
    const listed = await pods.list()
    const before = known
    known = new Map()
    let pauseMs = LOOK_MS
    for (const pod of listed) {
      const last = before.get(pod.uid)
      const held = holdCost(last?.held, costOf(loads.get(hostnameOf(pod.name))), now())
      const writtenAtMs = last?.writtenAtMs ?? Number.NEGATIVE_INFINITY
      const isDue = pod.cost !== held.cost && now() - writtenAtMs >= WRITE_MS && pauseMs === LOOK_MS
      known.set(pod.uid, { held, writtenAtMs: isDue ? now() : writtenAtMs })
      if (isDue) pauseMs = Math.max(LOOK_MS, await write(pod, held.cost))
    }
    return pauseMs
  }

  /** Answers how long the API wants to be left alone. What fails for one pod need not fail for the next. */
  const write = async (pod: Pod, cost: number): Promise<number> => {
    try {
      await pods.setCost(pod, cost)
      options.onResult('patched')
      options.logger.debug('deletion cost changed', { pod: pod.name, from: pod.cost, to: cost })
      return 0
    } catch (error) {
      if (isGone(error)) return 0
      options.onResult('failed')
      options.onError(error as Error)
      return error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0
    }
  }

  return { look, ...createPoller({ step: look, onError: options.onError }) }
}

/** Deleted since it was listed, or another by the same name: nothing is left to do. */
const isGone = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 404 || error.status === 409)

/** As kubelet cuts it. */
const hostnameOf = (podName: string): string => podName.slice(0, HOSTNAME_LENGTH).replace(/[-.]+$/, '')
