import type { Run } from '../../db/query.ts'
import type { NewJob, TriggeredBy } from '../../db/queue/job-fields.ts'
import type { SubmissionRow, UsedKeys } from '../../db/queue/submit.ts'
import { findIdempotencyKeys, findSubmitted } from '../../db/queue/submitted.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { membershipEnded } from '../auth/permit.ts'
import { memberOf, type Principal } from '../auth/principal.ts'
import { afterCommit } from '../database-errors.ts'
import type { Hold } from '../http/background.ts'
import { ProblemError } from '../http/problem.ts'
import type { Services } from '../services.ts'
import { inserting, PREDICTING } from '../tracing/parts.ts'
import type { RequestTrace } from '../tracing/request-trace.ts'
import { checkGraph, resolveParents } from './dependencies.ts'
import { type KeyedPart, keyedParts, keyReused, type RequestKey, toIdempotencyKey } from './idempotency.ts'
import type { JobRequest } from './new-job.ts'
import { checkPayloads } from './payloads.ts'
import { isRefusedParent, isSubmitted, isUsedKey, refuse } from './refusals.ts'
import { type SubmittedRow, toNewJob, toRow } from './stored-job.ts'
import { createToPredict } from './to-predict.ts'

/** The path of a job in the body that it came in: none if it is the body. */
export type PathOf = (job: number) => readonly PropertyKey[]

export type SubmissionContext = {
  pathOf: PathOf
  /** Makes the whole request idempotent. */
  requestKey?: RequestKey | undefined
  /** Somebody has run what usually runs by itself. */
  triggeredBy?: TriggeredBy
  run: Run
  hold: Hold
  trace: RequestTrace
}

/** `created` false: all of it was submitted before, under the same idempotency key. */
export type Submitted = { rows: SubmittedRow[]; created: boolean }

/**
 * Checks jobs that were sent together and commits them, all or none. Answers once they are committed: one round trip
 * to the database, shared with whoever submits at the same time. A job that was submitted before, under the same
 * idempotency key, is not submitted again; it is answered as it was then.
 */
export const submitAll = async (
  services: Services,
  principal: Principal,
  requests: readonly JobRequest[],
  context: SubmissionContext,
): Promise<Submitted> => {
  const { pathOf, hold, run, trace } = context
  const { org_id: orgId } = principal
  checkGraph(requests, pathOf)
  await checkPayloads(services.jobTypes, requests, pathOf)
  const parts = await keyedParts(requests, context.requestKey, pathOf)
  const member = memberOf(principal)
  const toPredict = requests.map(createToPredict(requests))
  const predictions = await trace.span(PREDICTING, () =>
    services.predictions.predict(toPredict, { run, orgId, hold }),
  )
  const ids = requests.map(uuidV7)
  const before = new Set<number>()
  for (;;) {
    const parents = resolveParents(requests, ids)
    const jobs = requests.map((request, i) =>
      toNewJob(request, {
        id: ids[i] ?? '',
        parents: parents[i] ?? [],
        prediction: predictions[i] ?? null,
        triggeredBy: context.triggeredBy ?? null,
        traceparent: trace.traceparent,
      }),
    )
    const fresh = jobs.filter((_, i) => !before.has(i))
    if (fresh.length === 0) {
      services.edgeTotals.duplicates(before.size, hold)
      return { rows: await findAll(run, orgId, jobs), created: false }
    }
    const open = parts.filter(({ positions }) => positions.every((i) => !before.has(i)))
    const keys = open.map((part) => toIdempotencyKey(part, ids))
    const rows = await trace.span(inserting(fresh), () =>
      services.submitter.submit({ ...member, member, jobs: fresh, keys }, hold),
    )
    const used = rows.find(isUsedKey)?.detail ?? (await usedAnyway(run, orgId, open, rows))
    if (!used) {
      refuse(rows, { requests, ids, pathOf, principal })
      services.edgeTotals.duplicates(before.size, hold)
      const found =
        before.size > 0 ? await afterCommit(findAll(run, orgId, jobs)) : toRows(fresh, rows, principal)
      return { rows: found, created: true }
    }
    for (const [position, id] of knownJobs(parts, used)) {
      ids[position] = id
      before.add(position)
    }
  }
}

/** Which jobs of the request were submitted before, and as what. At least one: else it would be asked for ever. */
const knownJobs = (parts: readonly KeyedPart[], used: UsedKeys['detail']): Map<number, string> => {
  const reused = keyReused(parts, used)
  if (reused) throw reused
  const known = new Map<number, string>()
  for (const { key, positions } of parts) {
    const ids = used.find((one) => one.key === key)?.job_ids
    positions.forEach((position, i) => {
      const id = ids?.[i]
      if (id !== undefined) known.set(position, id)
    })
  }
  if (known.size === 0) throw new Error('A used key that nobody sent')
  return known
}

/** What it depends on may have failed since it was submitted for the first time. That one is answered all the same. */
const usedAnyway = async (
  run: Run,
  orgId: string,
  parts: readonly KeyedPart[],
  rows: readonly SubmissionRow[],
): Promise<UsedKeys['detail'] | undefined> => {
  if (parts.length === 0 || !rows.some(isRefusedParent)) return undefined
  const hashes = new Map(parts.map(({ key, bodyHash }) => [key, bodyHash]))
  const found = await run(findIdempotencyKeys(orgId, [...hashes.keys()]))
  const used = found.map(({ key, job_ids, body_hash }) => ({
    key,
    job_ids,
    same: body_hash === hashes.get(key),
  }))
  return used.length > 0 ? used : undefined
}

const toRows = (
  jobs: readonly NewJob[],
  rows: readonly SubmissionRow[],
  principal: Principal,
): SubmittedRow[] => {
  const submitted = new Map(rows.filter(isSubmitted).map((row) => [row.id, row]))
  return jobs.map((job) => {
    const row = submitted.get(job.id)
    if (!row) throw membershipEnded()
    const { triggered_by, traceparent } = job
    const made = { org_id: principal.org_id, created_by: principal.user_id, triggered_by, traceparent }
    return toRow(job, row, made)
  })
}

/** As they were when they were submitted. */
const findAll = async (run: Run, orgId: string, jobs: readonly NewJob[]): Promise<SubmittedRow[]> => {
  const found = await run(
    findSubmitted(
      orgId,
      jobs.map(({ id }) => id),
    ),
  )
  const byId = new Map(found.map((row) => [row.id, row]))
  return jobs.map((job) => {
    const row = byId.get(job.id)
    if (!row) throw new ProblemError('not-found', `The job ${job.id} of this idempotency key is gone.`)
    const { created_by, triggered_by, traceparent } = row
    return toRow(job, row, { org_id: orgId, created_by, triggered_by, traceparent })
  })
}
