import { arrayOf } from '../array-literal.ts'
import type { JobPrediction } from '../learning/prediction.ts'
import type { Query, QueryValue } from '../query.ts'
import { DEFAULT_ESTIMATE, P90_DEVIATIONS } from '../rules/estimate.ts'
import { type Priority, type RankTerms, rankTerms } from '../rules/priority.ts'
import type { Quota } from '../rules/quotas.ts'
import { utf8Bytes } from '../rules/utf8-bytes.ts'
import { type Kinds, toKinds } from './submission-kinds.ts'
import { samplesOf } from './submission-samples.ts'
import { type Admission, submissionText } from './submission-text.ts'

export type NewJob = RankTerms & {
  id: string
  type: string
  name: string
  payload: Record<string, unknown>
  priority: Priority
  tags: string[]
  timeout_seconds: number | null
  max_attempts: number
  initial_delay_seconds: number
  backoff_multiplier: number
  cpu_units: number
  memory_mb: number
  run_at: string | null
  deadline: string | null
  /** Ids of jobs of the organisation, or of the same submission, which must have no cycle. */
  depends_on: string[]
  on_parent_failure: OnParentFailure
  /** Told when the job has ended. */
  callback_url: string | null
  triggered_by: TriggeredBy | null
  /** The span in which it is submitted, as W3C Trace Context writes it. Null: nobody traces it. */
  traceparent: string | null
  /** Null: the statement goes by the newest estimate that it finds. */
  prediction: JobPrediction | null
}

/** What has made a job, if not a person or program over the API. */
export type TriggeredBy =
  | { kind: 'webhook'; source_id: string; delivery_id: string }
  /** Without a tick: somebody has run it by hand. */
  | { kind: 'schedule'; schedule_id: string; tick_at: string | null }
  | { kind: 'callback'; job_id: string; event: string }

export type OnParentFailure = 'fail' | 'wait'

export type PredictionSource = 'lstm' | 'series' | 'type' | 'default'

/** Jobs that are accepted together or not at all. */
export type Submission = {
  orgId: string
  /** Null: nobody's. Then whoever runs the statement has to know that the organisation wants the jobs. */
  userId: string | null
  jobs: readonly NewJob[]
  /** What each of these keys stands for must not have been submitted before. */
  keys?: readonly IdempotencyKey[]
}

export const isPredicted = ({ jobs }: Submission): boolean =>
  jobs.some(({ prediction }) => prediction !== null)

/**
 * The same submission with the running estimates only, for when the database rejects a value of a prediction.
 */
export const withoutPredictions = <One extends Submission>(submission: One): One => ({
  ...submission,
  jobs: submission.jobs.map(unpredicted),
})

export const unpredicted = (job: NewJob): NewJob => ({
  ...job,
  ...rankTerms(job.priority, job.timeout_seconds),
  prediction: null,
})

/** Good for 24 hours, unless it is to be kept for longer. */
export type IdempotencyKey = {
  key: string
  bodyHash: string
  jobIds: readonly string[]
  keepSeconds?: number
}

export type SubmittedJob = {
  /** Position of the submission in the statement, from 1. */
  submission: number
  id: string
  status: 'pending' | 'blocked' | 'ready'
  created_at: Date
  predicted_ms: number
  predicted_p90_ms: number
  prediction_source: PredictionSource
  model_version: number | null
  /** How long after its submission it was promised to start. */
  promised_wait_ms: number | null
  rank: number
  /** Even if it started now, its 90th percentile would pass the deadline. */
  deadline_at_risk: boolean
  /** Workers have been told of it. */
  announced: boolean
}

/** Why a submission was refused as a whole. */
export type RefusedSubmission = { submission: number; id: null } & Refusal

export type Refusal = RefusedParent | UsedKeys | QuotaExceeded

export type RefusedParent = {
  refusal: 'unknown_parent' | 'failed_parent'
  child_id: string
  parent_id: string
}

/** `same`: the body was the same, too. */
export type UsedKeys = {
  refusal: 'used_key'
  detail: { key: string; job_ids: string[]; same: boolean }[]
}

export type QuotaExceeded = {
  refusal: 'quota'
  detail: { quota: Quota; limit: number; used: number; wanted: number; retry_after: number }
}

