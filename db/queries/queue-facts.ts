/** Facts about the queue as one organisation sees it (`queue_sums`), and the live workers. */

export type LiveWorker = {
  worker_id: string
  types: string[]
  slots: number
  running: number
  cpu_units: number
  memory_mb: number
}

export type QueueSums = {
  /** Since they were taken, and how long that took. */
  age_ms: number
  took_ms: number
  /** Ready jobs of all organisations. */
  depth: number
  /** What remains of each running job of any organisation. */
  running_ms: number[]
  stretch: number
  /** The organisation's own jobs. */
  lanes: number[]
  lane_jobs: number[]
  lane_ms: number[]
  flow_lanes: number[]
  flow_loads: number[]
  running_jobs: number
  weight: number
  /** Its part of the workers' time, as long as the same organisations have work, and the part that it had lately. */
  share: number
  used: number
  short_since: string | null
  /** Sums over all others with about the same waiting work for their weight. */
  others: { jobs: number; ms: number; weight: number; load: number }[]
}

/** Takes the sums again if it is time. That may take a while, and nobody should wait for it. */
export const refreshQueueSums = () => ({
  name: 'refresh-queue-sums',
  text: `
    select took_ms
    from smartqueue.queue_snapshot(true)`,
  values: [],
})
