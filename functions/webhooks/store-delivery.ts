/**
 * One transaction, and one round trip, lets the delivery in, stores its job under the key of its event, and journals what
 * became of it. Of many deliveries of one event at the same time one stores a job; the others find its key.
 */
import type { Entry } from '../../db/queries/scope.ts'
import {
  type DeliveryKeys,
  type DeliveryRecord,
  type Journalled,
  journalDelivery,
} from '../../db/queries/webhook-journal.ts'
import type { NewJob } from '../../db/queue/job-fields.ts'
import { type Submission, type SubmissionRow, type SubmitAnswer, submitJobs } from '../../db/queue/submit.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { hashSecret } from '../auth/secrets.ts'
import type { Hold } from '../http/background.ts'
import type { ProblemError } from '../http/problem.ts'
import { resolveParents } from '../jobs/dependencies.ts'
import { keyReused } from '../jobs/idempotency.ts'
import type { JobRequest } from '../jobs/new-job.ts'
import { bytesUsedUp } from '../jobs/quota.ts'
import { isSubmitted, isUsedKey, refusalOf } from '../jobs/refusals.ts'
import { toNewJob } from '../jobs/stored-job.ts'
import { createToPredict } from '../jobs/to-predict.ts'
import type { Services } from '../services.ts'
import { inserting, PREDICTING } from '../tracing/parts.ts'
import type { RequestTrace } from '../tracing/request-trace.ts'
import { type Plan, type Quarantine, quarantine } from './plan.ts'

export type Outcome =
  | { readonly status: 'accepted' | 'duplicate'; readonly jobId: string }
  | { readonly status: 'filtered' }
  /** `refusal`: it was not the delivery's fault, and the same may do later. */
  | (Omit<Quarantine, 'kind'> & { readonly status: 'quarantined'; readonly refusal?: ProblemError })

type Delivery = {
  /** What lets the transaction into the organisation. */
  entry: Entry
  record: DeliveryRecord
  plan: Plan
  /** Under which the event is known. Null: it is none that could come twice. */
  eventKey: string | null
  hold: Hold
  trace: RequestTrace
}

/** Providers repeat a delivery for up to three days; seven are promised. */
const EVENT_KEY_SECONDS = 8 * 86_400

export const storeDelivery = async (services: Services, delivery: Delivery): Promise<Outcome> => {
  const { plan, eventKey } = delivery
  const keys: DeliveryKeys = {
    event: eventKey === null ? null : { key: eventKey, keepSeconds: EVENT_KEY_SECONDS },
    job: plan.kind === 'job' && plan.key?.key !== eventKey ? plan.key : null,
  }
  if (plan.kind !== 'job') return journalOnly(services, delivery, keys, plan)
  const job = await makeJob(services, delivery, plan.request)
  const submission = await toSubmission(delivery.record, job, keys)
  const submitting = submitJobs([submission])
  const [, answers, [journalled]] = await delivery.trace.span(inserting([job]), () =>
    services.database.transaction<[unknown, SubmitAnswer, Journalled]>([
      delivery.entry,
      submitting,
      journalDelivery(delivery.record, { jobId: job.id, keys, otherwise: null }),
    ]),
  )
  const { rows, refusedPredictions } = submitting.read(answers)
  for (const error of refusedPredictions) services.predictions.refused(error, delivery.hold)
  if (rows.some((row) => isSubmitted(row) && row.status === 'ready' && !row.announced)) {
    services.submitter.announce([job.type], delivery.hold)
  }
  if (journalled) return outcomeOf(journalled)
  const refusal = whyRefused(rows, plan, job)
  const kept = await journalOnly(services, delivery, keys, quarantine(refusal))
  return kept.status === 'quarantined' && refusal.slug === 'quota-exceeded' ? { ...kept, refusal } : kept
}

const journalOnly = async (
  { database }: Services,
  { entry, record }: Delivery,
  keys: DeliveryKeys,
  plan: Exclude<Plan, { kind: 'job' }>,
): Promise<Outcome> => {
  const otherwise = { status: plan.kind, reason: plan.kind === 'quarantined' ? plan.reason : null }
  const [, [journalled]] = await database.transaction<[unknown, Journalled]>([
    entry,
    journalDelivery(record, { jobId: null, keys, otherwise }),
  ])
  if (!journalled) throw bytesUsedUp()
  if (journalled.job_id !== null) return outcomeOf(journalled)
  if (plan.kind === 'filtered') return { status: 'filtered' }
  return { status: 'quarantined', reason: plan.reason, errors: plan.errors }
}

const outcomeOf = ({ status, job_id }: Journalled): Outcome => {
  if (job_id === null || (status !== 'accepted' && status !== 'duplicate')) throw new Error('No job')
  return { status, jobId: job_id }
}

const makeJob = async (
  { database, predictions }: Services,
  { entry, record, hold, trace }: Delivery,
  request: JobRequest,
): Promise<NewJob> => {
  const asking = { run: database.after(entry), orgId: record.orgId, hold }
  const [prediction] = await trace.span(PREDICTING, () =>
    predictions.predict([createToPredict([request])(request)], asking),
  )
  const id = uuidV7()
  const [parents] = resolveParents([request], [id])
  return toNewJob(request, {
    id,
    parents: parents ?? [],
    prediction: prediction ?? null,
    triggeredBy: { kind: 'webhook', source_id: record.sourceId, delivery_id: record.id },
    traceparent: trace.traceparent,
  })
}

/** Nobody's: whoever has made the source has said that the organisation wants it. */
const toSubmission = async (
  { orgId, body }: DeliveryRecord,
  job: NewJob,
  { event, job: own }: DeliveryKeys,
): Promise<Submission> => {
  const jobIds = [job.id]
  return {
    orgId,
    userId: null,
    jobs: [job],
    keys: [
      ...(event ? [{ ...event, bodyHash: await hashSecret(body ?? ''), jobIds }] : []),
      ...(own ? [{ key: own.key, bodyHash: own.bodyHash, jobIds }] : []),
    ],
  }
}

const whyRefused = (
  rows: readonly SubmissionRow[],
  { request, key }: Plan & { kind: 'job' },
  { id }: NewJob,
): ProblemError => {
  const used = rows.find(isUsedKey)?.detail
  const refusal =
    used && key
      ? keyReused([key], used)
      : refusalOf(rows, { requests: [request], ids: [id], pathOf: () => [] })
  if (!refusal) throw new Error('A job was not stored, and nothing says why')
  return refusal
}
