import { arrayOf } from '../array-literal.ts'
import { isoTime } from '../iso-time.ts'
import type { Query } from '../query.ts'
import type { Quota } from '../rules/quotas.ts'
import { utf8Bytes } from '../rules/utf8-bytes.ts'
import type { NewJob, PredictionSource } from './job-fields.ts'
import { samplesOf, toKinds } from './kinds.ts'

/** Jobs that are accepted together or not at all. */
export type Submission = Submitter & {
  readonly jobs: readonly NewJob[]
  /** None of these keys may have been used before. */
  readonly keys?: readonly IdempotencyKey[]
}

/**
 * A member of the organisation and their credentials. Without a user, the jobs belong to the organisation, and the
 * transaction must have opened it or belong to a worker.
 */
export type Submitter = {
  readonly orgId: string
  readonly userId: string | null
  readonly sessionId?: string | null
  readonly keyId?: string | null
  /** The session's secret, or the hash of the API key. */
  readonly secret?: string | null
}

/** Valid for 24 hours, unless `keepSeconds` says otherwise. */
export type IdempotencyKey = {
  key: string
  bodyHash: string
  jobIds: readonly string[]
  keepSeconds?: number
}

export type SubmittedJob = {
  /** Position of the submission in the call, from 1. */
  submission: number
  id: string
  type: string
  status: 'pending' | 'blocked' | 'ready'
  created_at: string
  predicted_ms: number
  predicted_p90_ms: number
  prediction_source: PredictionSource
  model_version: number | null
  /** The estimated wait that was shown at submission. */
  promised_wait_ms: number | null
  rank: number
  /** Even if the job started now, its p90 would exceed the deadline. */
  deadline_at_risk: boolean
  /** Whether the commit notified the workers. */
  announced: boolean
}

/** Why a submission was refused as a whole. */
export type RefusedSubmission = { submission: number; id: null } & Refusal

export type Refusal =
  | RefusedParent
  | UsedKeys
  | QuotaExceeded
  | InvalidValue
  | { refusal: 'not_member' | 'busy' }

export type RefusedParent = {
  refusal: 'unknown_parent' | 'failed_parent'
  child_id: string
  parent_id: string
}

/** `same`: with the same body. */
export type UsedKeys = {
  refusal: 'used_key'
  detail: { key: string; job_ids: string[]; same: boolean }[]
}

export type QuotaExceeded = {
  refusal: 'quota'
  detail: { quota: Quota; limit: number; used: number; wanted: number; retry_after: number }
}

/** Postgres rejected a value with this SQLSTATE. */
export type InvalidValue = { refusal: 'invalid'; detail: { code: string; message: string } }

export type SubmissionRow = SubmittedJob | RefusedSubmission

/** What `submit_jobs` returns: one answer for all submissions, or one for each. */
type Answer = {
  /** Missing or null: this answer is for all submissions. */
  only?: number | null
  refusals?: ({ submission: number } & Refusal)[]
  /** If this and the fields below are missing, all submissions are refused. */
  created_at?: string
  announced?: boolean
  kinds?: (Omit<
    SubmittedJob,
    'submission' | 'id' | 'type' | 'created_at' | 'promised_wait_ms' | 'announced'
  > & {
    number: number
  })[]
  blocked?: string[] | null
  /** Why Postgres rejected the predictions; the jobs were stored with the running estimate. */
  unpredicted?: string | null
}

/** A call of `submit_jobs`. `read` returns the result of each job, in the order of the jobs. */
export type SubmitCall = Query<SubmitAnswer> & { read(answers: readonly SubmitAnswer[]): Submitted }

export type SubmitAnswer = { answer: Answer[] }

export type Submitted = {
  rows: SubmissionRow[]
  /** Why Postgres rejected predictions, for each submission that was stored without them. */
  refusedPredictions: Error[]
}

/**
 * Commits many submissions in one call, each with all of its jobs or none. See `db/queue/submit.sql`. No two may have
 * the same idempotency key. With `charged: false` quotas do not apply; only workers may use it.
 */
