import { type EndedAttempt, getRetryPolicies, type RetryPolicyRow } from '../db/queries/exchange.ts'
import type { Run } from '../db/query.ts'
import type { RetryPolicy } from '../db/rules/retry.ts'
import type { HeldJob } from './held-jobs.ts'
import { endAttempt, needsPolicy } from './outcome.ts'

/** What becomes of the jobs of a group. Retry policies are looked up for those that failed: most do not. */
export const decideEnds =
  (options: { run: Run; random: () => number }) =>
  async (group: readonly HeldJob[]): Promise<EndedAttempt[]> => {
    const undecided = group.filter(({ outcome }) => outcome && needsPolicy(outcome)).map(({ job }) => job)
    const rows = undecided.length > 0 ? await options.run(getRetryPolicies(undecided)) : []
    const policies = new Map(rows.map((row) => [row.job_id, toPolicy(row)]))
    return group.flatMap(({ job, outcome, ranMs, announced }) => {
      if (!outcome) return []
      const policy = policies.get(job.job_id)
      return endAttempt(job, outcome, { ranMs, announced, policy, random: options.random })
    })
  }

const toPolicy = (row: RetryPolicyRow): RetryPolicy => ({
  maxAttempts: row.max_attempts,
  initialDelaySeconds: row.initial_delay_seconds,
  backoffMultiplier: row.backoff_multiplier,
})
