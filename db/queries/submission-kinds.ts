import type { NewJob, Submission } from './submission.ts'

/** What jobs that are submitted together have in common, and what each adds. */
export type Kinds = {
  /** Everything but ids, payloads and dependencies. */
  kinds: object[]
  jobs: { job: NewJob; submission: number; kind: number }[]
  edges: { childId: string; parentId: string; kind: number; inside: boolean }[]
}

/**
 * Kinds are shared by all submissions of a member, unless some job depends on others: then a submission may be refused,
 * and has kinds of its own.
 */
export const toKinds = (submissions: readonly Submission[]): Kinds => {
  const dependent = submissions.some(({ jobs }) => jobs.some(({ depends_on }) => depends_on.length > 0))
  const numbers = new Map<string, number>()
  const result: Kinds = { kinds: [], jobs: [], edges: [] }

  const numberOf = (job: NewJob, { orgId, userId }: Submission, submission: number): number => {
    const identity = `${dependent ? submission : ''}\0${orgId}\0${userId}\0${identityOf(job)}`
    const known = numbers.get(identity)
    if (known !== undefined) return known
    const { id: _, payload: __, depends_on: ___, ...common } = job
    const number = result.kinds.push({ ...common, submission, org_id: orgId, user_id: userId })
    numbers.set(identity, number)
    return number
  }

  for (const [n, submission] of submissions.entries()) {
    const members = dependent ? new Set(submission.jobs.map(({ id }) => id)) : undefined
    for (const job of submission.jobs) {
      const kind = numberOf(job, submission, n + 1)
      result.jobs.push({ job, submission: n + 1, kind })
      for (const parentId of new Set(job.depends_on)) {
        result.edges.push({ childId: job.id, parentId, kind, inside: members?.has(parentId) ?? false })
      }
    }
  }
  return result
}

/** By hand and not as JSON: it is made for every job. */
const identityOf = (job: NewJob): string =>
  [
    job.type,
    job.name,
    job.priority,
    job.rank_base,
    job.rank_slope,
    job.timeout_seconds,
    job.max_attempts,
    job.initial_delay_seconds,
    job.backoff_multiplier,
    job.cpu_units,
    job.memory_mb,
    job.run_at,
    job.deadline,
    job.on_parent_failure,
    ...job.tags,
  ].join('\0')
