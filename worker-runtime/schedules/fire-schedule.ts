import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import { type DueSchedule, holdSchedule, type NewTick, recordTicks } from '../../db/queries/schedule-ticks.ts'
import type { Run } from '../../db/query.ts'
import type { Database } from '../database.ts'
import { describeError } from '../describe-error.ts'
import type { Logger } from '../logger.ts'
import { planTicks, type TickPlan } from './plan-ticks.ts'
import { type SubmittedTicks, submitTicks, type TickJob, toTickJob } from './tick-jobs.ts'
import type { TickPredictions } from './tick-predictions.ts'

export type FiringOptions = {
  run: Run
  transaction: Database['transaction']
  predictions: TickPredictions
  logger: Logger
}

/** Fires the ticks of a schedule that have come. Whatever somebody else was quicker with is left alone. */
export const fireSchedule = async (
  options: FiringOptions,
  term: string,
  schedule: DueSchedule,
): Promise<void> => {
  const { run, predictions, logger } = options
  const plan = planOf(schedule)
  if (typeof plan === 'string') return suspend(options, term, schedule, plan)
  const predicted = await predictions.predict(schedule.org_id, schedule.job, plan.fire.length)
  const jobs = plan.fire.map((tickAt, n) => toTickJob(schedule, tickAt, predicted[n] ?? null))
  const done = await options.transaction((inside) => commitTicks(inside, { term, schedule, plan, jobs }))
  if (!done) return
  for (const error of done.refusedPredictions) await predictions.refused(error)
  // After the commit, and for many: see db/queries/notifications.ts.
  if (done.submitted.some(({ announced }) => !announced)) await run(notify(JOBS_READY, [schedule.job.type]))
  logFiring(logger, schedule, plan, done)
}

/** Or why there is none: somebody else's time zone data may know a zone that ours does not. */
const planOf = (schedule: DueSchedule): TickPlan | string => {
  const { cron, timezone, catch_up: catchUp, next_at: nextAt, now } = schedule
  try {
    return planTicks({ cron, timezone, catchUp, nextAt: new Date(nextAt) }, new Date(now))
  } catch (error) {
    return `The schedule cannot be read here, and was paused: ${describeError(error)}`
  }
}

/** One that cannot be read here is paused, and its tick says why. */
const suspend = async (
  { transaction, logger }: FiringOptions,
  term: string,
  schedule: DueSchedule,
  reason: string,
): Promise<void> => {
  const tick: NewTick = { tick_at: new Date(schedule.next_at), job_id: null, outcome: 'refused', reason }
  const suspended = await transaction(async (run) => {
    const held = await run(holdSchedule(term, schedule))
    if (held.length === 0) return false
    await run(recordTicks(schedule, [tick], { next: null, skipped: 0, suspend: true }))
    return true
  })
  if (suspended) logger.warn('schedule suspended', { ...describe(schedule), reason })
}

type Firing = { term: string; schedule: DueSchedule; plan: TickPlan; jobs: readonly TickJob[] }

/** Undefined: it was changed, deleted or fired by another since it was found, or this term is over. */
const commitTicks = async (run: Run, firing: Firing): Promise<SubmittedTicks | undefined> => {
  const { term, schedule, plan, jobs } = firing
  const held = await run(holdSchedule(term, schedule))
  if (held.length === 0) return undefined
  const stored = new Set(held.map(({ stored_tick }) => stored_tick))
  const fresh = jobs.filter(({ tickAt }) => !stored.has(tickAt.toISOString()))
  const done = await submitTicks(run, schedule.org_id, fresh)
  const ticks = [...skippedTick(schedule, plan), ...done.ticks]
  await run(recordTicks(schedule, ticks, { next: plan.next, skipped: plan.skip.length, suspend: false }))
  return done
}

/** The newest speaks for all that are skipped: there may be hundreds. */
const skippedTick = (schedule: DueSchedule, plan: TickPlan): NewTick[] => {
  const newest = plan.skip.at(-1)
  if (!newest) return []
  return [{ tick_at: newest, job_id: null, outcome: 'skipped', reason: skippedInWords(schedule, plan) }]
}

const skippedInWords = ({ catch_up, next_at }: DueSchedule, { skip }: TickPlan): string => {
  const others = skip.length > 1 ? `, as were those before it since ${next_at}` : ''
  return `Missed${others}, and not run: catch_up is "${catch_up}".`
}

const logFiring = (logger: Logger, schedule: DueSchedule, plan: TickPlan, done: SubmittedTicks): void => {
  const { submitted, ticks } = done
  const what = describe(schedule)
  logger.debug('schedule fired', { ...what, jobs: submitted.map(({ id }) => id) })
  if (plan.skip.length > 0) logger.warn('ticks skipped', { ...what, ticks: plan.skip.length })
  for (const { outcome, tick_at, reason } of ticks) {
    if (outcome === 'refused') logger.warn('tick refused', { ...what, tick_at, reason })
  }
}

const describe = ({ id, org_id }: DueSchedule) => ({ schedule_id: id, org_id })
