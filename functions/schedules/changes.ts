import type { z } from '@hono/zod-openapi'
import { changeSchedule, getSchedule, type ScheduleRow } from '../../db/queries/schedules.ts'
import type { Run } from '../../db/query.ts'
import { nextTicks } from '../../db/rules/cron.ts'
import { ProblemError } from '../http/problem.ts'
import { problemAt } from '../http/validation.ts'
import type { JobTypes } from '../jobs/job-types.ts'
import { checkCron } from './check-cron.ts'
import { checkScheduledJob, toScheduledJob } from './scheduled-jobs.ts'
import type { scheduleChange } from './schemas.ts'

export type ScheduleChange = z.output<typeof scheduleChange>

export const noSuchSchedule = (id: string): ProblemError =>
  new ProblemError('not-found', `There is no schedule ${id} in this organisation.`)

/** Throws if it is no schedule. */
export const requireCron = (cron: string, timezone: string): void => {
  const fault = checkCron(cron, timezone)
  if (fault)
    throw problemAt('invalid-request', [{ in: 'body', pointer: `#/${fault.field}`, detail: fault.detail }])
}

/** The first tick after a moment, as it is stored. */
export const nextAt = (cron: string, timezone: string, after: Date): string | null =>
  nextTicks(cron, timezone, after, 1)[0]?.toISOString() ?? null

/**
 * Changes what is named. If somebody else has changed the schedule in the same moment, what they have not touched is changed
 * on top of it.
 */
export const applyChange = async (
  { run, orgId, id, jobTypes }: { run: Run; orgId: string; id: string; jobTypes: JobTypes },
  change: ScheduleChange,
): Promise<ScheduleRow> => {
  for (;;) {
    const [before] = await run(getSchedule(orgId, id))
    if (!before) throw noSuchSchedule(id)
    const after = merge(before, change)
    const fields = changedFields(before, after)
    if (fields.length === 0) return before
    requireCron(after.cron, after.timezone)
    if (change.job) await checkScheduledJob(jobTypes, after.job)
    const next_at = replanned(before, after, fields, new Date())
    const { version } = before
    const [changed] = await run(changeSchedule({ orgId, id, version }, { ...after, next_at }, fields))
    if (changed) return changed
  }
}

const merge = (before: ScheduleRow, change: ScheduleChange) => {
  const name = change.name ?? before.name
  return {
    name,
    cron: change.cron ?? before.cron,
    timezone: change.timezone ?? before.timezone,
    catch_up: change.catch_up ?? before.catch_up,
    paused: change.paused ?? before.paused_at !== null,
    job: change.job ? toScheduledJob(change.job, name) : before.job,
  }
}

type Merged = ReturnType<typeof merge>

const changedFields = (before: ScheduleRow, after: Merged): string[] => {
  const isSame = {
    name: before.name === after.name,
    cron: before.cron === after.cron,
    timezone: before.timezone === after.timezone,
    catch_up: before.catch_up === after.catch_up,
    paused: (before.paused_at !== null) === after.paused,
    // Sent anew, it is a change: the database may have put its keys in another order.
    job: before.job === after.job,
  }
  return Object.entries(isSame).flatMap(([field, same]) => (same ? [] : [field]))
}

/**
 * Only what moves the clock moves the next tick; undefined if it stays. It is then the next from now on: resumed, it has
 * missed nothing. But a tick that is due in this moment, and is one of the new plan too, still comes.
 */
const replanned = (
  { next_at }: ScheduleRow,
  { cron, timezone }: Merged,
  fields: readonly string[],
  now: Date,
): string | null | undefined => {
  if (!fields.some((field) => ['cron', 'timezone', 'paused'].includes(field))) return undefined
  if (next_at && Date.parse(next_at) <= now.getTime()) {
    if (nextAt(cron, timezone, new Date(Date.parse(next_at) - 1)) === next_at) return next_at
  }
  return nextAt(cron, timezone, now)
}
