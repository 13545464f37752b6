import { laneOf } from '../../db/rules/lanes.ts'

/** A job that is ready, as the queue sees it. */
export type Queued = { series: string; rank: () => number; lane: number; key: number; taken: boolean }

/**
 * The ready jobs of the simulation, in lanes, as `ready_jobs` keeps them. A claim by rank looks at the first candidates of the
 * index and takes the one that the newest estimates put first; the leader moves the jobs of series that have moved.
 */
export type ReadyQueue<Job extends Queued> = {
  add(job: Job): void
  takeFirst(): Job | undefined
  takeOldest(): Job | undefined
  oldest(): Job | undefined
  /** Puts the jobs of a series into the lanes that they belong to now. */
  rescore(series: string): void
  size(): number
}

/** As the claim statement: one job, and so many more to compare it with. */
const CANDIDATES = 65

export const createReadyQueue = <Job extends Queued>(): ReadyQueue<Job> => {
  const lanes = new Map<number, Job[]>()
  let order: number[] = []
  const byAge: Job[] = []
  const bySeries = new Map<string, Set<Job>>()
  let size = 0
  let nextKey = 0

  const place = (job: Job): void => {
    job.lane = laneOf(job.rank())
    job.key = nextKey++
    const lane = lanes.get(job.lane)
    if (lane) lane.push(job)
    else {
      lanes.set(job.lane, [job])
      order = [...lanes.keys()].sort((a, b) => a - b)
    }
  }

  /** Entries of jobs that were taken or moved stay behind until the front of their lane comes to them. */
  const isStale = (job: Job, lane: number): boolean => job.taken || job.lane !== lane

  const candidates = (): Job[] => {
    const found: Job[] = []
    for (const lane of order) {
      const jobs = lanes.get(lane) as Job[]
      let stale = 0
      for (const job of jobs) {
        if (isStale(job, lane)) {
          if (found.length === 0) stale++
          continue
        }
        found.push(job)
        if (found.length === CANDIDATES) return found
      }
      if (stale > 0) jobs.splice(0, jobs.findIndex((job) => !isStale(job, lane)) >>> 0)
    }
    return found
  }

  const take = (job: Job): Job => {
    job.taken = true
    bySeries.get(job.series)?.delete(job)
    size--
    return job
  }

  const oldest = (): Job | undefined => {
    const taken = byAge.findIndex((job) => !job.taken)
    byAge.splice(0, taken === -1 ? byAge.length : taken)
    return byAge[0]
  }

  return {
    add: (job) => {
      place(job)
      byAge.push(job)
      const jobs = bySeries.get(job.series)
      if (jobs) jobs.add(job)
      else bySeries.set(job.series, new Set([job]))
      size++
    },
    takeFirst: () => {
      let best: Job | undefined
      let bestLane = Number.POSITIVE_INFINITY
      for (const job of candidates()) {
        const lane = laneOf(job.rank())
        if (lane < bestLane) [best, bestLane] = [job, lane]
      }
      return best && take(best)
    },
    oldest,
    takeOldest: () => {
      const job = oldest()
      return job && take(job)
    },
    rescore: (series) => {
      for (const job of bySeries.get(series) ?? []) if (laneOf(job.rank()) !== job.lane) place(job)
    },
    size: () => size,
  }
}
