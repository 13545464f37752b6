import { type DueSchedule, findDueSchedules, type NearSchedule } from '../../db/queries/schedule-ticks.ts'
import type { Duty } from '../duties.ts'
import { type FiringOptions, fireSchedule } from './fire-schedule.ts'

/** Between two looks, if no tick comes sooner. */
const POLL_MS = 500
/** Ticks that are so near are seen already: there is time to load the predictor. */
const AHEAD_MS = 5_000
const BATCH = 100
/** Schedules that are fired side by side, each on a connection of its own: many come at the full hour. */
export const FIRING_LANES = 4

/** Fires schedules when their time has come. One that fails holds up no other, and is tried again with the next look. */
export const createScheduleDuty = (options: FiringOptions & { onError: (error: Error) => void }): Duty => ({
  name: 'schedules',
  step: async (term) => {
    const found = await options.run(findDueSchedules({ term, withinMs: AHEAD_MS, limit: BATCH }))
    if (found.length > 0) options.predictions.prepare()
    const due = found.filter(isDue)
    if (due.length === 0) return Math.min(POLL_MS, ...found.map(waitMs))
    const failures: Error[] = []
    const fire = (schedule: DueSchedule): Promise<void> =>
      fireSchedule(options, term, schedule).catch((error: Error) => void failures.push(error))
    await inLanes(due, fire)
    for (const error of failures) options.onError(error)
    return failures.length > 0 ? POLL_MS : 0
  },
})

const isDue = (schedule: NearSchedule): schedule is DueSchedule => schedule.job !== null

const waitMs = ({ next_at, now }: NearSchedule): number => Date.parse(next_at) - Date.parse(now)

const inLanes = async <Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> => {
  const queue = [...items]
  const lane = async (): Promise<void> => {
    for (let item = queue.shift(); item; item = queue.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: FIRING_LANES }, lane))
}
