import assert from 'node:assert/strict'
import { cancelJobs } from '../../db/queries/cancellation.ts'
import type { EndedAttempt } from '../../db/queries/exchange.ts'
import type { NewJob } from '../../db/queries/submission.ts'
import type { Run } from '../../db/query.ts'
import type { JobState } from '../../db/rules/job-states.ts'
import { claim, end, newJob, seedJobs, type Tenant } from './jobs.ts'

const LATER = '2999-01-01T00:00:00Z'
export const FAILURE = { code: 'broken', message: 'It broke.' }

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
  const start = async (): Promise<{ job_id: string; token: string }> => {
    const id = await seed()
    const [job] = await claim(run, 'worker-1', 1, [overrides.type ?? type])
    assert.equal(job?.job_id, id)
    return job
  }
  const finish = async (outcome: Outcome): Promise<string> => {
    const { job_id, token } = await start()
    await end(run, { job_id, token, ranMs: 7, ...outcome })
    return job_id
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
      return finish({ state, error: FAILURE, delayMs: 3_600_000 })
    case 'completed':
      return finish({ state, resultJson: '{"ok":true}' })
    case 'failed':
      return finish({ state, error: FAILURE })
    case 'cancelled': {
      const id = await seed()
      await run(cancelJobs(tenant.orgId, [id]))
      return id
    }
  }
}

type Outcome = EndedAttempt extends infer Ended
  ? Ended extends EndedAttempt
    ? Omit<Ended, 'job_id' | 'token' | 'ranMs'>
    : never
  : never
