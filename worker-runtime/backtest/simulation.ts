import { createEventHeap } from './event-heap.ts'
import type { PastJob } from './history.ts'
import type { Policy, Ticket } from './policies.ts'
import { createReadyQueue, type ReadyQueue } from './ready-queue.ts'
import {
  createSimulatedWorker,
  type SimulatedWorker,
  type StartableJob,
  type Started,
} from './simulated-worker.ts'

type SimulatedJob = StartableJob & { index: number; job: PastJob; readyAtS: number }

/**
 * Replays a history on workers with several slots each. A job is ready when it is submitted and all that it depends
 * on has ended; answered is how long each then waited, in seconds. History is what has ended here, at simulated times.
 */
export const simulate = (options: {
  jobs: readonly PastJob[]
  submitS: Float64Array
  workers: number
  /** Of each worker. */
  slots: number
  policy: Policy
  /** The weight of an organisation: 1, unless given. */
  weightOf?: (org: string) => number
  onProgress: (ended: number) => void
}): Float64Array => {
  const { jobs, submitS, policy, weightOf = () => 1 } = options
  const flows = new Map<string, number>()
  const queues = new Map<number, ReadyQueue<SimulatedJob>>()
  const running = createEventHeap<{ worker: number; started: Started<SimulatedJob> }>()
  const workers = Array.from({ length: options.workers }, () =>
    createSimulatedWorker<SimulatedJob>(policy.ageShare, (flow) => queueOf(flow)),
  )
  /** A worker for each of its free slots. */
  const idle = Array.from({ length: options.slots }, () => [...workers.keys()]).flat()
  const { remaining, children } = dependenciesOf(jobs)
  const tickets: (Ticket | undefined)[] = []
  const waitS = new Float64Array(jobs.length)
  let submitted = 0
  let ended = 0
  let ready = 0

  /** Without shares, all jobs are of one flow. */
  const flowOf = (org: string): number => {
    const key = policy.hasShares ? org : ''
    const flow = flows.get(key) ?? flows.size * 2 ** 32
    flows.set(key, flow)
    return flow
  }

  const queueOf = (flow: number): ReadyQueue<SimulatedJob> => {
    const queue = queues.get(flow) ?? createReadyQueue()
    queues.set(flow, queue)
    return queue
  }

  const becomeReady = (index: number, readyAtS: number): void => {
    const ticket = tickets[index]
    const job = jobs[index]
    if (!ticket || !job) return
    const flow = flowOf(job.org)
    const queue = queueOf(flow)
    const { series, rank } = ticket
    const weight = weightOf(job.org)
    queue.add({ series, rank, lane: 0, key: 0, taken: false, flow, weight, ticket, index, job, readyAtS })
    ready++
    if (queue.size() === 1) for (const worker of workers) worker.flowChanged(flow, true)
  }

  const submit = (nowS: number): void => {
    const job = jobs[submitted] as PastJob
    tickets[submitted] = policy.submit(job, nowS, ready)
    if ((remaining[submitted] ?? 0) === 0) becomeReady(submitted, nowS)
    submitted++
  }

  const end = (nowS: number): void => {
    const { worker, started } = running.pop()
    const { job, ticket, flow, index } = started.job
    idle.push(worker)
    workers[worker]?.end(started, job.runtimeMs)
    const moved = policy.end(ticket, job, nowS)
    if (moved !== undefined) queueOf(flow).rescore(moved)
    for (const child of children.get(index) ?? []) {
      remaining[child] = (remaining[child] ?? 0) - 1
      if (remaining[child] === 0) becomeReady(child, nowS)
    }
    if (++ended % 500 === 0) options.onProgress(ended)
  }

  const dispatch = (nowS: number): void => {
    while (idle.length > 0 && ready > 0) {
      const worker = idle.shift() as number
      const started = (workers[worker] as SimulatedWorker<SimulatedJob>).start(nowS * 1000)
      const { index, job, readyAtS, flow } = started.job
      ready--
      if (queueOf(flow).size() === 0) for (const other of workers) other.flowChanged(flow, false)
      waitS[index] = nowS - readyAtS
      running.push(nowS + job.runtimeMs / 1000, { worker, started })
    }
    if (ready === 0) for (const worker of new Set(idle)) workers[worker]?.foundNothing()
  }

  while (ended < jobs.length) {
    const submitAt = submitS[submitted] ?? Number.POSITIVE_INFINITY
    const endAt = running.peekAt()
    if (submitAt === Number.POSITIVE_INFINITY && endAt === Number.POSITIVE_INFINITY) break
    if (endAt <= submitAt) end(endAt)
    else submit(submitAt)
    const nowS = Math.min(submitAt, endAt)
    // What happens at the same moment comes before anything is started.
    if (running.peekAt() > nowS && (submitS[submitted] ?? Number.POSITIVE_INFINITY) > nowS) dispatch(nowS)
  }
  return waitS
}

/** A parent that is not in the history, or comes after its child, holds nothing up. */
const dependenciesOf = (jobs: readonly PastJob[]) => {
  const places = new Map(jobs.map(({ id }, index) => [id, index]))
  const remaining = new Int32Array(jobs.length)
  const children = new Map<number, number[]>()
  for (const [index, { dependsOn }] of jobs.entries()) {
    for (const id of new Set(dependsOn)) {
      const parent = places.get(id)
      if (parent === undefined || parent === index) continue
      remaining[index] = (remaining[index] ?? 0) + 1
      const known = children.get(parent)
      if (known) known.push(index)
      else children.set(parent, [index])
    }
  }
  return { remaining, children }
}