export type SubmissionRow = SubmittedJob | RefusedSubmission

/**
 * What the statement answers: a row for each kind of job, and one for each dependency that it refuses. The first row
 * has the blocked jobs of all kinds: with them in each, a thousand kinds would answer a million ids.
 */
export type AnswerRow =
  | (Omit<SubmittedJob, 'id' | 'promised_wait_ms'> & { kind: number; blocked: string[] | null })
  | ({ submission: number; kind: null } & Refusal)

/**
 * Commits many submissions in one statement, each for itself: all of its jobs or none. One without a row was not
 * made by a member of its organisation.
 *
 * But if one is over a quota, or has a key that was used before, then none is stored, and only those are answered: the
 * others are to be sent again without them. No two may have the same key. If they are only charged, none is answered. What is
 * free is stored whatever the quotas say, and must have no keys.
 *
 * A job without a prediction gets the running estimate of its series as of this statement, else that of the
 * organisation's jobs of the type, else the type's, else that of all types, else the default.
 *
 * Jobs that are submitted together are mostly alike but for their ids and payloads. So what they have in common is
 * sent, looked up and answered once, as a kind; `readSubmitted` puts the answer together.
 */
export const submitJobs = (
  submissions: readonly Submission[],
  admission: Admission = 'judge',
): Query<AnswerRow> => {
  const { kinds, jobs, edges } = toKinds(submissions)
  const payloads = jobs.map(({ job }) => JSON.stringify(job.payload))
  const dependent = edges.length > 0
  const delayed = jobs.some(({ job }) => job.run_at !== null)
  const alike = !dependent && kinds.length === 1
  const predicted = jobs.some(({ job }) => job.prediction !== null)
  const linked = jobs.some(({ job }) => job.callback_url !== null || job.triggered_by !== null)
  const traced = jobs.some(({ job }) => job.traceparent !== null)
  const owned = submissions.some(({ userId }) => userId !== null)
  const values: QueryValue[] = [
    JSON.stringify(kinds),
    arrayOf(jobs.map(({ job }) => job.id)),
    `[${payloads.join(',')}]`,
    DEFAULT_ESTIMATE.meanLog,
    DEFAULT_ESTIMATE.deviationLog,
    P90_DEVIATIONS,
  ]
  if (!alike) values.push(arrayOf(jobs.map(({ kind }) => kind)))
  if (dependent) {
    values.push(
      arrayOf(edges.map(({ childId }) => childId)),
      arrayOf(edges.map(({ parentId }) => parentId)),
      arrayOf(edges.map(({ kind }) => kind)),
      arrayOf(edges.map(({ inside }) => inside)),
    )
  }
  if (predicted) {
    const promises = jobs.map(({ job }) => job.prediction?.promisedWaitMs ?? 'null')
    values.push(arrayOf(promises), samplesOf(jobs))
  }
  if (traced) values.push(tracesOf(jobs))
  values.push(...ADMISSION_VALUES[admission](submissions, jobs, payloads))
  return {
    ...submissionText({ dependent, delayed, alike, predicted, linked, traced, owned, admission }),
    values,
  }
}

/** One speaks for all: jobs of one request are of one trace. */
const tracesOf = (jobs: Kinds['jobs']): string => {
  const traces = jobs.map(({ job }) => job.traceparent ?? 'null')
  return arrayOf(traces.every((trace) => trace === traces[0]) ? traces.slice(0, 1) : traces)
}

/** Whether `submitJobs` may only charge: that is quicker, and answers nothing if it would have to refuse somebody. */
export const isChargeable = (submissions: readonly Submission[]): boolean =>
  submissions.every(
    ({ orgId, keys, jobs }) =>
      orgId === submissions[0]?.orgId &&
      !keys?.length &&
      jobs.every(({ depends_on }) => depends_on.length === 0),
  )

const toCharge = (
  submissions: readonly Submission[],
  jobs: Kinds['jobs'],
  payloads: readonly string[],
): QueryValue[] => [
  submissions[0]?.orgId ?? null,
  jobs.length,
  payloads.reduce((sum, payload) => sum + utf8Bytes(payload), 0),
]

