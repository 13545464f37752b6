import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import {
  DELIVERY_STATUSES,
  type DeliveryRow,
  getDelivery,
  listDeliveries,
} from '../../db/queries/webhook-deliveries.ts'
import { findReceivingSource } from '../../db/queries/webhook-sources.ts'
import { access } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { holdOf } from '../http/background.ts'
import { optionalJsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { originOf } from '../http/origin.ts'
import { pageFields, pageOf, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter } from '../http/validation.ts'
import { toReceiving } from './receiving-source.ts'
import { type Replay, replayDelivery, tryReplay } from './replay.ts'
import { delivery, deliverySummary, replayRequest, replayResult } from './schemas.ts'
import { lookUp } from './source-routes.ts'
import { viewDelivery, viewOutcome, viewSummary } from './views.ts'

export const deliveryRoutes = () =>
  createRouter()
    .openapi(listDeliveriesRoute, async (c) => {
      const { id: sourceId } = c.req.valid('param')
      const { cursor, limit, status } = c.req.valid('query')
      await lookUp(c, sourceId)
      const page = { sourceId, status: status ?? null, before: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listDeliveries({ orgId: c.get('principal').org_id, ...page }))
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item: viewSummary }), 200)
    })
    .openapi(getDeliveryRoute, async (c) =>
      c.json(viewDelivery(await lookUpDelivery(c, c.req.valid('param').id)), 200),
    )
    .openapi(replayRoute, (c) => replay(c, c.req.valid('param'), c.req.valid('json')))
    // The other ways in which the path can be read.
    .openapi(replayBelowSourcesRoute, (c) => replay(c, c.req.valid('param'), c.req.valid('json')))
    .openapi(replayOfSourceRoute, (c) => replay(c, c.req.valid('param'), c.req.valid('json')))

const lookUpDelivery = async (c: Context<AppEnv>, id: string, sourceId?: string): Promise<DeliveryRow> => {
  const [row] = await c.get('run')(getDelivery(c.get('principal').org_id, id))
  if (row && (sourceId === undefined || row.source_id === sourceId)) return row
  throw new ProblemError('not-found', `There is no webhook delivery ${id} in this organisation.`)
}

const replay = async (
  c: Context<AppEnv>,
  { id, source_id }: { id: string; source_id?: string },
  { dry_run, ...draft }: z.output<typeof replayRequest>,
) => {
  const services = c.get('services')
  const found = await lookUpDelivery(c, id, source_id)
  const [row] = await c.get('run')(findReceivingSource(found.source_id, c.get('principal').org_id))
  if (!row) throw new ProblemError('not-found', 'The webhook source of this delivery was deleted.')
  const asked: Replay = {
    source: toReceiving(row),
    delivery: found,
    principal: c.get('principal'),
    origin: originOf(c),
    run: c.get('run'),
    hold: holdOf(c),
    trace: c.get('trace'),
  }
  if (dry_run ?? (draft.template !== undefined || draft.filter !== undefined)) {
    return c.json(viewTrial(await tryReplay(services, asked, draft)), 200)
  }
  const outcome = await replayDelivery(services, asked)
  if ('refusal' in outcome && outcome.refusal) throw outcome.refusal
  const errors = 'errors' in outcome ? outcome.errors.map(toError) : []
  const view = {
    ...viewOutcome(outcome, outcome.deliveryId),
    dry_run: false,
    errors,
    job: null,
    prediction: null,
  }
  if (view.status === 'accepted') return c.json(view, 202, { location: `/jobs/${view.job_id}` })
  return c.json(view, 200)
}

const toError = ({ pointer, detail }: { pointer: string; detail: string }) => ({ pointer, detail })

const viewTrial = ({
  plan,
  jobId,
  prediction,
}: Awaited<ReturnType<typeof tryReplay>>): z.output<typeof replayResult> => {
  const common = { dry_run: true, delivery_id: null, job_id: jobId, prediction }
  if (plan.kind === 'job') {
    const { ref: _, ...job } = plan.request
    const status = jobId === null ? ('accepted' as const) : ('duplicate' as const)
    return { ...common, status, reason: null, errors: [], job }
  }
  const { reason, errors } = plan.kind === 'quarantined' ? plan : { reason: null, errors: [] }
  return { ...common, status: plan.kind, reason, errors: errors.map(toError), job: null }
}

const listDeliveriesRoute = createRoute({
  method: 'get',
  path: '/webhooks/sources/{id}/deliveries',
  tags: ['webhooks'],
  summary: 'List the deliveries of a webhook source',
  description: 'Newest first. They are kept as long as finished jobs are.',
  ...access('webhooks:read'),
  request: {
    params: pathId,
    query: z.strictObject({ status: z.enum(DELIVERY_STATUSES).optional(), ...pageFields(z.uuid()) }),
  },
  responses: {
    200: jsonContent(pageOf(deliverySummary), 'A page of deliveries'),
    ...problems('unauthenticated', 'forbidden', 'not-found', 'invalid-request'),
  },
})

const getDeliveryRoute = createRoute({
  method: 'get',
  path: '/webhooks/deliveries/{id}',
  tags: ['webhooks'],
  summary: 'Look at a delivery',
  ...access('webhooks:read'),
  request: { params: pathId },
  responses: {
    200: jsonContent(delivery, 'The delivery, with its headers and body'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const replayParts = {
  method: 'post' as const,
  tags: ['webhooks'],
  summary: 'Run a delivery again',
  description:
    'From what the journal has kept, with the filter and template that the source has now. One that has made a job makes ' +
    'another; one that has not makes the first of its event. With `"dry_run": true`, or with a draft of a filter or template, ' +
    'it only shows what would become of it.',
  ...access('webhooks:manage', optionalJsonBody()),
  responses: {
    200: jsonContent(replayResult, 'What would become of it; or a duplicate, filtered or quarantined'),
    202: jsonContent(replayResult, 'The job is queued'),
    ...problems(
      ...BODY_PROBLEMS,
      'unauthenticated',
      'forbidden',
      'not-found',
      'not-replayable',
      'quota-exceeded',
    ),
  },
}

const replayBody = { ...jsonRequest(replayRequest), required: false }

const replayRoute = createRoute({
  ...replayParts,
  path: '/webhooks/deliveries/{id}/replay',
  request: { params: pathId, body: replayBody },
})

const replayBelowSourcesRoute = createRoute({
  ...replayParts,
  path: '/webhooks/sources/deliveries/{id}/replay',
  hide: true,
  request: { params: pathId, body: replayBody },
})

const replayOfSourceRoute = createRoute({
  ...replayParts,
  path: '/webhooks/sources/{source_id}/deliveries/{id}/replay',
  hide: true,
  request: { params: pathId.extend({ source_id: z.uuid() }), body: replayBody },
})
