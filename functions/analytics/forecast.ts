import type { DepthSums, LoadAhead } from '../../db/queries/analytics-summary.ts'
import type { QueueSums } from '../../db/queries/queue-facts.ts'
import { nextTicks } from '../../db/rules/cron.ts'
import { type DepthAhead, type DepthNow, expectArrivals, forecastDepth } from './depth-forecast.ts'

/** Of one schedule: it may tick every ten seconds. */
const MOST_TICKS = 60
const HOUR_MS = 3_600_000
/** What a job takes of which nothing is known. */
const UNKNOWN_MS = 1_000

export type Outlook = { at: string; depth: DepthSums; load: LoadAhead; queue: QueueSums | null }

/** The depth minute by minute; none if no worker is alive. */
export const depthsAhead = (outlook: Outlook, minutes: number): DepthAhead[] => {
  if (outlook.load.slots === 0) return []
  const now = depthNow(outlook, minutes)
  return outlook.load.paused
    ? forecastPaused(now, outlook.depth.running, minutes)
    : forecastDepth(now, minutes)
}

/** Nothing starts: what runs ends, and what is ready or comes stays. */
const forecastPaused = (now: DepthNow, running: number, minutes: number): DepthAhead[] => {
  const runningMs = now.jobs > 0 ? (now.workMs * running) / now.jobs : 0
  const others = { workMs: 0, load: 0 }
  const ending = { ...now, jobs: running, workMs: runningMs, slots: running, others, announced: [] }
  const ended = forecastDepth({ ...ending, arrivals: { jobsPerMinute: [], dispersion: 1 } }, minutes)
  const staying = { ...now, jobs: now.jobs - running, workMs: now.workMs - runningMs, slots: 0 }
  return forecastDepth(staying, minutes).map((one, n) => ({
    inMs: one.inMs,
    jobs: one.jobs + (ended[n]?.jobs ?? 0),
    jobsP90: one.jobsP90 + (ended[n]?.jobsP90 ?? 0),
    workMs: one.workMs + (ended[n]?.workMs ?? 0),
  }))
}

const depthNow = (outlook: Outlook, minutes: number): DepthNow => {
  const { depth, load, queue } = outlook
  const now = new Date(outlook.at)
  const meanMs = load.mean_ms ?? UNKNOWN_MS
  const perMinute = (hour: number | null): number | null => (hour === null ? null : hour / 60)
  const history = {
    minutes: load.minutes,
    sameHour: perMinute(load.same_hour),
    nextHour: perMinute(load.next_hour),
    minutesLeft: 60 - now.getUTCMinutes(),
  }
  return {
    jobs: depth.ready + depth.running,
    workMs: depth.predicted_ms,
    slots: load.slots,
    stretch: queue?.stretch ?? 1,
    meanMs,
    others: othersOf(outlook),
    arrivals: expectArrivals(history, minutes),
    announced: [
      ...load.waking.map(({ in_seconds, predicted_ms }) => ({
        inMs: in_seconds * 1000,
        workMs: predicted_ms,
      })),
      ...load.schedules.flatMap(({ cron, timezone, predicted_ms }) =>
        nextTicks(cron, timezone, now, MOST_TICKS).flatMap((tick) => {
          const inMs = tick.getTime() - now.getTime()
          return inMs < HOUR_MS ? { inMs, workMs: predicted_ms ?? meanMs } : []
        }),
      ),
    ],
  }
}

/** What others have queued, what runs beside the organisation's own jobs, and how many slots others have filled lately. */
const othersOf = ({ depth, queue }: Outlook): DepthNow['others'] => {
  if (!queue) return { workMs: 0, load: 0 }
  const othersMs = queue.others.map(({ ms }) => ms)
  const allMs = sum(othersMs) + sum(queue.lane_ms) + sum(queue.running_ms)
  return {
    workMs: Math.max(0, allMs - depth.predicted_ms),
    load: sum(queue.others.map(({ load }) => load)),
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