const ADMISSION_VALUES: Record<
  Admission,
  (submissions: readonly Submission[], jobs: Kinds['jobs'], payloads: readonly string[]) => QueryValue[]
> = {
  charge: (...all) => toCharge(...all),
  judge: (...all) => toAdmission(...all),
  free: () => [],
}

/** What `admit_submissions` asks: whose each submission is, of which kind its first job, how many jobs, how many bytes. */
const toAdmission = (
  submissions: readonly Submission[],
  jobs: Kinds['jobs'],
  payloads: readonly string[],
): QueryValue[] => {
  const kinds: number[] = submissions.map(() => 0)
  const bytes: number[] = submissions.map(() => 0)
  jobs.forEach(({ submission, kind }, n) => {
    const i = submission - 1
    kinds[i] ||= kind
    bytes[i] = (bytes[i] ?? 0) + utf8Bytes(payloads[n] ?? '')
  })
  return [
    arrayOf(submissions.map(({ orgId }) => orgId)),
    arrayOf(kinds),
    arrayOf(submissions.map((submission) => submission.jobs.length)),
    arrayOf(bytes),
    toKeyRows(submissions),
  ]
}

export const toKeyRows = (submissions: readonly Submission[]): string | null => {
  const rows = submissions.flatMap(({ orgId, keys = [] }, n) =>
    keys.map(({ key, bodyHash, jobIds, keepSeconds }) => ({
      submission: n + 1,
      org_id: orgId,
      key,
      body_hash: bodyHash,
      job_ids: jobIds,
      ...(keepSeconds !== undefined && { keep_seconds: keepSeconds }),
    })),
  )
  return rows.length > 0 ? JSON.stringify(rows) : null
}

/** The rows of each submission's jobs, in their order, and those of its refusal. */
export const readSubmitted = (
  submissions: readonly Submission[],
  rows: readonly AnswerRow[],
): SubmissionRow[] => {
  const { jobs } = toKinds(submissions)
  const kinds = new Map(rows.flatMap((row) => (row.kind === null ? [] : [[row.kind, row]])))
  const refusals = rows.flatMap((row): RefusedSubmission[] =>
    row.kind === null ? [{ ...row, id: null }] : [],
  )
  const blocked = new Set([...kinds.values()].flatMap((row) => row.blocked ?? []))
  const submitted = jobs.flatMap(({ job: { id, prediction }, submission, kind }) => {
    const answer = kinds.get(kind)
    if (!answer) return []
    const { kind: _, blocked: __, ...row } = answer
    const status = blocked.has(id) ? ('blocked' as const) : row.status
    return { ...row, submission, id, status, promised_wait_ms: prediction?.promisedWaitMs ?? null }
  })
  return [...submitted, ...refusals]
}

/** What `submitJobs` has answered, or would have, for jobs that were submitted together. */
export const findSubmitted = (
  orgId: string,
  jobIds: readonly string[],
): Query<
  SubmittedJob & Pick<NewJob, 'triggered_by' | 'traceparent' | 'depends_on'> & { created_by: string | null }
> => ({
  name: 'find-submitted',
  text: `
    select
      1 as submission, id, created_by, triggered_by, traceparent,
      array(select parent_id from smartqueue.job_dependencies where child_id = id order by parent_id) as depends_on,
      case
        when status = 'blocked' then status
        when run_at > created_at then 'pending'
        else 'ready'
      end as status,
      created_at,
      predicted_ms, predicted_p90_ms, prediction_source, model_version, promised_wait_ms, rank,
      coalesce(
        deadline - predicted_p90_ms * interval '1 millisecond' < greatest(created_at, run_at),
        false
      ) as deadline_at_risk,
      false as announced
    from smartqueue.job_overview
    where org_id = $1::uuid
      and id = any ($2::uuid[])`,
  values: [orgId, jobIds],
})

export const findIdempotencyKeys = (
  orgId: string,
  keys: readonly string[],
): Query<{ key: string; body_hash: string; job_ids: string[] }> => ({
  name: 'find-idempotency-keys',
  text: `
    select key, encode(body_hash, 'hex') as body_hash, job_ids
    from smartqueue.idempotency_keys
    where org_id = $1::uuid
      and key = any ($2::text[])
      and expires_at > now()
    order by key`,
  values: [orgId, keys],
})
