import type { z } from '@hono/zod-openapi'
import type { TickRow } from '../../db/queries/schedule-ticks.ts'
import type { ScheduleRow } from '../../db/queries/schedules.ts'
import { nextTicks } from '../../db/rules/cron.ts'
import type { ScheduledJob } from '../../db/rules/scheduled-job.ts'
import type { schedule, tick } from './schemas.ts'

export const viewSchedule = (row: ScheduleRow): z.output<typeof schedule> => {
  const { cron, timezone, next_at } = row
  return {
    id: row.id,
    name: row.name,
    cron,
    timezone,
    catch_up: row.catch_up,
    paused: row.paused_at !== null,
    job: viewJob(row.job),
    next_run_at: next_at,
    next_runs: next_at ? [next_at, ...nextRuns(cron, timezone, new Date(next_at), 4)] : [],
    last_tick: hasTick(row) ? viewTick(row) : null,
    skipped_ticks: row.skipped_ticks,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

/** In the order of the documentation: the database keeps another. */
const viewJob = (job: ScheduledJob): ScheduledJob => ({
  name: job.name,
  type: job.type,
  payload: job.payload,
  priority: job.priority,
  resources: job.resources,
  retry: job.retry,
  tags: job.tags,
  timeout_seconds: job.timeout_seconds,
  callback_url: job.callback_url,
  fairness_key: job.fairness_key,
  deadline_seconds: job.deadline_seconds,
})

export const nextRuns = (cron: string, timezone: string, after: Date, count: number): string[] =>
  nextTicks(cron, timezone, after, count).map((at) => at.toISOString())

type StoredTick = TickRow & { tick_at: string }

export const isTick = (row: TickRow): row is StoredTick => row.tick_at !== null

const hasTick = (row: ScheduleRow): row is ScheduleRow & StoredTick => row.tick_at !== null

export const viewTick = (row: StoredTick): z.output<typeof tick> => ({
  tick_at: row.tick_at,
  outcome: row.outcome,
  job_id: row.job_id,
  reason: row.reason,
  fired_at: row.fired_at,
})