export const submitJobs = (
  submissions: readonly Submission[],
  { charged = true }: { charged?: boolean } = {},
): SubmitCall => {
  const { members, memberNumbers, lastJobs, jobs } = flatten(submissions)
  const { kinds, jobKinds } = toKinds(jobs)
  const all = jobs.map(({ job }) => job)
  const payloads = all.map(({ payload }) => JSON.stringify(payload))
  const edges = edgesOf(submissions)
  return {
    name: 'submit-jobs',
    text: SUBMIT,
    values: [
      arrayOf(members.map(({ orgId }) => orgId)),
      members.map(({ userId }) => userId),
      members.map(({ sessionId }) => sessionId ?? null),
      members.map(({ keyId }) => keyId ?? null),
      members.map(({ secret }) => secret ?? null),
      arrayOf(memberNumbers),
      arrayOf(lastJobs),
      arrayOf(lastBytesOf(lastJobs, payloads)),
      kinds,
      arrayOf(all.map(({ id }) => id)),
      arrayOf(jobKinds),
      `[${payloads.join(',')}]`,
      promisedWaitsOf(all),
      samplesOf(all, jobKinds),
      tracesOf(all),
      arrayOrNull(edges.map(({ child }) => child)),
      arrayOrNull(edges.map(({ parentId }) => parentId)),
      arrayOrNull(edges.map(({ inside }) => inside)),
      toKeyRows(submissions),
      charged,
    ],
    read: (answers) => readSubmitted({ jobs: all, jobKinds, lastJobs }, answers),
  }
}

const SUBMIT = `
    select smartqueue.submit_jobs(
      p_orgs => $1::uuid[], p_users => $2::uuid[], p_sessions => $3::uuid[], p_keys => $4::uuid[],
      p_secrets => $5::text[],
      p_members => $6::integer[], p_last_jobs => $7::integer[], p_last_bytes => $8::bigint[],
      p_kinds => $9::jsonb, p_job_ids => $10::uuid[], p_job_kinds => $11::integer[], p_payloads => $12::jsonb,
      p_promised_waits_ms => $13::double precision[], p_samples => $14::jsonb, p_traceparents => $15::text[],
      p_children => $16::integer[], p_parents => $17::uuid[], p_inside => $18::boolean[],
      p_idempotency => $19::jsonb, p_charged => $20::boolean
    ) as answer`

const isSameMember = (a: Submitter, b: Submitter): boolean =>
  a.orgId === b.orgId &&
  a.userId === b.userId &&
  a.sessionId === b.sessionId &&
  a.keyId === b.keyId &&
  a.secret === b.secret

/** All jobs in order, each with the index of its member. */
const flatten = (submissions: readonly Submission[]) => {
  const members: Submitter[] = []
  const memberNumbers: number[] = []
  const lastJobs: number[] = []
  const jobs: { job: NewJob; member: number }[] = []
  for (const submission of submissions) {
    let member = members.findIndex((one) => isSameMember(one, submission)) + 1
    if (member === 0) member = members.push(submission)
    memberNumbers.push(member)
    for (const job of submission.jobs) jobs.push({ job, member })
    lastJobs.push(jobs.length)
  }
  return { members, memberNumbers, lastJobs, jobs }
}

/** By submission, the bytes of all payloads up to its last job. */
const lastBytesOf = (lastJobs: readonly number[], payloads: readonly string[]): number[] => {
  let bytes = 0
  let job = 0
  return lastJobs.map((last) => {
    for (; job < last; job++) bytes += utf8Bytes(payloads[job] ?? '')
    return bytes
  })
}

/** Most calls use only a few of the arrays. Postgres does not have to parse the others if they are null. */
const arrayOrNull = (values: readonly (string | number | boolean)[]): string | null =>
  values.length > 0 ? arrayOf(values) : null

