/** Facts about the whole queue: sums by lane (`queue_snapshot`) and the live workers. See db/queue/facts.sql. */

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
  lanes: number[]
  lane_jobs: number[]
  lane_ms: number[]
  running_ms: number[]
  flow_lanes: number[]
  flow_loads: number[]
  stretch: number
}

/** Takes the sums again if it is time. That may take a while, and nobody should wait for it. */
export const refreshQueueSums = () => ({
  name: 'refresh-queue-sums',
  text: `
    select took_ms
    from smartqueue.queue_snapshot(true)`,
  values: [],
})
