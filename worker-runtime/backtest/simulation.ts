import { createAgeShare } from '../age-share.ts'
import { createEventHeap } from './event-heap.ts'
import type { PastJob } from './history.ts'
import type { Policy, Ticket } from './policies.ts'
import { createReadyQueue, type Queued } from './ready-queue.ts'

type SimulatedJob = Queued & { index: number; job: PastJob; readyAtS: number; ticket: Ticket }

/**
 * Replays a history on a number of workers that run one job each. A job is ready when it is submitted and all that it depends
 * on has ended; answered is how long each then waited, in seconds. History is what has ended here, at simulated times.
 */
export const simulate = (options: {
  jobs: readonly PastJob[]
  submitS: Float64Array
  workers: number
  policy: Policy
  onProgress: (ended: number) => void
}): Float64Array => {
  const { jobs, submitS, policy } = options
  const queue = createReadyQueue<SimulatedJob>()
  const running = createEventHeap<{ simulated: SimulatedJob; worker: number; order: 'rank' | 'age' }>()
  const idle = Array.from({ length: options.workers }, (_, worker) => worker)
  const shares = idle.map(() => createAgeShare(policy.ageShare))
  const { remaining, children } = dependenciesOf(jobs)
  const tickets: (Ticket | undefined)[] = []
  const waitS = new Float64Array(jobs.length)
  let submitted = 0
  let ended = 0

  const becomeReady = (index: number, readyAtS: number): void => {
    const ticket = tickets[index]
    const job = jobs[index]
    if (!ticket || !job) return
    queue.add({ ...ticket, ticket, index, job, readyAtS, lane: 0, key: 0, taken: false })
  }

  const submit = (nowS: number): void => {
    const job = jobs[submitted] as PastJob
    tickets[submitted] = policy.submit(job, nowS, queue.size())
    if ((remaining[submitted] ?? 0) === 0) becomeReady(submitted, nowS)
    submitted++
  }

  const end = (nowS: number): void => {
    const { simulated, worker, order } = running.pop()
    idle.push(worker)
    shares[worker]?.correct(order, simulated.job.runtimeMs - simulated.ticket.predictedMs)
    const moved = policy.end(simulated.ticket, simulated.job, nowS)
    if (moved !== undefined) queue.rescore(moved)
    for (const child of children.get(simulated.index) ?? []) {
      remaining[child] = (remaining[child] ?? 0) - 1
      if (remaining[child] === 0) becomeReady(child, nowS)
    }
    if (++ended % 500 === 0) options.onProgress(ended)
  }

  const dispatch = (nowS: number): void => {
    while (idle.length > 0 && queue.size() > 0) {
      const worker = idle.shift() as number
      const share = shares[worker] as ReturnType<typeof createAgeShare>
      const order = share.isDue() ? 'age' : 'rank'
      const oldest = queue.oldest()
      const simulated = (order === 'age' ? queue.takeOldest() : queue.takeFirst()) as SimulatedJob
      const { predictedMs } = simulated.ticket
      share.observe(order, predictedMs, simulated === oldest ? predictedMs : 0)
      waitS[simulated.index] = nowS - simulated.readyAtS
      running.push(nowS + simulated.job.runtimeMs / 1000, { simulated, worker, order })
    }
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
