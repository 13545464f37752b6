import assert from 'node:assert/strict'
import type { Run } from '../../db/query.ts'
import { cancelJobs } from '../../db/queue/cancel.ts'
import type { ClaimedJob, EndedAttempt, HeldKey } from '../../db/queue/exchange.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import type { JobState } from '../../db/rules/job-states.ts'
import { exchange, held, newJob, seedJobs, type Tenant } from './jobs.ts'

const LATER = '2999-01-01T00:00:00Z'
export const FAILURE = { code: 'broken', message: 'It broke.' }

export const COMPLETED: Outcome = { outcome: 'completed', resultJson: null }
export const FAILED: Outcome = { outcome: 'failed', error: FAILURE, permanent: true }

let made = 0

/** A job that came into its state the way jobs do. Its type is its own, so that claims find only it. */
export const jobInState = async (
  run: Run,
  tenant: Tenant,
  state: JobState,
  overrides: Partial<NewJob> = {},
): Promise<string> => {
  const type = `type-${++made}`
  const seed = async (more: Partial<NewJob> = {}): Promise<string> => {
    const [id] = await seedJobs(run, tenant, [newJob({ type, ...more, ...overrides })])
    assert.ok(id)
    return id
  }
  const start = async (): Promise<ClaimedJob> => {
    const id = await seed()
    const [job] = await claimTypes(run, [overrides.type ?? type], 1)
    assert.equal(job?.job_id, id)
    return job
  }
  const finish = async (outcome: Outcome): Promise<string> => {
    const job = await start()
    await end(run, job, outcome)
    return job.job_id
  }
  switch (state) {
    case 'pending':
      return seed({ run_at: LATER })
    case 'blocked': {
      const parents = await seedJobs(run, tenant, [newJob({ type: 'parent', run_at: LATER })])
      return seed({ depends_on: parents })
    }
    case 'ready':
      return seed()
    case 'running':
      return (await start()).job_id
    case 'retrying':
      return finish({ outcome: 'failed', error: FAILURE, permanent: false, retryAfterMs: 3_600_000 })
    case 'completed':
      return finish({ outcome: 'completed', resultJson: '{"ok":true}' })
    case 'failed':
      return finish(FAILED)
    case 'cancelled': {
      const id = await seed()
      await run(cancelJobs(tenant.orgId, [id]))
      return id
    }
  }
}

type OfEach<Ended> = Ended extends EndedAttempt ? Omit<Ended, keyof HeldKey | 'ranMs'> : never

/** How an attempt ended, without which one. */
export type Outcome = OfEach<EndedAttempt>

export const claimTypes = async (run: Run, types: string[], limit = 1000): Promise<ClaimedJob[]> =>
  (await exchange(run, { claim: { limit, types } })).claimed

/** Claims whatever is ready of the type and answers the one job, which must be among it. */
export const claimJob = async (run: Run, id: string, type = 'test'): Promise<ClaimedJob> => {
  const job = (await claimTypes(run, [type])).find(({ job_id }) => job_id === id)
  assert.ok(job, 'the job was ready')
  return job
}

export const end = async (run: Run, job: ClaimedJob, outcome: Outcome, ranMs = 5): Promise<void> => {
  await exchange(run, { ended: [{ ...held(job), ranMs, ...outcome }] })
}
