import { registerAccount } from '../../db/queries/accounts.ts'
import { type ClaimedJob, type EndedAttempt, exchangeJobs } from '../../db/queries/exchange.ts'
import { registerJobTypes } from '../../db/queries/job-types.ts'
import { type NewJob, submitJobs } from '../../db/queries/submission.ts'
import type { Run } from '../../db/query.ts'
import { rankTerms } from '../../db/rules/priority.ts'
import { DEFAULT_RESOURCES } from '../../db/rules/resources.ts'
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
  tags: [],
  timeout_seconds: null,
  max_attempts: 3,
  initial_delay_seconds: 0,
  backoff_multiplier: 2,
  ...DEFAULT_RESOURCES,
  run_at: null,
  deadline: null,
  depends_on: [],
  on_parent_failure: 'fail',
  ...rankTerms(overrides.priority ?? 'normal', overrides.timeout_seconds ?? null),
  ...overrides,
})

export const seedJobs = async (run: Run, tenant: Tenant, jobs: NewJob[]): Promise<string[]> => {
  await run(submitJobs([{ ...tenant, jobs }]))
  return jobs.map(({ id }) => id)
}

/** Claims ready jobs and starts them, in the order of the queue. */
export const claim = (run: Run, workerId = 'worker-1', limit = 10, types = ['test']): Promise<ClaimedJob[]> =>
  exchange(run, workerId, { limit, types })

/** Ends attempts of jobs that the worker holds. */
export const end = async (run: Run, ...ended: EndedAttempt[]): Promise<void> => {
  await exchange(run, 'worker-1', { limit: 0, ended })
}

const exchange = async (
  run: Run,
  workerId: string,
  { limit, types = [], ended = [] }: { limit: number; types?: string[]; ended?: EndedAttempt[] },
): Promise<ClaimedJob[]> => {
  const everything = { fromLane: -32768, fromKey: '0', toLane: 10_000, toKey: '0' }
  const room = { freeCpuUnits: 1e6, freeMemoryMb: 1e9 }
  const age = { ageAllowanceMs: 0, ageLimit: 0, ageFromKey: '0' }
  const claim = { limit, startNow: limit, types, segments: [everything], ...room, ...age }
  const rows = await run(exchangeJobs({ workerId, leaseSeconds: 30, ended, started: [], claim }))
  return rows.filter((row): row is ClaimedJob => row.job_id !== null)
}
