import type { JobPrediction } from '../learning/prediction.ts'
import type { NewJob, Submission } from './submission.ts'

/** What jobs that are submitted together have in common, and what each adds. */
export type Kinds = {
  /** Everything but ids, payloads, dependencies, traces, promises and samples. */
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

  /** Mostly the last one again: that is seen without putting its identity together. */
  let last:
    | { job: NewJob; orgId: string; userId: string | null; submission: number; number: number }
    | undefined

  const numberOf = (job: NewJob, member: Submission, submission: number): number => {
    const { orgId, userId } = member
    const isLast =
      last?.orgId === orgId &&
      last.userId === userId &&
      (!dependent || last.submission === submission) &&
      isAlike(last.job, job)
    if (!isLast) last = { job, orgId, userId, submission, number: lookUp(job, member, submission) }
    return last?.number ?? 0
  }

  const lookUp = (job: NewJob, { orgId, userId }: Submission, submission: number): number => {
    const identity = `${dependent ? submission : ''}\0${orgId}\0${userId}\0${identityOf(job)}`
    const known = numbers.get(identity)
    if (known !== undefined) return known
    const { id: _, payload: __, depends_on: ___, traceparent: ____, prediction, ...common } = job
    const owner = { submission, org_id: orgId, user_id: userId }
    const number = result.kinds.push({ ...common, ...owner, ...(prediction && predictionOf(prediction)) })
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

/** What makes a kind, but for the tags, the prediction and what has triggered it. */
const FIELDS = [
  'type',
  'name',
  'priority',
  'rank_base',
  'rank_slope',
  'timeout_seconds',
  'max_attempts',
  'initial_delay_seconds',
  'backoff_multiplier',
  'cpu_units',
  'memory_mb',
  'run_at',
  'deadline',
  'on_parent_failure',
  'callback_url',
] as const satisfies (keyof NewJob)[]

/** The same fields one by one: asked for by name they take longer than the rest of a submission. */
const isAlike = (a: NewJob, b: NewJob): boolean =>
  a.type === b.type &&
  a.name === b.name &&
  a.priority === b.priority &&
  a.rank_base === b.rank_base &&
  a.rank_slope === b.rank_slope &&
  a.timeout_seconds === b.timeout_seconds &&
  a.max_attempts === b.max_attempts &&
  a.initial_delay_seconds === b.initial_delay_seconds &&
  a.backoff_multiplier === b.backoff_multiplier &&
  a.cpu_units === b.cpu_units &&
  a.memory_mb === b.memory_mb &&
  a.run_at === b.run_at &&
  a.deadline === b.deadline &&
  a.on_parent_failure === b.on_parent_failure &&
  a.callback_url === b.callback_url &&
  a.triggered_by === b.triggered_by &&
  a.tags.length === b.tags.length &&
  a.tags.every((tag, n) => tag === b.tags[n]) &&
  (a.prediction === b.prediction || isPredictedAlike(a.prediction, b.prediction))

const isPredictedAlike = (a: JobPrediction | null, b: JobPrediction | null): boolean =>
  a !== null &&
  b !== null &&
  a.p50Log === b.p50Log &&
  a.p90Log === b.p90Log &&
  a.p99Log === b.p99Log &&
  a.source === b.source &&
  a.modelVersion === b.modelVersion &&
  a.residualLog === b.residualLog

const predictionOf = (prediction: JobPrediction) => ({
  p50_log: prediction.p50Log,
  p90_log: prediction.p90Log,
  p99_log: prediction.p99Log,
  source: prediction.source,
  model_version: prediction.modelVersion,
  residual_log: prediction.residualLog,
})

const identityOf = ({ prediction, ...job }: NewJob): string =>
  [
    ...FIELDS.map((field) => job[field]),
    job.triggered_by && JSON.stringify(job.triggered_by),
    ...(prediction ? Object.values(predictionOf(prediction)) : []),
    ...job.tags,
  ].join('\0')
