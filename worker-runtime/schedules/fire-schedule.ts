import { JOBS_READY, notify } from '../../db/queries/notifications.ts'
import {
  advanceSchedule,
  type DueSchedule,
  holdSchedule,
  type NewTick,
  refuseTicks,
  storeTicks,
  suspendSchedule,
} from '../../db/queries/schedule-ticks.ts'
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
  if (typeof plan === 'string') {
    const [suspended] = await run(suspendSchedule(term, schedule, plan))
    if (suspended) logger.warn('schedule suspended', { ...describe(schedule), reason: plan })
    return
  }
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

type Firing = { term: string; schedule: DueSchedule; plan: TickPlan; jobs: readonly TickJob[] }

/** Undefined: it was changed, deleted or fired by another since it was found, or this term is over. */
const commitTicks = async (run: Run, firing: Firing): Promise<SubmittedTicks | undefined> => {
  const { term, schedule, plan, jobs } = firing
  const [held] = await run(holdSchedule(term, schedule))
  if (!held) return undefined
  const stored = await run(storeTicks(schedule, toTicks(firing)))
  const isNew = new Set(stored.map(({ tick_at }) => tick_at))
  const fresh = jobs.filter(({ tickAt }) => isNew.has(tickAt.toISOString()))
  const done = await submitTicks(run, schedule.org_id, fresh)
  if (done.refused.length > 0) await run(refuseTicks(schedule.id, done.refused))
  const lastTickAt = plan.fire.at(-1) ?? plan.skip.at(-1) ?? new Date(schedule.next_at)
  await run(advanceSchedule(schedule, { nextAt: plan.next, lastTickAt, skipped: plan.skip.length }))
  return done
}

/** Of those that are skipped the newest speaks for all: there may be hundreds. */
const toTicks = ({ plan, jobs, schedule }: Firing): NewTick[] => {
  const newest = plan.skip.at(-1)
  const skipped: NewTick[] = newest
    ? [{ tickAt: newest, jobId: null, outcome: 'skipped', reason: skippedInWords(schedule, plan) }]
    : []
  const fired = jobs.map(
    ({ tickAt, job }): NewTick => ({ tickAt, jobId: job.id, outcome: 'fired', reason: null }),
  )
  return [...skipped, ...fired]
}

const skippedInWords = ({ catch_up, next_at }: DueSchedule, { skip }: TickPlan): string => {
  const others = skip.length > 1 ? `, as were those before it since ${next_at}` : ''
  return `Missed${others}, and not run: catch_up is "${catch_up}".`
}

const logFiring = (logger: Logger, schedule: DueSchedule, plan: TickPlan, done: SubmittedTicks): void => {
  const { submitted, refused } = done
  const what = describe(schedule)
  logger.debug('schedule fired', { ...what, jobs: submitted.map(({ id }) => id) })
  if (plan.skip.length > 0) logger.warn('ticks skipped', { ...what, ticks: plan.skip.length })
  for (const { tickAt, reason } of refused) logger.warn('tick refused', { ...what, tick_at: tickAt, reason })
}

const describe = ({ id, org_id }: DueSchedule) => ({ schedule_id: id, org_id })
