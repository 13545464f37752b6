/**
 * What the functions know of the whole queue: sums by lane (`queue_snapshot`), and which workers are alive. Fragments of
 * the statements that ask for them, and how their answer is read.
 */
import { AGE_SHARE } from '../rules/lanes.ts'
import { advanceQueue, type LaneSum, type QueueSnapshot } from '../rules/queue-snapshot.ts'

/** A worker writes its row every two seconds: five in a row that did not come mean that it is gone. */
export const SILENT_SECONDS = 10

export type LiveWorker = {
  worker_id: string
  types: string[]
  slots: number
  running: number
  cpu_units: number
  memory_mb: number
}

export const LIVE_WORKERS = `(
        select coalesce(
          jsonb_agg(
            jsonb_build_object(
              'worker_id', worker_id, 'types', types, 'slots', slots, 'running', running, 'cpu_units', cpu_units,
              'memory_mb', memory_mb
            )
            order by worker_id
          ),
          '[]'
        )
        from smartqueue.workers
        where status = 'online'
          and last_seen > now() - ${SILENT_SECONDS} * interval '1 second'
      )`

export type QueueSums = {
  /** Since they were taken, and how long that took. */
  age_ms: number
  took_ms: number
  lanes: number[]
  lane_jobs: number[]
  lane_ms: number[]
  running_ms: number[]
  held_jobs: number
  held_ms: number
  flow_lanes: number[]
  flow_loads: number[]
  stretch: number
}

/** Null right after a crash of the server. */
export const QUEUE_SUMS = `(
        select jsonb_build_object(
          'age_ms', extract(epoch from clock_timestamp() - q.taken_at) * 1000, 'took_ms', q.took_ms, 'lanes', q.lanes,
          'lane_jobs', q.lane_jobs, 'lane_ms', q.lane_ms, 'running_ms', q.running_ms, 'held_jobs', q.held_jobs,
          'held_ms', q.held_ms, 'flow_lanes', q.flow_lanes, 'flow_loads', q.flow_loads,
          'stretch', q.stretch
        )
        from smartqueue.queue_snapshot() q
        where q.only_row
      )`

/** Makes the sums anew, if it is time: it may take a while, and nobody should wait for it. */
export const refreshQueueSums = () => ({
  name: 'refresh-queue-sums',
  text: `
    select took_ms
    from smartqueue.queue_snapshot(true)`,
  values: [],
})

export const areSumsDue = ({ age_ms, took_ms }: QueueSums): boolean =>
  age_ms > Math.max(1_000, 20 * took_ms) && took_ms > 20

export const lanesOf = (sums: QueueSums): LaneSum[] =>
  sums.lanes.map((lane, n) => ({ lane, jobs: sums.lane_jobs[n] ?? 0, predictedMs: sums.lane_ms[n] ?? 0 }))

/** As it is now: what was running and waiting when the sums were taken has gone on. */
export const toSnapshot = (sums: QueueSums, workers: readonly LiveWorker[]): QueueSnapshot => {
  const held = { lane: Number.NEGATIVE_INFINITY, jobs: sums.held_jobs, predictedMs: sums.held_ms }
  const lanes = lanesOf(sums)
  const taken = {
    slots: workers.reduce((sum, { slots }) => sum + slots, 0),
    runningRemainingMs: sums.running_ms,
    lanes: sums.held_jobs > 0 ? [held, ...lanes] : lanes,
    ageShare: AGE_SHARE,
    stretch: sums.stretch,
    flow: sums.flow_lanes.map((lane, n) => ({ lane, load: sums.flow_loads[n] ?? 0 })),
  }
  return advanceQueue(taken, sums.age_ms)
}

/** Some live worker handles the type and is big enough. */
export const isRunnable = (
  job: { type: string; cpu_units: number; memory_mb: number },
  workers: readonly LiveWorker[],
): boolean =>
  workers.some(
    ({ types, cpu_units, memory_mb }) =>
      types.includes(job.type) && job.cpu_units <= cpu_units && job.memory_mb <= memory_mb,
  )
