import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { takeTurns } from '../../db/queries/scope.ts'
import {
  changeSource,
  createSource,
  deleteSource,
  getSource,
  listSources,
  MAX_SOURCES,
  rotateSecret,
  type WebhookSourceRow,
} from '../../db/queries/webhook-sources.ts'
import { uuidV7 } from '../../db/rules/uuid-v7.ts'
import { access, enterAs } from '../auth/permit.ts'
import type { AppEnv } from '../context.ts'
import { jsonBody, optionalJsonBody } from '../http/json-body.ts'
import { BODY_PROBLEMS, jsonContent, jsonRequest, pathId, problems } from '../http/openapi.ts'
import { pageOf, pageQuery, toPage } from '../http/pagination.ts'
import { ProblemError } from '../http/problem.ts'
import { createRouter, problemAt } from '../http/validation.ts'
import {
  createdSource,
  newSource,
  ONLY_HMAC,
  rotation,
  savedSource,
  source,
  sourceChange,
  sourceWithSecret,
} from './schemas.ts'
import { newSecret, secretFault } from './secrets.ts'
import { warningsOf } from './template-warnings.ts'
import { viewSource } from './views.ts'

export const sourceRoutes = () =>
  createRouter()
    .openapi(createSourceRoute, async (c) => {
      const { secret: given, verification = {}, filter = null, ...request } = c.req.valid('json')
      const { org_id: orgId, user_id: created_by } = c.get('principal')
      const warnings = await warningsOf(c.get('services').jobTypes, request.template)
      const secret = given ?? newSecret(request.scheme)
      const run = enterAs(c, { leastRole: 'org_admin' }, takeTurns('webhook-sources', orgId))
      const made = { ...request, id: uuidV7(), created_by, verification, filter, secret }
      const [row] = await run(createSource(orgId, made))
      if (!row) throw tooManySources()
      return c.json({ ...view(c, row), secret, warnings }, 201, { location: `/webhooks/sources/${row.id}` })
    })
    .openapi(listSourcesRoute, async (c) => {
      const { cursor, limit } = c.req.valid('query')
      const page = { orgId: c.get('principal').org_id, after: cursor ?? null, limit: limit + 1 }
      const rows = await c.get('run')(listSources(page))
      return c.json(toPage(rows, limit, { position: ({ id }) => id, item: (row) => view(c, row) }), 200)
    })
    .openapi(getSourceRoute, async (c) => c.json(view(c, await lookUp(c, c.req.valid('param').id)), 200))
    .openapi(changeSourceRoute, async (c) => {
      const { id } = c.req.valid('param')
      const change = c.req.valid('json')
      const warnings = change.template ? await warningsOf(c.get('services').jobTypes, change.template) : []
      if (change.verification && (await lookUp(c, id)).scheme !== 'hmac') {
        throw problemAt('invalid-request', [{ in: 'body', pointer: '#/verification', detail: ONLY_HMAC }])
      }
      const [row] = await c.get('run')(changeSource(c.get('principal').org_id, id, change))
      return c.json({ ...view(c, found(id, row)), warnings }, 200)
    })
    .openapi(deleteSourceRoute, async (c) => {
      const { id } = c.req.valid('param')
      found(id, (await c.get('run')(deleteSource(c.get('principal').org_id, id)))[0])
      return c.body(null, 204)
    })
    .openapi(rotateRoute, async (c) => {
      const { id } = c.req.valid('param')
      const { secret: given, keep_previous_seconds = 86_400 } = c.req.valid('json')
      const { scheme } = await lookUp(c, id)
      const fault = given === undefined ? undefined : secretFault(scheme, given)
      if (fault) throw badSecret(fault)
      const secret = given ?? newSecret(scheme)
      const change = {
        orgId: c.get('principal').org_id,
        id,
        secret,
        keepPreviousSeconds: keep_previous_seconds,
      }
      const [row] = await c.get('run')(rotateSecret(change))
      if (!row) throw badSecret('is the secret of the source already')
      return c.json({ ...view(c, row), secret }, 200)
    })

const view = (c: Context<AppEnv>, row: WebhookSourceRow) => viewSource(row, new URL(c.req.url).origin)

/** A source of the organisation, or a problem. */
export const lookUp = async (c: Context<AppEnv>, id: string): Promise<WebhookSourceRow> =>
  found(id, (await c.get('run')(getSource(c.get('principal').org_id, id)))[0])

const found = <Row>(id: string, row: Row | undefined): Row => {
  if (!row) throw new ProblemError('not-found', `There is no webhook source ${id} in this organisation.`)
  return row
}

const tooManySources = (): ProblemError =>
  new ProblemError('limit-reached', `The organisation has ${MAX_SOURCES} webhook sources. Delete some first.`)

const badSecret = (detail: string): ProblemError =>
  problemAt('invalid-request', [{ in: 'body', pointer: '#/secret', detail }])

const createSourceRoute = createRoute({
  method: 'post',
  path: '/webhooks/sources',
  tags: ['webhooks'],
  summary: 'Make a webhook source',
  description: 'A sender that signs its events, and the job that each becomes. Send events to its `url`.',
  ...access('webhooks:manage', jsonBody()),
  request: { body: jsonRequest(newSource) },
  responses: {
    201: jsonContent(createdSource, 'The source, with its secret'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'limit-reached'),
  },
})

const listSourcesRoute = createRoute({
  method: 'get',
  path: '/webhooks/sources',
  tags: ['webhooks'],
  summary: 'List the webhook sources',
  ...access('webhooks:read'),
  request: { query: pageQuery(z.uuid()) },
  responses: {
    200: jsonContent(pageOf(source), 'A page of sources, oldest first'),
    ...problems('unauthenticated', 'forbidden', 'invalid-request'),
  },
})

const getSourceRoute = createRoute({
  method: 'get',
  path: '/webhooks/sources/{id}',
  tags: ['webhooks'],
  summary: 'Look at a webhook source',
  ...access('webhooks:read'),
  request: { params: pathId },
  responses: {
    200: jsonContent(source, 'The source, without its secret'),
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const changeSourceRoute = createRoute({
  method: 'patch',
  path: '/webhooks/sources/{id}',
  tags: ['webhooks'],
  summary: 'Change a webhook source',
  description: 'Holds from the next delivery on. While it is not enabled, its address answers 404.',
  ...access('webhooks:manage', jsonBody()),
  request: { params: pathId, body: jsonRequest(sourceChange) },
  responses: {
    200: jsonContent(savedSource, 'The source from now on'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'not-found'),
  },
})

const deleteSourceRoute = createRoute({
  method: 'delete',
  path: '/webhooks/sources/{id}',
  tags: ['webhooks'],
  summary: 'Delete a webhook source',
  description:
    'Nothing is received from then on. Jobs stay, and what the journal has of its deliveries until it is too old.',
  ...access('webhooks:manage'),
  request: { params: pathId },
  responses: {
    204: { description: 'Deleted' },
    ...problems('unauthenticated', 'forbidden', 'not-found'),
  },
})

const rotateRoute = createRoute({
  method: 'post',
  path: '/webhooks/sources/{id}/rotate',
  tags: ['webhooks'],
  summary: 'Replace the secret of a webhook source',
  description:
    'Both are good for a while, so that the sender can be changed over. Of more than two the oldest ends.',
  ...access('webhooks:manage', optionalJsonBody()),
  request: { params: pathId, body: { ...jsonRequest(rotation), required: false } },
  responses: {
    200: jsonContent(sourceWithSecret, 'The source, with its new secret'),
    ...problems(...BODY_PROBLEMS, 'unauthenticated', 'forbidden', 'not-found'),
  },
})
