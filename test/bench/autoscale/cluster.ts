/**
 * Pods of some slots each, and one queue, first in, first out. A pod takes a while to start, and one that is to go runs what it
 * has to the end; both are paid for. Time goes on in steps; within a step jobs start at the very moment a slot is free.
 */
import type { SimulatedJob } from './workloads.ts'

export type Cluster = {
  /** Pods that are there or start, without those that are to go. */
  size(): number
  resize(size: number): void
  /** Goes on to this moment: jobs arrive, start and end. */
  runTo(seconds: number): void
  queued(): readonly SimulatedJob[]
  running(): readonly RunningJob[]
  /** Seconds between arrival and start, of all jobs that have started. */
  readonly waits: number[]
  podSeconds(): number
}

export type RunningJob = { job: SimulatedJob; startedAt: number; endsAt: number }

type Pod = { askedAt: number; readyAt: number; goneAt: number | undefined; slots: (RunningJob | undefined)[] }

export const createCluster = (options: {
  jobs: readonly SimulatedJob[]
  pods: number
  slotsPerPod: number
  podStartSeconds: number
}): Cluster => {
  const waits: number[] = []
  const pods: Pod[] = []
  const queue: SimulatedJob[] = []
  let next = 0
  let now = 0

  const addPod = (startSeconds: number): Pod => {
    const slots = Array.from({ length: options.slotsPerPod }, () => undefined)
    const pod = { askedAt: now, readyAt: now + startSeconds, goneAt: undefined, slots }
    pods.push(pod)
    return pod
  }
  for (let n = 0; n < options.pods; n++) addPod(0)

  let staying = [...pods]
  const runningIn = (pod: Pod): RunningJob[] =>
    pod.slots.flatMap((one) => (one && one.endsAt > now ? [one] : []))

  /** As Kubernetes does with a deletion cost: those that are not ready first, then those with the least to do. */
  const removePod = (): void => {
    const cost = (pod: Pod): number => (pod.readyAt > now ? -1 : runningIn(pod).length)
    const [pod] = staying.toSorted((a, b) => cost(a) - cost(b))
    if (!pod) return
    pod.goneAt = Math.max(now, ...runningIn(pod).map(({ endsAt }) => endsAt))
    staying = staying.filter((one) => one !== pod)
  }

  /** The slot that is free first. */
  const firstFree = (): { pod: Pod; slot: number; freeAt: number } | undefined => {
    let first: { pod: Pod; slot: number; freeAt: number } | undefined
    for (const pod of staying) {
      for (const [slot, running] of pod.slots.entries()) {
        const freeAt = Math.max(pod.readyAt, running?.endsAt ?? 0)
        if (!first || freeAt < first.freeAt) first = { pod, slot, freeAt }
      }
    }
    return first
  }

  const startJobs = (until: number): void => {
    for (let job = queue[0]; job; job = queue[0]) {
      const free = firstFree()
      if (!free) return
      const startedAt = Math.max(free.freeAt, job.arrivesAt)
      if (startedAt >= until) return
      queue.shift()
      free.pod.slots[free.slot] = { job, startedAt, endsAt: startedAt + job.runtime }
      waits.push(startedAt - job.arrivesAt)
    }
  }

  return {
    size: () => staying.length,
    resize: (size) => {
      while (staying.length < size) staying.push(addPod(options.podStartSeconds))
      while (staying.length > size) removePod()
    },
    runTo: (seconds) => {
      for (let job = options.jobs[next]; job && job.arrivesAt < seconds; job = options.jobs[next]) {
        queue.push(job)
        next++
      }
      startJobs(seconds)
      now = seconds
    },
    queued: () => queue,
    running: () => pods.flatMap(runningIn),
    waits,
    podSeconds: () =>
      pods.reduce((sum, { askedAt, goneAt }) => sum + Math.min(now, goneAt ?? now) - askedAt, 0),
  }
}
