import { enterWithSource, type Origin, takeTurns } from '../../db/queries/scope.ts'
import { type DeliveryRecord, journalRejection } from '../../db/queries/webhook-journal.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { DatabaseUnavailable, NotEntered } from '../database-errors.ts'
import type { Hold } from '../http/background.ts'
import { ProblemError } from '../http/problem.ts'
import type { Services } from '../services.ts'
import type { RequestTrace } from '../tracing/request-trace.ts'
import { documentsOf, type Headers, namesOf, readBody } from './event.ts'
import { keep, keepBeginning } from './journal.ts'
import { planJob } from './plan.ts'
import type { ReceivingSource } from './receiving-source.ts'
import { REST_MS } from './rejection-limit.ts'
import { type Outcome, storeDelivery } from './store-delivery.ts'
import { verify } from './verify.ts'

/** A request to the address of a source. */
export type Incoming = {
  readonly sourceId: string
  readonly headers: Headers
  /** Null: there are too many. */
  readonly bytes: Uint8Array<ArrayBuffer> | null
  readonly origin: Origin
  readonly hold: Hold
  readonly trace: RequestTrace
}

export type Receipt = Outcome & { readonly deliveryId: string; readonly orgId: string }

export const MAX_KIB = 256

/** A source may change while a delivery for it is looked at: then it is looked at again. */
const MOST_TRIES = 3

/** Verifies, filters, renders, stores and journals. Throws if the delivery is rejected. */
export const receive = async (services: Services, incoming: Incoming): Promise<Receipt> => {
  const { webhookSources, webhookRejections } = services
  const { sourceId } = incoming
  for (let tried = 1; ; tried++) {
    const maxAgeMs = webhookRejections.isReached(sourceId) ? REST_MS : undefined
    const source = await webhookSources.find(sourceId, maxAgeMs)
    if (!source) throw new ProblemError('not-found', 'There is no webhook source here, or it is disabled.')
    try {
      return await receiveFor(services, source, incoming)
    } catch (error) {
      if (!(error instanceof NotEntered)) throw error
      if (tried === MOST_TRIES) {
        const reason = 'The webhook source changed while the delivery was stored.'
        throw new DatabaseUnavailable(reason, { rolledBack: true, cause: error })
      }
      webhookSources.forget(sourceId)
    }
  }
}

const receiveFor = async (
  services: Services,
  source: ReceivingSource,
  incoming: Incoming,
): Promise<Receipt> => {
  const { headers, bytes, origin, hold, trace } = incoming
  if (bytes === null) return reject(services, source, incoming, tooLarge())
  const now = new Date()
  const verdict = await verify(source.scheme, { headers, bytes }, source.secrets, now.getTime())
  if (!verdict.ok) {
    return reject(services, source, incoming, new ProblemError('webhook-rejected', verdict.reason))
  }
  const body = readBody(bytes)
  const names = await namesOf(source.scheme, headers, body)
  const deliveryId = uuidV7()
  const event = { body: body.ok ? body.value : null, headers, names, source, deliveryId, receivedAt: now }
  const plan = await planJob(services.jobTypes, source.rules, {
    body,
    documents: documentsOf(event),
    nowMs: now.getTime(),
  })
  const record: DeliveryRecord = {
    orgId: source.orgId,
    id: deliveryId,
    sourceId: source.id,
    eventId: names.id,
    eventType: names.type,
    replayOf: null,
    ...keep(source.redactor, headers, body),
  }
  const outcome = await storeDelivery(services, {
    entry: enterWithSource(credentialsOf(source), origin),
    record,
    plan,
    eventKey: names.id === null ? null : eventKeyOf(source.id, names.id),
    hold,
    trace,
  })
  services.edgeTotals.delivery(outcome.status, hold)
  return { ...outcome, deliveryId, orgId: source.orgId }
}

const credentialsOf = ({ id, version, secrets }: ReceivingSource) => ({
  id,
  version,
  secret: secrets.current,
})

export const eventKeyOf = (sourceId: string, eventId: string): string => `hook:${sourceId}:${eventId}`

const tooLarge = (): ProblemError => new ProblemError('body-too-large', `A body may have ${MAX_KIB} KiB.`)

/** The journal says why, unless it has been told of too many. It is also who notices that the source has changed. */
const reject = async (
  { database, webhookRejections, edgeTotals }: Services,
  source: ReceivingSource,
  { headers, bytes, origin, hold }: Incoming,
  problem: ProblemError,
): Promise<never> => {
  if (webhookRejections.isReached(source.id)) {
    edgeTotals.delivery('rejected', hold)
    throw problem
  }
  const body = bytes === null ? null : readBody(bytes)
  const names = await namesOf(source.scheme, headers, { ok: false, text: '', reason: '' })
  const record: DeliveryRecord = {
    orgId: source.orgId,
    id: uuidV7(),
    sourceId: source.id,
    eventId: names.id,
    eventType: names.type,
    replayOf: null,
    ...keepBeginning(source.redactor, headers, body),
  }
  const [, , journalled] = await database.transaction<[unknown, unknown, { id: string }]>([
    enterWithSource(credentialsOf(source), origin),
    takeTurns('webhook-rejections', source.id),
    journalRejection(record, problem.message),
  ])
  if (journalled.length === 0) webhookRejections.reach(source.id)
  edgeTotals.delivery('rejected', hold)
  throw problem
}
