import type { DepthSums, ForecastFacts } from '../../db/queries/analytics-outlook.ts'
import { nextTicks } from '../../db/rules/cron.ts'
import {
  type DepthAhead,
  type DepthNow,
  expectArrivals,
  forecastDepth,
} from '../../db/rules/depth-forecast.ts'

/** Of one schedule: it may tick every ten seconds. */
const MOST_TICKS = 60
const HOUR_MS = 3_600_000
/** What a job takes of which nothing is known. */
const UNKNOWN_MS = 1_000

/** The depth minute by minute; none if no worker is alive. */
export const depthsAhead = (
  depth: DepthSums,
  facts: ForecastFacts,
  now: Date,
  minutes: number,
): DepthAhead[] => (facts.slots === 0 ? [] : forecastDepth(depthNow(depth, facts, now, minutes), minutes))

const depthNow = (depth: DepthSums, facts: ForecastFacts, now: Date, minutes: number): DepthNow => {
  const { slots, queue } = facts
  const meanMs = facts.mean_ms ?? UNKNOWN_MS
  const perMinute = (hour: number | null): number | null => (hour === null ? null : hour / 60)
  const history = {
    minutes: facts.minutes,
    sameHour: perMinute(facts.same_hour),
    nextHour: perMinute(facts.next_hour),
    minutesLeft: 60 - now.getUTCMinutes(),
  }
  return {
    jobs: depth.ready + depth.running,
    workMs: depth.predicted_ms,
    slots: facts.paused ? Math.min(slots, depth.running) : slots,
    stretch: queue?.stretch ?? 1,
    meanMs,
    others: othersOf(depth, facts, meanMs),
    arrivals: expectArrivals(history, minutes),
    announced: [
      ...facts.waking.map(({ in_seconds, predicted_ms }) => ({
        inMs: in_seconds * 1000,
        workMs: predicted_ms,
      })),
      ...facts.schedules.flatMap(({ cron, timezone, predicted_ms }) =>
        nextTicks(cron, timezone, now, MOST_TICKS).flatMap((tick) => {
          const inMs = tick.getTime() - now.getTime()
          return inMs < HOUR_MS ? { inMs, workMs: predicted_ms ?? meanMs } : []
        }),
      ),
    ],
  }
}

/** What is not the organisation's own of all that is queued, and of the slots that jobs have filled lately. */
const othersOf = (
  depth: DepthSums,
  { queue, minutes }: ForecastFacts,
  meanMs: number,
): DepthNow['others'] => {
  if (!queue) return { workMs: 0, load: 0 }
  const allMs = sum(queue.lane_ms) + sum(queue.running_ms) + queue.held_ms
  const ownLoad = (sum(minutes.slice(-5)) / 5 / 60_000) * meanMs
  return {
    workMs: Math.max(0, allMs - depth.predicted_ms),
    load: Math.max(0, sum(queue.flow_loads) - ownLoad),
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
