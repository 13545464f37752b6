import { createSchedule, type NewSchedule } from '../../db/queries/schedules.ts'
import type { Run } from '../../db/query.ts'
import { DEFAULT_RESOURCES } from '../../db/rules/resources.ts'
import type { ScheduledJob } from '../../db/rules/scheduled-job.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import type { Tenant } from './jobs.ts'

export const newScheduledJob = (overrides: Partial<ScheduledJob> = {}): ScheduledJob => ({
  name: 'a job',
  type: 'test',
  payload: {},
  priority: 'normal',
  resources: DEFAULT_RESOURCES,
  retry: { max_attempts: 3, initial_delay_seconds: 0, backoff_multiplier: 2 },
  tags: [],
  timeout_seconds: null,
  callback_url: null,
  fairness_key: null,
  deadline_seconds: null,
  ...overrides,
})

/** Written past the API: one whose next tick is at that moment, whatever its expression says. */
export const seedSchedule = async (
  run: Run,
  tenant: Tenant,
  overrides: Partial<NewSchedule> & Pick<NewSchedule, 'next_at'>,
): Promise<string> => {
  const id = uuidV7()
  const made = { name: 'a schedule', cron: '* * * * *', timezone: 'UTC', catch_up: 'one' as const }
  const { orgId, userId: created_by } = tenant
  const schedule = { ...made, id, created_by, job: newScheduledJob(), paused: false, ...overrides }
  await run(createSchedule(orgId, schedule))
  return id
}