const promisedWaitsOf = (jobs: readonly NewJob[]): string | null =>
  jobs.some(({ prediction }) => prediction?.promisedWaitMs != null)
    ? arrayOf(jobs.map(({ prediction }) => prediction?.promisedWaitMs ?? 'null'))
    : null

/** The jobs of one request belong to one trace, so one value is sent for all. */
const tracesOf = (jobs: readonly NewJob[]): string | null => {
  const first = jobs[0]?.traceparent ?? null
  if (jobs.some(({ traceparent }) => traceparent !== first)) {
    return arrayOf(jobs.map(({ traceparent }) => traceparent ?? 'null'))
  }
  return first === null ? null : arrayOf([first])
}

/** Children are identified by their index among all jobs, from 1. */
const edgesOf = (submissions: readonly Submission[]) => {
  let number = 0
  return submissions.flatMap(({ jobs }) => {
    if (jobs.every(({ depends_on }) => depends_on.length === 0)) {
      number += jobs.length
      return []
    }
    const own = new Set(jobs.map(({ id }) => id))
    return jobs.flatMap(({ depends_on }) => {
      const child = ++number
      return [...new Set(depends_on)].map((parentId) => ({ child, parentId, inside: own.has(parentId) }))
    })
  })
}

const toKeyRows = (submissions: readonly Submission[]): string | null => {
  const rows = submissions.flatMap(({ keys = [] }, n) =>
    keys.map(({ key, bodyHash, jobIds, keepSeconds }) => ({
      submission: n + 1,
      key,
      body_hash: bodyHash,
      job_ids: jobIds,
      keep_seconds: keepSeconds,
    })),
  )
  return rows.length > 0 ? JSON.stringify(rows) : null
}

type SentJobs = { jobs: readonly NewJob[]; jobKinds: readonly number[]; lastJobs: readonly number[] }

/** The rows of all stored jobs, in order, and then those of the refusals. */
const readSubmitted = ({ jobs, jobKinds, lastJobs }: SentJobs, rows: readonly SubmitAnswer[]): Submitted => {
  const answers = rows.flatMap(({ answer }) => answer)
  const refusals = answers.flatMap(({ only, refusals = [] }) =>
    refusals.map((one): RefusedSubmission => ({ ...one, submission: only ?? one.submission, id: null })),
  )
  const refused = new Set(refusals.map(({ submission }) => submission))
  const answersOf = new Map(answers.map((answer) => [answer.only ?? 0, indexed(answer)]))
  const submitted: SubmittedJob[] = []
  let submission = 1
  for (const [n, job] of jobs.entries()) {
    while (n >= (lastJobs[submission - 1] ?? 0)) submission++
    const answer = answersOf.get(submission) ?? answersOf.get(0)
    const kind = answer?.kinds.get(jobKinds[n] ?? 0)
    if (!answer || !kind || refused.has(submission)) continue
    submitted.push({
      submission,
      id: job.id,
      type: job.type,
      status: answer.blocked.has(job.id) ? 'blocked' : kind.status,
      created_at: answer.createdAt,
      predicted_ms: kind.predicted_ms,
      predicted_p90_ms: kind.predicted_p90_ms,
      prediction_source: kind.prediction_source,
      model_version: kind.model_version,
      promised_wait_ms: answer.isPredicted ? (job.prediction?.promisedWaitMs ?? null) : null,
      rank: kind.rank,
      deadline_at_risk: kind.deadline_at_risk,
      announced: answer.announced,
    })
  }
  return {
    rows: [...submitted, ...refusals],
    refusedPredictions: answers.flatMap(({ unpredicted }) => (unpredicted ? [new Error(unpredicted)] : [])),
  }
}

const indexed = ({ created_at = '', announced = false, kinds = [], blocked, unpredicted }: Answer) => ({
  createdAt: isoTime(created_at),
  announced,
  kinds: new Map(kinds.map((kind) => [kind.number, kind])),
  blocked: new Set(blocked),
  isPredicted: unpredicted == null,
})
