import { listPodLoads, type PodLoad } from '../../db/queries/registry.ts'
import type { Run } from '../../db/query.ts'
import { ApiError } from '../cluster/api-client.ts'
import type { Logger } from '../logger.ts'
import { createPoller } from '../poller.ts'
import { costOf, type HeldCost, holdCost } from './deletion-cost.ts'
import type { Pod, Pods } from './pods.ts'

export type DeletionCosts = {
  start(): void
  /** One round; answers the milliseconds until the next. */
  look(): Promise<number>
  stop(): Promise<void>
}

type Known = { readonly held: HeldCost; writtenAtMs: number | undefined }

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
}): DeletionCosts => {
  const { pods, now } = options
  let known = new Map<string, Known>()
  let stopping = false

  const look = async (): Promise<number> => {
    const loads = new Map((await options.run(listPodLoads())).map((load) => [load.hostname, load]))
    const listed = await pods.list()
    known = new Map(listed.map((pod) => [pod.uid, know(pod, loads.get(hostnameOf(pod.name)))]))
    for (const pod of listed) {
      const pauseMs = await writeIfDue(pod, known.get(pod.uid))
      if (pauseMs > 0 || stopping) return Math.max(pauseMs, LOOK_MS)
    }
    return LOOK_MS
  }

  const know = ({ uid }: Pod, load: PodLoad | undefined): Known => {
    const last = known.get(uid)
    return { held: holdCost(last?.held, costOf(load), now()), writtenAtMs: last?.writtenAtMs }
  }

  /** Answers how long the API wants to be left alone. What fails for one pod need not fail for the next. */
  const writeIfDue = async (pod: Pod, about: Known | undefined): Promise<number> => {
    if (!about || pod.cost === about.held.cost) return 0
    if (about.writtenAtMs !== undefined && now() - about.writtenAtMs < WRITE_MS) return 0
    about.writtenAtMs = now()
    try {
      await pods.setCost(pod, about.held.cost)
      options.onResult('patched')
      options.logger.debug('deletion cost changed', { pod: pod.name, from: pod.cost, to: about.held.cost })
      return 0
    } catch (error) {
      if (isGone(error)) return 0
      options.onResult('failed')
      options.onError(error as Error)
      return pauseOf(error) ?? 0
    }
  }

  const step = (): Promise<number> =>
    look().catch((error: Error) => {
      const pauseMs = pauseOf(error)
      if (pauseMs === undefined) throw error
      options.onError(error)
      return pauseMs
    })

  const poller = createPoller({ step, onError: options.onError })
  return {
    look,
    start: poller.start,
    stop: () => {
      stopping = true
      return poller.stop()
    },
  }
}

const pauseOf = (error: unknown): number | undefined =>
  error instanceof ApiError ? error.retryAfterMs : undefined

/** Deleted since it was listed, or another by the same name: nothing is left to do. */
const isGone = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 404 || error.status === 409)

/** As kubelet cuts it. */
const hostnameOf = (podName: string): string => podName.slice(0, HOSTNAME_LENGTH).replace(/[-.]+$/, '')
