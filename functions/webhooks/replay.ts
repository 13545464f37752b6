/**
 * Runs a delivery again, from what the journal has kept of it. One that has made a job, or was a duplicate, makes another: no
 * key stands in the way of somebody who asks for just that. One that has not is still the first of its event, and takes the
 * event's key: replayed twice, or sent again by the sender meanwhile, it makes one job.
 */
import { enter, type Origin } from '../../db/queries/scope.ts'
import type { DeliveryRow } from '../../db/queries/webhook-deliveries.ts'
import type { Run } from '../../db/query.ts'
import { findIdempotencyKeys } from '../../db/queue/submitted.ts'
import type { Condition } from '../../db/rules/conditions.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { memberOf, type Principal } from '../auth/principal.ts'
import type { Hold } from '../http/background.ts'
import { ProblemError } from '../http/problem.ts'
import { createToPredict } from '../jobs/to-predict.ts'
import { viewForecast } from '../prediction/forecast.ts'
import type { Services } from '../services.ts'
import type { RequestTrace } from '../tracing/request-trace.ts'
import { type Body, documentsOf } from './event.ts'
import { type Plan, planJob, readRules } from './plan.ts'
import { eventKeyOf, type Receipt } from './receive.ts'
import type { ReceivingSource } from './receiving-source.ts'
import { storeDelivery } from './store-delivery.ts'

/** Instead of those of the source. */
export type Draft = { template?: unknown; filter?: unknown }

export type Replay = {
  source: ReceivingSource
  delivery: DeliveryRow
  principal: Principal
  origin: Origin
  run: Run
  hold: Hold
  trace: RequestTrace
}

export const replayDelivery = async (services: Services, replay: Replay): Promise<Receipt> => {
  const { source, delivery, principal, origin, hold, trace } = replay
  const deliveryId = uuidV7()
  const plan = await planReplay(services, replay, {}, deliveryId)
  const { eventKey, isAnother } = keyOf(delivery)
  const outcome = await storeDelivery(services, {
    entry: enter(memberOf(principal), { leastRole: 'org_admin', origin }),
    record: {
      orgId: source.orgId,
      id: deliveryId,
      sourceId: source.id,
      eventId: delivery.event_id,
      eventType: delivery.event_type,
      replayOf: rootOf(delivery),
      headers: JSON.stringify(delivery.headers),
      body: JSON.stringify(delivery.body),
    },
    plan: isAnother && plan.kind === 'job' ? { ...plan, key: null } : plan,
    eventKey,
    hold,
    trace,
  })
  return { ...outcome, deliveryId, orgId: source.orgId }
}

/** What would become of it. Nothing is stored, and no quota is used. */
export const tryReplay = async (services: Services, replay: Replay, draft: Draft) => {
  const plan = await planReplay(services, replay, draft, replay.delivery.id)
  if (plan.kind !== 'job') return { plan, jobId: null, prediction: null }
  const { run, hold, source } = replay
  const asking = { run, orgId: source.orgId, hold, dryRun: true }
  const job = createToPredict([plan.request])(plan.request)
  const [predicted] = await services.predictions.predict([job], asking)
  const { prediction } = viewForecast(plan.request, predicted ?? null, Date.now())
  return { plan, jobId: await firstJob(replay, plan), prediction }
}

const planReplay = (
  { jobTypes }: Services,
  { source, delivery }: Replay,
  draft: Draft,
  deliveryId: string,
): Promise<Plan> => {
  if (delivery.status === 'rejected') throw neverVerified()
  if (delivery.body === null) throw notKept()
  const body = keptBody(delivery)
  const documents = documentsOf({
    body: body.ok ? body.value : null,
    headers: delivery.headers,
    names: { id: delivery.event_id, type: delivery.event_type },
    source,
    deliveryId,
    receivedAt: new Date(delivery.received_at),
  })
  const filter = draft.filter === undefined ? undefined : readRules(draft.filter as Condition | null, {})
  const template = draft.template === undefined ? undefined : readRules(null, draft.template)
  const rules = { accepts: (filter ?? source.rules).accepts, render: (template ?? source.rules).render }
  return planJob(jobTypes, rules, { body, documents, nowMs: Date.now() })
}

const neverVerified = (): ProblemError =>
  new ProblemError(
    'not-replayable',
    'It was rejected: nobody has proved that it is from the sender. Mend the secret, and have it sent again.',
  )

const notKept = (): ProblemError =>
  new ProblemError(
    'not-replayable',
    'Its body was not kept: the organisation had used up its bytes of payload of the day.',
  )

/** A body that was no JSON is text. */
const keptBody = ({ body, reason }: DeliveryRow): Body =>
  typeof body === 'object' && body !== null
    ? { ok: true, value: body }
    : { ok: false, text: String(body), reason: reason ?? 'The body is not JSON.' }

/** The first of all: a replay of a replay is one of that. */
const rootOf = (delivery: DeliveryRow): string => delivery.replay_of ?? delivery.id

/** An event without an id goes by the delivery that brought it. */
const keyOf = (delivery: DeliveryRow): { eventKey: string | null; isAnother: boolean } => {
  if (delivery.job_id !== null) return { eventKey: null, isAnother: true }
  const id = delivery.event_id ?? `delivery:${rootOf(delivery)}`
  return { eventKey: eventKeyOf(delivery.source_id, id), isAnother: false }
}

/** The job of which it would be a duplicate. */
const firstJob = async (
  { run, source, delivery }: Replay,
  { key }: Plan & { kind: 'job' },
): Promise<string | null> => {
  const { eventKey, isAnother } = keyOf(delivery)
  if (isAnother || eventKey === null) return null
  const used = await run(findIdempotencyKeys(source.orgId, key ? [eventKey, key.key] : [eventKey]))
  const first =
    used.find((one) => one.key === eventKey) ??
    used.find((one) => one.key === key?.key && one.body_hash === key.bodyHash)
  return first?.job_ids[0] ?? null
}
