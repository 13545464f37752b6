import { nextTicks, ticksBetween } from '../../db/rules/cron.ts'
import type { CatchUp } from '../../db/rules/scheduled-job.ts'

/** A tick that is late by no more is on time: that is what a failover takes, and a restart. */
const ON_TIME_MS = 60_000

/** More would flood the queue with what is old; the newest of them run. */
export const MAX_CAUGHT_UP = 100

/** Ticks that are looked back at, at 60 µs each: those of an outage beyond that are not counted. */
const MAX_COUNTED = 1_000

export type TickPlan = {
  /** Oldest first. */
  fire: Date[]
  skip: Date[]
  next: Date | null
}

/** What is to be done now for a schedule whose next tick has come. That one was announced, and so it counts in any case. */
export const planTicks = (
  schedule: { cron: string; timezone: string; catchUp: CatchUp; nextAt: Date },
  now: Date,
): TickPlan => {
  const { cron, timezone, nextAt } = schedule
  const due = [nextAt, ...ticksBetween(cron, timezone, nextAt, now, MAX_COUNTED - 1)]
  const onTime = due.filter((tick) => now.getTime() - tick.getTime() <= ON_TIME_MS)
  const missed = due.slice(0, due.length - onTime.length)
  const caughtUp = Math.min(missed.length, CAUGHT_UP[schedule.catchUp])
  return {
    fire: due.slice(missed.length - caughtUp),
    skip: missed.slice(0, missed.length - caughtUp),
    next: nextTicks(cron, timezone, now, 1)[0] ?? null,
  }
}

const CAUGHT_UP: Record<CatchUp, number> = { skip: 0, one: 1, all: MAX_CAUGHT_UP }
