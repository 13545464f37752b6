import { registerAccount } from '../../db/queries/accounts.ts'
import {
  type Claim,
  type ClaimedJob,
  type EndedAttempt,
  type ExchangeNews,
  exchangeJobs,
  readExchange,
} from '../../db/queries/exchange.ts'
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

const NOTHING: Claim = {
  limit: 0,
  starts: true,
  types: ['test'],
  order: 'rank',
  segments: [],
  ageFromKey: 0,
  sized: null,
}

/** Everything in the order of rank, from one end to the other. */
const WHOLE_ORDER = [{ fromLane: -5_000, fromKey: 0, toLane: 5_000, toKey: 0 }]

/** One exchange as a worker makes it: by rank, all of it started at once, unless told otherwise. */
export const exchange = async (
  run: Run,
  options: {
    workerId?: string
    ended?: EndedAttempt[]
    started?: { job_id: string; token: string; ranMs: number }[]
    closed?: string[]
    claim?: Partial<Claim>
  } = {},
): Promise<{ news: ExchangeNews; claimed: ClaimedJob[] }> => {
  const limit = options.claim?.limit ?? 0
  const rows = await run(
    exchangeJobs({
      workerId: options.workerId ?? 'worker-1',
      leaseSeconds: 30,
      ended: options.ended ?? [],
      started: options.started ?? [],
      closed: options.closed ?? [],
      claim: { ...NOTHING, segments: limit > 0 ? WHOLE_ORDER : [], ...options.claim },
    }),
  )
  return readExchange(rows)
}

export const claim = async (run: Run, workerId = 'worker-1', limit = 10): Promise<ClaimedJob[]> =>
  (await exchange(run, { workerId, claim: { limit } })).claimed

/** What every end of an attempt says. */
export const held = ({ job_id, token, org_id, stream_id, attempt, started }: ClaimedJob) => ({
  job_id,
  token,
  org_id,
  stream_id,
  attempt,
  ranMs: 5,
  announced: started,
})

export const completed = (job: ClaimedJob, result: unknown = null): EndedAttempt => ({
  ...held(job),
  state: 'completed',
  resultJson: result === null ? null : JSON.stringify(result),
})
