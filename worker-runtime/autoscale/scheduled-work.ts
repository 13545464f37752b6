import type { NearTick } from '../../db/queries/autoscale-snapshot.ts'
import { ticksBetween } from '../../db/rules/cron.ts'

/** A tick every ten seconds for an hour: no schedule and no lead time come to more. */
const MOST_TICKS = 360

/** Seconds of predicted work that schedules will submit within the lead time. */
export type ScheduledWork = { secondsWithin(leadSeconds: number, near: readonly NearTick[]): number }

/**
 * One tick of each schedule is known from its row. That more of them come within the lead time is found out once for each
 * such tick, at 60 µs each: looked at every few seconds, a thousand schedules would take a worker's time otherwise.
 */
export const createScheduledWork = (): ScheduledWork => {
  let following = new Map<string, Date[]>()

  return {
    secondsWithin: (leadSeconds, near) => {
      const known = following
      following = new Map()
      const work = near.map((tick) => {
        const untilMs = Date.parse(tick.now) + leadSeconds * 1_000
        const key = `${tick.cron} ${tick.timezone} ${tick.next_at}`
        const ticks = known.get(key) ?? ticksAfter(tick, leadSeconds)
        following.set(key, ticks)
        return (1 + ticks.filter((at) => at.getTime() <= untilMs).length) * tick.work_ms
      })
      return work.reduce((sum, ms) => sum + ms, 0) / 1_000
    },
  }
}

/** As far as any look before its time can see. One whose time has passed may be late by more than the lead time: then it counts once. */
const ticksAfter = ({ cron, timezone, next_at }: NearTick, leadSeconds: number): Date[] => {
  const last = new Date(Date.parse(next_at) + leadSeconds * 1_000)
  try {
    return ticksBetween(cron, timezone, new Date(next_at), last, MOST_TICKS)
  } catch {
    // One that cannot be read here is suspended when its time comes.
    return []
  }
}
