import { registerAccount } from '../../db/queries/accounts.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { type NewJob, submitJobs } from '../../db/queries/jobs.ts'
import { type ClaimedJob, claimJobs } from '../../db/queries/leases.ts'
import type { Run } from '../../db/query.ts'
import { rankOf } from '../../db/rules/priority.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'

export type Tenant = { orgId: string; userId: string }

/** An account with its organisation, written past the API. */
export const seedTenant = async (run: Run, username = `user-${uuidV7()}`): Promise<Tenant> => {
  const tenant = { orgId: uuidV7(), userId: uuidV7() }
  await run(
    registerAccount({
      ...tenant,
      familyId: uuidV7(),
      username,
      passwordHash: 'none',
      refreshTokenHash: crypto.randomUUID().replaceAll('-', ''),
      refreshTokenDays: 30,
    }),
  )
  await run(registerJobTypes([{ type: 'test', payload_schema: {} }]))
  return tenant
}

export const newJob = (overrides: Partial<NewJob> = {}): NewJob => ({
  id: uuidV7(),
  type: 'test',
  name: 'a job',
  payload: {},
  priority: 'normal',
  rank: rankOf(overrides.priority ?? 'normal'),
  tags: [],
  timeout_seconds: null,
  max_attempts: 3,
  initial_delay_seconds: 0,
  backoff_multiplier: 2,
  run_at: null,
  ...overrides,
})

export const seedJobs = async (run: Run, tenant: Tenant, jobs: NewJob[]): Promise<string[]> => {
  await run(submitJobs({ ...tenant, jobs }))
  return jobs.map(({ id }) => id)
}

export const claim = (run: Run, workerId = 'worker-1', limit = 10): Promise<ClaimedJob[]> =>
  run(claimJobs({ workerId, types: ['test'], limit, leaseSeconds: 30 }))
